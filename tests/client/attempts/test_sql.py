"""The databases themselves: durable as promised, opened by several at once, and holding what they held."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from client.attempts import Coordinator
from client.attempts.sql import SqlStore, open_async_store, open_store

from .bodies import HEAD, whole
from .places import CONTRACT, new_schema
from .postgres import Cluster

OPENERS = 8


def asked(store: SqlStore, *statements: str) -> list[object]:
    """Ask a store's connection for its settings."""
    with store.engine.connect() as connection:
        return [connection.execute(text(statement)).scalar() for statement in statements]


def test_sqlite_is_durable(tmp_path: Path) -> None:
    """Every connection has a write-ahead log, waits for the disk (FULL is 2) and keeps its foreign keys."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    assert asked(store, "PRAGMA journal_mode", "PRAGMA synchronous", "PRAGMA foreign_keys") == ["wal", 2, 1]
    store.close()


def test_sqlite_is_durable_with_asyncio(tmp_path: Path) -> None:
    """The same through aiosqlite."""

    async def settings() -> list[object]:
        store = await open_async_store(f"sqlite+aiosqlite:///{tmp_path / 'a.db'}")
        async with store.engine.connect() as connection:
            found = [
                (await connection.execute(text(f"PRAGMA {name}"))).scalar() for name in ("journal_mode", "synchronous")
            ]
        await store.close()
        return found

    assert asyncio.run(settings()) == ["wal", 2]


def test_sqlite_takes_the_write_lock_first(tmp_path: Path) -> None:
    """A transaction that only reads so far keeps others from writing, so none of them decides on old rows."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    with store.engine.connect() as first, store.engine.connect() as second:
        second.exec_driver_sql("PRAGMA busy_timeout = 0")
        second.rollback()
        first.execute(text("SELECT 1"))
        with pytest.raises(OperationalError, match="locked"):
            second.execute(text("SELECT 1"))
    store.close()


def test_postgresql_is_durable(cluster: Cluster) -> None:
    """A commit waits for the disk even where the database was set up not to wait."""
    store = open_store(f"{new_schema(cluster.url, 'durable')}%20-csynchronous_commit%3Doff")
    assert asked(store, "SHOW synchronous_commit", "SHOW transaction_isolation") == ["on", "read committed"]
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_opened_by_several_at_once(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Programs that start together make the tables once, and each of them can work."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'a.db'}"
    else:
        url = new_schema(request.getfixturevalue("cluster").url, "at_once")
    barrier = threading.Barrier(OPENERS)

    def work(number: int) -> None:
        barrier.wait(30)
        store = open_store(url)
        attempt = Coordinator(store, CONTRACT("strict/1"), "openai-chat").begin(f"t{number}", "q")
        attempt.head(*HEAD)
        attempt.feed(whole("a"))
        attempt.commit()
        store.close()

    with ThreadPoolExecutor(OPENERS) as pool:
        for future in [pool.submit(work, number) for number in range(OPENERS)]:
            future.result(60)
    store = open_store(url)
    assert len(Coordinator(store, CONTRACT("strict/1"), "openai-chat").history()) == 2 * OPENERS
    store.close()


def test_another_database_is_refused() -> None:
    """A URL of a database that this file has no statements for is named, with those that there are."""
    with pytest.raises(ValueError, match="not stored in mysql; use one of sqlite, postgresql"):
        open_store("mysql://somewhere/x")
