"""The places in which every test of the coordinator runs: three stores, blocking and with asyncio.

`Place.coordinator()` gives a `Coordinator`; where the place is an asynchronous one it is an
`AsyncCoordinator` whose calls are run to their end one by one, so that one test says the same of both.
"""

import asyncio
import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sqlalchemy import create_engine, text

from client import load
from client.attempts import AsyncCoordinator, AsyncMemoryStore, Coordinator, MemoryStore
from client.attempts.reading import Reading
from client.attempts.sql import METADATA, open_async_store, open_store
from client.validators import Validator

KINDS = ("memory", "sqlite", "postgresql")
WAYS = ("sync", "async")


@dataclass
class Counter:
    """A clock and a source of ids that count."""

    ticks: Iterator[int] = field(default_factory=lambda: itertools.count(1_000_000))
    names: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def now_us(self) -> int:
        """Give the next microsecond."""
        return next(self.ticks)

    def new_id(self) -> str:
        """Give the next id."""
        return f"attempt-{next(self.names)}"


@dataclass
class Place:
    """One store, and how it is called."""

    kind: str
    way: str
    store: Any
    wait: Callable[[Any], Any]
    counter: Counter = field(default_factory=Counter)

    def fresh(self) -> "Place":
        """Give the same place with clock and ids from the beginning."""
        return replace(self, counter=Counter())

    def coordinator(
        self, contract: str = "strict/1", dialect: str = "openai-chat", validate: Validator | None = None
    ) -> Coordinator:
        """Give a coordinator on the store."""
        make: Any = Coordinator if self.way == "sync" else AsyncCoordinator
        made = make(
            self.store,
            load(contract),
            dialect,
            validate=validate,
            clock=self.counter.now_us,
            new_id=self.counter.new_id,
        )
        return cast(Coordinator, made if self.way == "sync" else _Waiting(made, self.wait))


class _Waiting:
    """An object whose coroutines are run to their end, and so are those of what it returns."""

    def __init__(self, waited: Any, wait: Callable[[Any], Any]) -> None:
        self._waited, self._wait = waited, wait

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._waited, name)
        return self._called(found) if callable(found) else found

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            given = [arg._waited if isinstance(arg, _Waiting) else arg for arg in args]
            result = method(*given, **kwargs)
            if inspect.isawaitable(result):
                result = self._wait(result)
            return _Waiting(result, self._wait) if isinstance(result, Reading) else result

        return call


def unwrapped(attempt: Any) -> Any:
    """Give the attempt itself, for a test that awaits its calls."""
    return attempt._waited if isinstance(attempt, _Waiting) else attempt


@contextmanager
def in_memory(way: str) -> Iterator[Place]:
    """Open an empty store in memory."""
    with asyncio.Runner() as runner:
        yield Place("memory", way, MemoryStore() if way == "sync" else AsyncMemoryStore(), runner.run)


@contextmanager
def in_database(kind: str, way: str, url: str) -> Iterator[Place]:
    """Open a store in a database, and close it."""
    with asyncio.Runner() as runner:
        store: Any
        if way == "sync":
            store = open_store(url)
            yield Place(kind, way, store, runner.run)
            store.close()
        else:
            store = runner.run(open_async_store(url.replace("sqlite:", "sqlite+aiosqlite:")))
            yield Place(kind, way, store, runner.run)
            runner.run(store.close())


def new_schema(cluster_url: str, name: str) -> str:
    """Make an empty schema in a PostgreSQL cluster; give the URL that works in it."""
    engine = create_engine(cluster_url)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    return f"{cluster_url}&options=-csearch_path%3D{name}"


def empty(url: str) -> None:
    """Empty the tables of a PostgreSQL schema; no guard of a row stands in the way of that."""
    engine = create_engine(url)
    with engine.begin() as connection:
        names = ", ".join(table.name for table in METADATA.sorted_tables)
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))
    engine.dispose()
