"""What stands behind the conditional statements: direct SQL that tries to publish is refused by the database.

Each row here is a change that no call of the coordinator makes; the control at the end shows that the
same statements pass where they are right, so that a refusal is the constraint's and no slip of the test.
"""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from client.attempts import Attempt

from .bodies import HEAD, pieces, whole
from .places import Place

ACCEPT = """INSERT INTO endmark_accepted (task_id, attempt_id, fence, decision, payload, payload_sha256)
  SELECT task_id, attempt_id, fence, decision, payload, payload_sha256 FROM
  (SELECT '{task}' AS task_id, '{attempt}' AS attempt_id, {fence} AS fence, 'accepted' AS decision) AS a,
  (SELECT payload, payload_sha256 FROM endmark_accepted WHERE task_id = 'done') AS p"""
DECIDE = """UPDATE endmark_attempt SET decision = 'accepted', outcome = 'COMPLETE', decided_at_us = 1,
  framing_complete = {framing}, terminal_class = {terminal_class}, terminal_event = {event}, needs_terminal = {yes},
  terminal_reason_source = {source}, needs_reason = {yes}, payload_sha256 = {sha256} WHERE attempt_id = '{attempt}'"""
SHA256 = "(SELECT payload_sha256 FROM endmark_accepted WHERE task_id = 'done')"
WHOLE = {
    "framing": "{yes}",
    "terminal_class": "'complete'",
    "event": "'[DONE]'",
    "source": "'provider'",
    "sha256": SHA256,
}
COMMIT = "UPDATE endmark_task SET state = 'committed', active = NULL WHERE task_id = '{task}'"
ADD = """INSERT INTO endmark_attempt (attempt_id, task_id, fence, origin, replaces, adapter, contract, started_at_us)
  VALUES ('{attempt}', '{task}', {fence}, {origin}, 'openai-chat/1', 'strict/1', 1)"""


def decide(attempt: str, **changed: str) -> str:
    """Give the statement that accepts an attempt, with parts of its evidence changed."""
    return DECIDE.replace("{attempt}", attempt).format(**(WHOLE | changed), yes="{yes}").replace("{{yes}}", "{yes}")


def accept(task: str, attempt: str, fence: int) -> str:
    """Give the statement that stores an answer."""
    return ACCEPT.format(task=task, attempt=attempt, fence=fence)


def add(attempt: str, task: str, fence: int, origin: str = "'begin', NULL") -> str:
    """Give the statement that adds an attempt."""
    return ADD.format(attempt=attempt, task=task, fence=fence, origin=origin)


STALE = "newest attempt of a committed task"
EVIDENCE = "endmark_attempt_evidence"

# What refuses, and the statements, of which the last is refused.
# Tasks: `done` is committed by a1; `live` had a2, superseded, and has a3, active; `over` has a4, refused.
REFUSED: dict[str, tuple[str, ...]] = {
    "a second answer of a task": (
        "unique",
        accept("done", "a1", 1),
    ),
    "an answer of an attempt that was superseded": (STALE, COMMIT.format(task="live"), accept("live", "a2", 1)),
    "an answer of an attempt that was not decided": (
        "foreign key",
        COMMIT.format(task="live"),
        accept("live", "a3", 2),
    ),
    "an answer of an attempt that was refused": (
        "foreign key",
        COMMIT.format(task="over"),
        accept("over", "a4", 1),
    ),
    "an answer of an attempt of another task": ("unique", COMMIT.format(task="over"), accept("over", "a1", 1)),
    "an answer of a task that is open": (STALE, decide("a3"), accept("live", "a3", 2)),
    "an answer of a cleared task": (
        STALE,
        decide("a3"),
        "UPDATE endmark_task SET state = 'cleared', active = NULL, fence = 3 WHERE task_id = 'live'",
        accept("live", "a3", 2),
    ),
    "an answer with an older fence": (
        STALE,
        decide("a3"),
        "UPDATE endmark_task SET state = 'committed', active = NULL, fence = 3 WHERE task_id = 'live'",
        accept("live", "a3", 2),
    ),
    "an answer although a newer attempt is there": (
        STALE,
        decide("a3"),
        add("a9", "live", 3),
        COMMIT.format(task="live"),
        accept("live", "a3", 2),
    ),
    "an answer whose hash is not the attempt's": (
        "foreign key",
        decide("a3", sha256="'" + "0" * 64 + "'"),
        COMMIT.format(task="live"),
        accept("live", "a3", 2),
    ),
    "accepted without complete framing": (
        EVIDENCE,
        decide("a3", framing="{no}"),
    ),
    "accepted with framing unknown": (
        EVIDENCE,
        decide("a3", framing="NULL"),
    ),
    "accepted with another class": (
        EVIDENCE,
        decide("a3", terminal_class="'length'"),
    ),
    "accepted without a class": (
        EVIDENCE,
        decide("a3", terminal_class="NULL"),
    ),
    "accepted without the terminal event": (
        EVIDENCE,
        decide("a3", event="NULL"),
    ),
    "accepted with a reason that nobody gave": (
        EVIDENCE,
        decide("a3", source="'none'"),
    ),
    "accepted with a reason of unknown source": (
        EVIDENCE,
        decide("a3", source="NULL"),
    ),
    "accepted without a payload's hash": (
        EVIDENCE,
        decide("a3", sha256="NULL"),
    ),
    "a decision of no such name": (
        "endmark_attempt_decision",
        decide("a3").replace("'accepted'", "'great'"),
    ),
    "a decision without an outcome": (
        "endmark_attempt_decided",
        decide("a3").replace("'COMPLETE'", "NULL"),
    ),
    "a second decision": (
        "is decided once",
        decide("a2"),
    ),
    "a second active attempt": (
        "unique",
        add("a9", "live", 3),
    ),
    "a fence twice": (
        "unique",
        add("a9", "over", 1),
    ),
    "a fence below one": (
        "endmark_attempt_fence",
        add("a9", "over", 0),
    ),
    "an id twice": (
        "unique",
        add("a1", "over", 2),
    ),
    "an attempt of no task": (
        "foreign key",
        add("a9", "nowhere", 1),
    ),
    "a retry of nothing": (
        "endmark_attempt_replaces",
        add("a9", "over", 2, "'retry', NULL"),
    ),
    "a retry of an attempt that is not there": (
        "foreign key",
        add("a9", "over", 2, "'retry', 'a8'"),
    ),
    "another fence for an attempt": (
        "is decided once",
        "UPDATE endmark_attempt SET fence = 9 WHERE attempt_id = 'a3'",
    ),
    "an answer that changes": (
        "never changes",
        "UPDATE endmark_accepted SET fence = 1",
    ),
    "an answer that goes": (
        "never deleted",
        "DELETE FROM endmark_accepted",
    ),
    "an attempt that goes": (
        "never deleted",
        "DELETE FROM endmark_attempt WHERE attempt_id = 'a2'",
    ),
    "a task that goes": (
        "never deleted",
        "DELETE FROM endmark_task",
    ),
    "a task that is opened again": (
        "not opened again",
        "UPDATE endmark_task SET state = 'open' WHERE task_id = 'done'",
    ),
    "a fence that falls": (
        "fence never falls",
        "UPDATE endmark_task SET fence = 1 WHERE task_id = 'live'",
    ),
    "another question": (
        "keeps its question",
        "UPDATE endmark_task SET question = '\"x\"' WHERE task_id = 'live'",
    ),
    "a task of no such state": (
        "endmark_task_state",
        "UPDATE endmark_task SET state = 'done', active = NULL WHERE task_id = 'live'",
    ),
    "an active attempt of a closed task": (
        "endmark_task_active",
        "UPDATE endmark_task SET state = 'committed' WHERE task_id = 'live'",
    ),
    "a partial text that changes": (
        "never changes",
        "UPDATE endmark_quarantine SET text = '\"x\"'",
    ),
    "a partial text without its mark": (
        "endmark_quarantine_mark",
        "INSERT INTO endmark_quarantine VALUES ('a3', 'live', 2, '\"x\"', '[]', 'finished', 1)",
    ),
}


