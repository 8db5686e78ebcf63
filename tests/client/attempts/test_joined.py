"""An answer that is stored in the caller's own transaction is stored when that commits, and only then."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from client import load
from client.attempts import Attempt, Committed, Coordinator, Result, Superseded
from client.attempts.sql import AsyncJoined, Joined, create, open_store

from .bodies import HEAD, whole
from .places import Place, unwrapped

TABLE = "CREATE TABLE IF NOT EXISTS ticket (attempt_id TEXT)"
INSERT = "INSERT INTO ticket SELECT '{}'"


class BoomError(Exception):
    """What goes wrong in the caller's own work."""


def read(coordinator: Coordinator, task: str = "t", body: bytes = whole("a")) -> Attempt:
    """Begin an attempt and read a body into it."""
    attempt = coordinator.begin(task, "q")
    attempt.head(*HEAD)
    attempt.feed(body)
    return attempt


def commit_with_a_ticket(place: Place, attempt: Any, *, fails: bool) -> Result:
    """Commit an attempt in a transaction that writes a row of the caller's own as well, and may fail after."""
    attempt = unwrapped(attempt)
    statements = [text(TABLE), text(INSERT.format(attempt.id))]
    engine = place.store.engine

    def blocking() -> Result:
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(statement)
            result: Result = attempt.commit(within=Joined(connection))
            if fails:
                raise BoomError
        return result

    async def awaiting() -> Result:
        async with engine.begin() as connection:
            for statement in statements:
                await connection.execute(statement)
            result: Result = await attempt.commit(within=AsyncJoined(connection))
            if fails:
                raise BoomError
        return result

    result: Result = blocking() if place.way == "sync" else place.wait(awaiting())
    return result


def texts(coordinator: Coordinator) -> list[str]:
    """List what the history says."""
    return [message["content"] for message in coordinator.history()]


def test_both_or_none(database: Place) -> None:
    """Rolled back by the caller nothing is stored, the attempt is active still, and may commit again."""
    coordinator = database.coordinator()
    attempt = read(coordinator)
    with pytest.raises(BoomError):
        commit_with_a_ticket(database, attempt, fails=True)
    assert texts(coordinator) == []
    assert coordinator.attempts("t")[0].decided is None
    result = commit_with_a_ticket(database, attempt, fails=False)
    assert isinstance(result, Committed)
    assert texts(coordinator) == ["q", "a"]
    assert attempt.commit() == result


def test_a_rolled_back_commit_gives_no_right(database: Place) -> None:
    """After a rollback the attempt may be superseded as if it had never asked."""
    coordinator = database.coordinator()
    attempt = read(coordinator)
    with pytest.raises(BoomError):
        commit_with_a_ticket(database, attempt, fails=True)
    coordinator.supersede(attempt)
    assert isinstance(commit_with_a_ticket(database, attempt, fails=False), Superseded)
    assert texts(coordinator) == []


def test_a_refusal_is_rolled_back_as_well(database: Place) -> None:
    """A refused commit in a transaction that fails leaves neither decision nor partial text."""
    coordinator = database.coordinator()
    attempt = read(coordinator, body=whole("half", "length"))
    with pytest.raises(BoomError):
        commit_with_a_ticket(database, attempt, fails=True)
    assert (coordinator.attempts("t")[0].decided, coordinator.quarantined("t")) == (None, [])
    attempt.commit()
    assert [partial.text for partial in coordinator.quarantined("t")] == ["half"]


def test_every_call_can_join(sync_database: Place) -> None:
    """A coordinator on a caller's connection does all its calls there; rolled back, none of them happened."""
    engine = sync_database.store.engine
    with engine.connect() as connection, connection.begin() as transaction:
        coordinator = Coordinator(Joined(connection), load("strict/1"), "openai-chat")
        read(coordinator, "t1").commit()
        coordinator.supersede(read(coordinator, "t2")).cancel()
        assert texts(coordinator) == ["q", "a"]
        transaction.rollback()
    assert (texts(sync_database.coordinator()), sync_database.coordinator().attempts("t2")) == ([], [])


def test_an_engine_of_the_callers_own(tmp_path: Path) -> None:
    """An SQLite engine as SQLAlchemy makes it by default can be joined too."""
    url = f"sqlite:///{tmp_path / 'own.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        create(connection)
    store = open_store(url)
    coordinator = Coordinator(store, load("strict/1"), "openai-chat")
    attempt = read(coordinator)
    with engine.connect() as connection:
        assert isinstance(attempt.commit(within=Joined(connection)), Committed)
        connection.rollback()
        assert texts(coordinator) == []
        assert isinstance(attempt.commit(within=Joined(connection)), Committed)
        connection.commit()
    assert texts(coordinator) == ["q", "a"]
    engine.dispose()
    store.close()
