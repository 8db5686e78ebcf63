"""Two callers at once, each with a connection of its own: one of them gets the right, and both are told."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import text

from client import load
from client.attempts import Attempt, Committed, Coordinator, DeniedError, Result, Superseded
from client.attempts.sql import Joined

from .bodies import HEAD, whole
from .places import Place

ROUNDS = 20

# How long a thread may take before the test gives up, in seconds.
_PATIENCE_S = 30


def read(attempt: Attempt, text_: str) -> Attempt:
    """Read a whole answer into an attempt."""
    attempt.head(*HEAD)
    attempt.feed(whole(text_))
    return attempt


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Run calls in threads that start together; give what each returned, or its DeniedError."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], object]) -> object:
        barrier.wait(_PATIENCE_S)
        try:
            return call()
        except DeniedError as denied:
            return denied

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(_PATIENCE_S) for future in [pool.submit(one, call) for call in calls]]


def stored(coordinator: Coordinator) -> list[str]:
    """List the answers of the history."""
    return [message["content"] for message in coordinator.history()[1::2]]


def test_one_attempt_asked_twice_at_once(sync_database: Place) -> None:
    """Two coordinators commit the same attempt at the same time: equal results, one answer."""
    for number in range(ROUNDS):
        attempt = read(sync_database.coordinator().begin(f"t{number}", "q"), "a")
        calls = [partial(sync_database.coordinator().commit, attempt) for _ in range(2)]
        first, second = at_once(*calls)
        assert isinstance(first, Committed)
        assert first == second
    assert stored(sync_database.coordinator()) == ["a"] * ROUNDS


def test_commit_against_supersede(sync_database: Place) -> None:
    """Either the old attempt is committed and the new one denied, or the new one is made and the old superseded."""
    coordinator = sync_database.coordinator()
    won = 0
    for number in range(ROUNDS):
        old = read(coordinator.begin(f"t{number}", "q"), "old")
        result, new = at_once(old.commit, partial(coordinator.supersede, old))
        if isinstance(result, Committed):
            assert isinstance(new, DeniedError)
            won += 1
        else:
            assert isinstance(result, Superseded)
            assert isinstance(new, Attempt)
            assert isinstance(read(new, "new").commit(), Committed)
    assert sorted(stored(coordinator)) == ["new"] * (ROUNDS - won) + ["old"] * won


def test_commit_against_clear(sync_database: Place) -> None:
    """Whichever comes first, a cleared conversation holds nothing."""
    coordinator = sync_database.coordinator()
    for number in range(ROUNDS):
        attempt = read(coordinator.begin(f"t{number}", "q"), "a")
        result, _ = at_once(attempt.commit, coordinator.clear)
        assert isinstance(result, Committed | Superseded)
        assert stored(coordinator) == []


def test_one_of_several_begins(sync_database: Place) -> None:
    """Several callers begin one task that is new: one gets an attempt, the others are denied."""
    for number in range(ROUNDS):
        coordinator = sync_database.coordinator()
        made = at_once(*[partial(coordinator.begin, f"t{number}", "q")] * 4)
        assert sorted(type(one) is Attempt for one in made) == [False, False, False, True]


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_committer_waits_for_whoever_moves_the_task(opened: Callable[[str, str], Place], is_kept: bool) -> None:
    """On PostgreSQL a commit blocks on the row that a supersede has locked, and is decided by how that ends."""
    place = opened("postgresql", "sync")
    coordinator = place.coordinator()
    old = read(coordinator.begin("t", "q"), "old")
    engine = place.store.engine
    with ThreadPoolExecutor(1) as pool, engine.connect() as connection:
        Coordinator(Joined(connection), load("strict/1"), "openai-chat").supersede(old.id)
        future: Future[Result] = pool.submit(old.commit)
        with engine.connect() as watcher:
            wait_until_blocked(lambda: watcher.execute(text(BLOCKED)).scalar() == 1)
        assert not future.done()
        if is_kept:
            connection.commit()
        else:
            connection.rollback()
        result = future.result(_PATIENCE_S)
    assert isinstance(result, Superseded if is_kept else Committed)
    assert stored(coordinator) == ([] if is_kept else ["old"])


BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def wait_until_blocked(is_blocked: Callable[[], bool]) -> None:
    """Ask the server until a caller waits for the row; bounded, and each question takes it some time."""
    for _ in range(20_000):
        if is_blocked():
            return
    raise AssertionError("nobody waits for the row")
