"""What the attempts' tests share: one PostgreSQL a session, one empty store a test."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from client.attempts.sql import open_store

from .places import KINDS, WAYS, Place, empty, in_database, in_memory, new_schema
from .postgres import Cluster

# Opens an empty store of a kind, called in a way.
Open = Callable[[str, str], Place]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Give a PostgreSQL of the session's own; without one the tests fail."""
    made = Cluster()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def postgres_url(cluster: Cluster) -> str:
    """Give a schema whose tables every test finds empty."""
    return new_schema(cluster.url, "shared")


@pytest.fixture(scope="session")
def postgres_places(postgres_url: str) -> Iterator[dict[str, Place]]:
    """Give the two ways to call that schema."""
    with ExitStack() as stack:
        yield {way: stack.enter_context(in_database("postgresql", way, postgres_url)) for way in WAYS}


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a file with empty tables, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "empty.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path, sqlite_file: Path) -> Iterator[Open]:
    """Give a function that opens an empty store; the server is started by the first test that asks for one."""
    with ExitStack() as stack:

        def opens(kind: str, way: str) -> Place:
            if kind == "memory":
                return stack.enter_context(in_memory(way))
            if kind == "sqlite":
                path = shutil.copy(sqlite_file, tmp_path / "attempts.db")
                return stack.enter_context(in_database(kind, way, f"sqlite:///{path}"))
            place: Place = request.getfixturevalue("postgres_places")[way]
            empty(request.getfixturevalue("postgres_url"))
            return place.fresh()

        yield opens


@pytest.fixture(params=[(kind, way) for kind in KINDS for way in WAYS], ids="-".join)
def where(request: pytest.FixtureRequest, opened: Open) -> Place:
    """Give every store, blocking and with asyncio."""
    return opened(*request.param)


@pytest.fixture(params=[(kind, way) for kind in KINDS[1:] for way in WAYS], ids="-".join)
def database(request: pytest.FixtureRequest, opened: Open) -> Place:
    """Give every store that is a database, blocking and with asyncio."""
    return opened(*request.param)


@pytest.fixture(params=KINDS[1:])
def sync_database(request: pytest.FixtureRequest, opened: Open) -> Place:
    """Give every store that is a database, blocking."""
    return opened(request.param, "sync")