@pytest.fixture
def told(sync_database: Place) -> Place:
    """Give a database with tasks in every state."""
    sync_database.counter.new_id = map("a{}".format, range(1, 9)).__next__  # type: ignore[method-assign]
    coordinator = sync_database.coordinator()

    def read(attempt: Attempt, body: bytes) -> Attempt:
        attempt.head(*HEAD)
        attempt.feed(body)
        return attempt

    read(coordinator.begin("done", "q"), whole("a")).commit()
    coordinator.supersede(read(coordinator.begin("live", "q"), pieces("b")[0]))
    coordinator.begin("over", "q").commit()
    return sync_database


def run(place: Place, statements: tuple[str, ...]) -> None:
    """Run statements in one transaction, with truth as the database spells it."""
    words = {"sqlite": ("1", "0"), "postgresql": ("TRUE", "FALSE")}[place.kind]
    with place.store.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement.replace("{yes}", words[0]).replace("{no}", words[1])))


@pytest.mark.parametrize(("by", "statements"), [(row[0], row[1:]) for row in REFUSED.values()], ids=list(REFUSED))
def test_the_database_refuses(told: Place, by: str, statements: tuple[str, ...]) -> None:
    """The last statement is refused, whoever sends it, by the constraint or guard that is there for it."""
    for statement in statements[:-1]:
        run(told, (statement,))
    with pytest.raises(IntegrityError, match=f"(?i){by}"):
        run(told, statements[-1:])


def test_the_same_statements_pass_where_they_are_right(told: Place) -> None:
    """The control: accepted with its evidence, committed, stored: the database takes it."""
    run(told, (decide("a3"), COMMIT.format(task="live"), accept("live", "a3", 2)))
    assert [message["content"] for message in told.coordinator().history()] == ["q", "a", "q", "a"]


def test_a_partial_text_may_be_deleted(told: Place) -> None:
    """How long partial texts are kept is their owner's to decide."""
    run(told, ("DELETE FROM endmark_quarantine",))
    assert told.coordinator().quarantined("live") == []


def test_a_task_that_others_moved_is_not_published(told: Place) -> None:
    """Where another program took the task away by hand, the attempt that thinks it is active is superseded."""
    coordinator = told.coordinator()
    attempt = Attempt(coordinator, coordinator.attempts("live")[1], None)
    attempt.head(*HEAD)
    attempt.feed(whole("late"))
    run(told, ("UPDATE endmark_task SET fence = fence + 1 WHERE task_id = 'live'",))
    assert attempt.commit().__class__.__name__ == "Superseded"
    assert [message["content"] for message in coordinator.history()] == ["q", "a"]
    assert [partial.text for partial in coordinator.quarantined("live")] == ["b", "late"]
