"""Each conditional statement of a store has its effect once, and none for whoever is too late.

The coordinator reads and moves a task in one transaction; here it is moved by what was read before, as
another process would that was slower.
"""

from dataclasses import replace
from typing import Any

import pytest

from client.attempts import DeniedError, Record
from client.attempts.records import Decided, Decision, Task, TaskState
from client.attempts.store import Transaction
from client.outcomes import CANCELLED

from .bodies import HEAD, whole
from .places import Place

DECIDED = Decided(decision=Decision.CANCELLED, outcome=CANCELLED, why="too late", at_us=1)


def begun(where: Place) -> tuple[Task, Record]:
    """Begin a task; give it and its attempt as they are now."""
    record = where.coordinator().begin("t", "q").record
    return now(where), record


def now(where: Place) -> Task:
    """Give the task as it is."""
    task = where.run(lambda tx: tx.task("t"))
    assert task is not None
    return task


@pytest.mark.parametrize("changed", [{"fence": 0}, {"fence": 2}, {"active": None}, {"active": "attempt-9"}])
def test_take_asks_for_fence_and_active(where: Place, changed: dict[str, Any]) -> None:
    """A task that is not as it was seen is not taken."""
    task, _ = begun(where)
    assert not where.run(lambda tx: tx.take(replace(task, **changed), "attempt-8", 8))
    assert now(where) == task


@pytest.mark.parametrize("changed", [{"fence": 2}, {"attempt_id": "attempt-9"}])
def test_release_and_publish_ask_for_fence_and_active(where: Place, changed: dict[str, Any]) -> None:
    """An attempt of another fence or id moves nothing and stores nothing."""
    task, record = begun(where)
    stale = replace(record, **changed)
    assert not where.run(lambda tx: tx.release(stale))
    assert not where.run(lambda tx: tx.publish(stale, DECIDED, b"{}"))
    assert (now(where), where.coordinator().attempts("t"), where.coordinator().history()) == (task, [record], [])


def test_nothing_moves_a_closed_task(where: Place) -> None:
    """A task that is committed is neither taken nor released nor published again, whoever it names as active."""
    _, record = begun(where)
    coordinator = where.coordinator()
    attempt = coordinator.supersede(record.attempt_id)
    attempt.head(*HEAD)
    attempt.feed(whole("a"))
    attempt.commit()
    closed = now(where)
    assert (closed.state, closed.active) == (TaskState.COMMITTED, None)
    assert not where.run(lambda tx: tx.take(closed, "attempt-8", 8))
    assert not where.run(lambda tx: tx.take(replace(closed, state=TaskState.OPEN), "attempt-8", 8))
    assert not where.run(lambda tx: tx.release(attempt.record))
    assert not where.run(lambda tx: tx.publish(attempt.record, DECIDED, b"{}"))
    assert now(where) == closed


def test_an_attempt_is_decided_once(where: Place) -> None:
    """A second decision has no effect."""
    _, record = begun(where)
    first = replace(DECIDED, why="first")
    where.run(lambda tx: tx.decide(record.attempt_id, first))
    where.run(lambda tx: tx.decide(record.attempt_id, DECIDED))
    assert where.coordinator().attempts("t")[0].decided == first


def test_clear_raises_the_fence(where: Place) -> None:
    """A cleared task has the next fence, a committed one as well; clearing it again changes nothing."""
    begun(where)
    where.coordinator().clear()
    assert (now(where).fence, now(where).state) == (2, TaskState.CLEARED)
    where.coordinator().clear()
    assert now(where).fence == 2


def test_all_or_nothing(where: Place) -> None:
    """Work that raises leaves nothing of what it did before."""
    task, record = begun(where)

    def work(tx: Transaction) -> None:
        assert tx.release(record)
        tx.decide(record.attempt_id, DECIDED)
        raise DeniedError("after all")

    with pytest.raises(DeniedError):
        where.run(work)
    assert (now(where), where.coordinator().attempts("t")) == (task, [record])
