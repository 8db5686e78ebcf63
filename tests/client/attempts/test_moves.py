"""The calls of docs/attempts.md, section A2, on every store, blocking and with asyncio."""

import pytest

from client import History
from client.attempts import (
    Attempt,
    Committed,
    Coordinator,
    Decision,
    DeniedError,
    Refused,
    Superseded,
)
from client.outcomes import CANCELLED, READ_TIMEOUT
from client.reader import Settled
from client.validators import Validator

from .bodies import ERROR, HEAD, call, pieces, whole
from .places import Place


def read(attempt: Attempt, body: bytes) -> Attempt:
    """Read a body into an attempt."""
    attempt.head(*HEAD)
    attempt.feed(body)
    return attempt


def texts(coordinator: Coordinator, conversation: str = "default") -> list[str]:
    """List what a history says."""
    return [message["content"] for message in coordinator.history(conversation)]


def partials(coordinator: Coordinator, task: str = "t") -> list[str]:
    """List what the quarantine holds of a task."""
    return [partial.text for partial in coordinator.quarantined(task)]


# -- begin


def test_an_attempt_knows_what_it_is(where: Place) -> None:
    """An attempt has an id of its own, a fence, its adapter and its contract, with their versions."""
    attempt = where.coordinator().begin("t", "q")
    record = attempt.record
    assert (attempt.id, attempt.task_id, attempt.fence, attempt.replaces) == ("attempt-1", "t", 1, None)
    assert (record.adapter, record.contract, record.origin) == ("openai-chat/1", "strict/1", "begin")


def test_a_task_has_one_active_attempt(where: Place) -> None:
    """A second begin is denied while an attempt is active, and the one that is active is named."""
    coordinator = where.coordinator()
    coordinator.begin("t", "q")
    with pytest.raises(DeniedError, match="attempt-1"):
        coordinator.begin("t", "q")
    assert [record.attempt_id for record in coordinator.attempts("t")] == ["attempt-1"]


def test_an_open_task_may_begin_again(where: Place) -> None:
    """After a cancel the task is open: a begin is a further attempt of it, with the next fence."""
    coordinator = where.coordinator()
    coordinator.begin("t", "q").cancel()
    again = coordinator.begin("t", "q")
    assert (again.fence, again.replaces) == (2, None)


@pytest.mark.parametrize(("question", "conversation"), [("other", "default"), ("q", "other")])
def test_a_task_keeps_its_question(where: Place, question: str, conversation: str) -> None:
    """A task's id is never used for another question or conversation."""
    coordinator = where.coordinator()
    coordinator.begin("t", "q").cancel()
    with pytest.raises(DeniedError, match="id of its own"):
        coordinator.begin("t", question, conversation)


def test_a_committed_task_is_not_begun_again(where: Place) -> None:
    """A task that has its answer takes no further attempt."""
    coordinator = where.coordinator()
    read(coordinator.begin("t", "q"), whole("a")).commit()
    with pytest.raises(DeniedError, match="committed"):
        coordinator.begin("t", "q")


# -- commit


def test_a_complete_turn_is_committed(where: Place) -> None:
    """Question and answer enter the history together, and the attempt is accepted."""
    coordinator = where.coordinator()
    result = read(coordinator.begin("t", "你好？"), whole("你好，Java 🌱")).commit()
    assert isinstance(result, Committed)
    assert coordinator.history() == [{"role": "user", "content": "你好？"}, result.message]
    assert result.message == {"role": "assistant", "content": "你好，Java 🌱"}
    (record,) = coordinator.attempts("t")
    assert record.decided is not None
    assert record.decided.decision is Decision.ACCEPTED
    assert record.decided.evidence == result.evidence


def test_the_answer_is_what_the_history_makes_of_the_turn(where: Place) -> None:
    """The stored message is the one that `History` appends for the same turn, tool calls included."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), call('{"id": 1}'))
    assert attempt.settled is not None
    history = History()
    assert history.accept("q", attempt.settled)
    assert isinstance(attempt.commit(), Committed)
    assert coordinator.history() == history.messages


def test_nothing_is_published_before_commit(where: Place) -> None:
    """A turn that is COMPLETE is in no history until the coordinator has committed it."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    assert attempt.settled is not None
    assert texts(coordinator) == []


def test_commit_again_is_the_same_answer_again(where: Place) -> None:
    """A second commit of the same attempt gives an equal result, and the answer is stored once."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    assert attempt.commit() == attempt.commit()
    assert texts(coordinator) == ["q", "a"]


def test_a_second_coordinator_says_the_same(where: Place) -> None:
    """What was committed is the store's to know: another coordinator gives an equal result."""
    attempt = read(where.coordinator().begin("t", "q"), whole("a"))
    assert attempt.commit() == where.coordinator().commit(attempt)


def test_another_payload_is_a_mistake(where: Place) -> None:
    """An attempt that was decided with one payload is not decided with another."""
    coordinator = where.coordinator()
    attempt = coordinator.begin("t", "q")
    forged = Attempt(coordinator, attempt.record, None)
    assert isinstance(read(attempt, whole("a")).commit(), Committed)
    with pytest.raises(DeniedError, match="another payload"):
        coordinator.commit(read(forged, whole("b")))
    assert texts(coordinator) == ["q", "a"]


def test_equal_texts_are_two_answers(where: Place) -> None:
    """Nothing is told apart by its text: two tasks with one answer are two entries."""
    coordinator = where.coordinator()
    for task in ("t1", "t2"):
        read(coordinator.begin(task, "q"), whole("ok")).commit()
    assert texts(coordinator) == ["q", "ok", "q", "ok"]


REFUSED = {
    "cut before the terminal event": (pieces("half")[0] + pieces("half")[1], "INCOMPLETE_STREAM", Decision.REFUSED),
    "cut at its limit": (whole("half", "length"), "INCOMPLETE_FINISH", Decision.REFUSED),
    "an unlisted reason": (whole("half", "bored"), "UNSUPPORTED_OUTCOME", Decision.REFUSED),
    "the provider's error": (pieces("half")[0] + ERROR, "PROVIDER_ERROR", Decision.FAILED),
    "no protocol": (pieces("half")[0] + b"data: {}x\n\n", "INVALID_JSON", Decision.REFUSED),
}


@pytest.mark.parametrize(("body", "outcome", "decision"), REFUSED.values(), ids=list(REFUSED))
def test_a_turn_that_is_not_complete_is_refused(where: Place, body: bytes, outcome: str, decision: Decision) -> None:
    """The result has the turn's outcome and why; the text is in the quarantine, marked, and not in the history."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), body)
    if attempt.settled is None:
        attempt.end("eof")
    assert attempt.settled is not None
    result = attempt.commit()
    assert isinstance(result, Refused)
    assert (result.outcome, result.why) == (outcome, attempt.settled.why)
    assert texts(coordinator) == []
    assert [(partial.text, partial.mark) for partial in coordinator.quarantined("t")] == [("half", "interrupted")]
    (record,) = coordinator.attempts("t")
    assert record.decided is not None
    assert record.decided.decision is decision
    assert attempt.commit() == result


def test_the_decision_of_a_failed_request(where: Place) -> None:
    """A status that is no answer and a read that timed out are failures, not refusals."""
    coordinator = where.coordinator()
    first = coordinator.begin("t1", "q")
    first.head(503, "text/plain")
    second = coordinator.begin("t2", "q")
    second.head(*HEAD)
    second.stop(READ_TIMEOUT, "no byte for a second")
    assert [type(attempt.commit()) for attempt in (first, second)] == [Refused, Refused]
    records = coordinator.attempts("t1") + coordinator.attempts("t2")
    assert [record.decided and record.decided.decision for record in records] == [Decision.FAILED, Decision.FAILED]


def test_a_turn_without_an_outcome_is_settled_by_commit(where: Place) -> None:
    """Who asks to publish before the end is refused as INCOMPLETE_STREAM, and the attempt reads no further."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), pieces("half")[0])
    result = attempt.commit()
    assert isinstance(result, Refused)
    assert result.outcome == "INCOMPLETE_STREAM"
    with pytest.raises(RuntimeError, match="settled"):
        attempt.feed(pieces("half")[1])


def test_partial_calls_are_kept_apart(where: Place) -> None:
    """Arguments that parse are no proposal while the evidence is missing: they are kept with the partial text."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), call('{"id": 1}')[: -len(b"data: [DONE]\n\n")])
    attempt.end("reset")
    assert isinstance(attempt.commit(), Refused)
    (partial,) = coordinator.quarantined("t")
    assert [known["arguments"] for known in partial.calls] == ['{"id": 1}']
    assert texts(coordinator) == []


def test_an_empty_partial_is_not_kept(where: Place) -> None:
    """Where nothing was visible there is nothing to keep."""
    coordinator = where.coordinator()
    coordinator.begin("t", "q").commit()
    assert partials(coordinator) == []


@pytest.mark.parametrize("text", ["nul \0 inside", "line\nline", '"quoted" \\', "🌱"])
def test_texts_are_kept_exactly(where: Place, text: str) -> None:
    """Every text comes back as it went in, a null character included, from history and quarantine."""
    coordinator = where.coordinator()
    read(coordinator.begin("t1", text), whole(text)).commit()
    read(coordinator.begin("t2", text), whole(text, finish=text)).commit()
    assert texts(coordinator) == [text, text]
    assert partials(coordinator, "t2") == [text]
    decided = coordinator.attempts("t2")[0].decided
    assert decided is not None
    assert decided.evidence is not None
    assert decided.evidence.finish_reason == text


# -- the validator


def only_json(turn: Settled) -> str | None:
    """Refuse what does not begin as a JSON object."""
    return None if turn.preview.startswith("{") else "not an object"


def test_a_validator_has_the_second_word(where: Place) -> None:
    """A complete answer that the task does not want is REJECTED, with the validator and why, and kept apart."""
    coordinator = where.coordinator(validate=Validator(name="ticket", version="2", check=only_json))
    result = read(coordinator.begin("t", "q"), whole("prose")).commit()
    assert isinstance(result, Refused)
    assert (result.outcome, result.why) == ("REJECTED", "ticket 2: not an object")
    assert result.evidence is not None
    assert result.evidence.terminal_class == "complete"
    assert partials(coordinator) == ["prose"]
    decided = coordinator.attempts("t")[0].decided
    assert decided is not None
    assert (decided.decision, decided.validator) == (Decision.REFUSED, "ticket 2")


def test_a_validator_may_say_yes(where: Place) -> None:
    """An answer that the validator takes is committed, and the record says who was asked."""
    coordinator = where.coordinator(validate=Validator(name="ticket", version="2", check=only_json))
    assert isinstance(read(coordinator.begin("t", "q"), whole("{}")).commit(), Committed)
    decided = coordinator.attempts("t")[0].decided
    assert decided is not None
    assert decided.validator == "ticket 2"


def test_a_validator_sees_complete_turns_only(where: Place) -> None:
    """Evidence comes first: what is incomplete is never shown to a validator."""
    asked: list[Settled] = []

    def check(turn: Settled) -> str | None:
        asked.append(turn)
        return None

    coordinator = where.coordinator(validate=Validator(name="any", version="1", check=check))
    assert isinstance(read(coordinator.begin("t", "q"), whole("half", "length")).commit(), Refused)
    assert asked == []


# -- supersede


def test_a_superseded_attempt_publishes_nothing(where: Place) -> None:
    """However complete the old one is and whenever it asks, before the new one or after it: superseded."""
    coordinator = where.coordinator()
    old = read(coordinator.begin("t", "q"), pieces("old")[0])
    new = coordinator.supersede(old)
    old.feed(b"".join(pieces("old")[1:]))
    assert isinstance(old.commit(), Superseded)
    assert isinstance(read(new, whole("new")).commit(), Committed)
    assert isinstance(old.commit(), Superseded)
    assert texts(coordinator) == ["q", "new"]
    assert partials(coordinator) == ["old"]


def test_an_older_attempt_that_finishes_last_does_not_win(where: Place) -> None:
    """Queued events of the first attempt that arrive after the second was accepted change nothing."""
    coordinator = where.coordinator()
    old = coordinator.begin("t", "q")
    new = coordinator.supersede(old)
    read(new, whole("new")).commit()
    assert isinstance(read(old, whole("old")).commit(), Superseded)
    assert texts(coordinator) == ["q", "new"]
    assert partials(coordinator) == ["old"]


def test_superseding_is_at_once(where: Place) -> None:
    """The old attempt is decided when the new one is made, and what was visible of it is kept then."""
    coordinator = where.coordinator()
    new = coordinator.supersede(read(coordinator.begin("t", "q"), pieces("old")[0]))
    old, active = coordinator.attempts("t")
    assert (new.fence, new.replaces, active.origin) == (2, old.attempt_id, "supersede")
    assert old.decided is not None
    assert (old.decided.decision, old.decided.outcome, active.decided) == (Decision.SUPERSEDED, "SUPERSEDED", None)
    assert partials(coordinator) == ["old"]


def test_a_superseded_commit_settles_nothing(where: Place) -> None:
    """Ownership is asked before the turn: one that lost it and has no outcome goes on without."""
    coordinator = where.coordinator()
    old = coordinator.begin("t", "q")
    coordinator.supersede(old)
    assert isinstance(old.commit(), Superseded)
    assert old.settled is None
    read(old, whole("late"))


def test_another_process_may_supersede_by_id(where: Place) -> None:
    """Who knows only the id can take the right away; the text comes to the quarantine when its reader asks."""
    coordinator = where.coordinator()
    old = read(coordinator.begin("t", "q"), pieces("old")[0])
    where.coordinator().supersede(old.id)
    assert partials(coordinator) == []
    assert isinstance(old.commit(), Superseded)
    assert partials(coordinator) == ["old"]


@pytest.mark.parametrize("end", ["superseded", "cancelled", "committed", "refused"])
def test_only_the_active_attempt_is_superseded(where: Place, end: str) -> None:
    """An attempt that is decided has no right that could be taken from it."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a") if end == "committed" else pieces("a")[0])
    if end == "superseded":
        coordinator.supersede(attempt)
    elif end == "cancelled":
        attempt.cancel()
    else:
        attempt.commit()
    before = coordinator.attempts("t")
    with pytest.raises(DeniedError, match="supersede"):
        coordinator.supersede(attempt)
    assert coordinator.attempts("t") == before


# -- retry


@pytest.mark.parametrize("end", ["refused", "failed", "cancelled"])
def test_a_retry_is_fresh(where: Place, end: str) -> None:
    """A retry has an empty buffer and says what it replaces; its answer is its own text and no other."""
    coordinator = where.coordinator()
    old = read(coordinator.begin("t", "q"), pieces("first ")[0])
    if end == "cancelled":
        old.cancel()
    else:
        if end == "failed":
            old.feed(ERROR)
        old.commit()
    new = coordinator.retry(old)
    assert (new.preview, new.replaces, new.fence, new.record.origin) == ("", old.id, 2, "retry")
    read(new, whole("second")).commit()
    assert texts(coordinator) == ["q", "second"]
    assert partials(coordinator) == ["first "]


def test_retries_are_bounded(where: Place) -> None:
    """The fourth retry of a task is denied: the contract allows three."""
    coordinator = where.coordinator()
    attempt = coordinator.begin("t", "q")
    for _ in range(3):
        attempt.commit()
        attempt = coordinator.retry(attempt)
    attempt.commit()
    with pytest.raises(DeniedError, match="3 retries"):
        coordinator.retry(attempt)
    assert len(coordinator.attempts("t")) == 4


def test_only_the_newest_is_retried(where: Place) -> None:
    """An attempt that was retried once is not retried a second time."""
    coordinator = where.coordinator()
    first = coordinator.begin("t", "q")
    first.commit()
    coordinator.retry(first).commit()
    with pytest.raises(DeniedError, match="not the newest"):
        coordinator.retry(first)


def test_what_is_not_over_is_not_retried(where: Place) -> None:
    """An active attempt is superseded, never retried; an accepted one is final."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    with pytest.raises(DeniedError, match="did not end"):
        coordinator.retry(attempt)
    attempt.commit()
    with pytest.raises(DeniedError, match="did not end"):
        coordinator.retry(attempt)


# -- cancel


def test_a_cancelled_attempt_is_over(where: Place) -> None:
    """Its text is kept apart, it reads nothing more, and its commit is refused as CANCELLED however whole it is."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    attempt.cancel()
    result = attempt.commit()
    assert isinstance(result, Refused)
    assert (result.outcome, texts(coordinator), partials(coordinator)) == (CANCELLED, [], ["a"])
    assert attempt.commit() == result
    unfinished = read(coordinator.retry(attempt), pieces("b")[0])
    unfinished.cancel()
    with pytest.raises(RuntimeError, match="CANCELLED"):
        unfinished.feed(b"data: x\n\n")


def test_cancel_by_id(where: Place) -> None:
    """Another process cancels by the id; the reader's own text is kept when it asks."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    where.coordinator().cancel(attempt.id)
    result = attempt.commit()
    assert isinstance(result, Refused)
    assert (result.outcome, partials(coordinator)) == (CANCELLED, ["a"])


@pytest.mark.parametrize("end", ["committed", "refused", "cancelled", "superseded"])
def test_a_decided_attempt_is_not_cancelled(where: Place, end: str) -> None:
    """A decision stands; a cancel that comes after it is denied and says which it was."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a") if end == "committed" else pieces("a")[0])
    if end == "superseded":
        coordinator.supersede(attempt)
    elif end == "cancelled":
        attempt.cancel()
    else:
        attempt.commit()
    with pytest.raises(DeniedError, match="is decided; it is"):
        attempt.cancel()


def test_an_old_attempt_cannot_cancel_the_new_one(where: Place) -> None:
    """A cancel of the superseded attempt leaves its successor's right alone."""
    coordinator = where.coordinator()
    old = coordinator.begin("t", "q")
    new = coordinator.supersede(old)
    with pytest.raises(DeniedError):
        old.cancel()
    assert isinstance(read(new, whole("new")).commit(), Committed)


# -- clear


def test_a_cleared_conversation_is_empty(where: Place) -> None:
    """Its answers are in no history, its active attempt publishes nothing, and its tasks are closed."""
    coordinator = where.coordinator()
    read(
        coordinator.begin("t1", "q"),
        whole("a"),
    ).commit()
    late = read(coordinator.begin("t2", "q"), whole("b"))
    read(coordinator.begin("other", "q", "elsewhere"), whole("c")).commit()
    coordinator.clear()
    assert isinstance(late.commit(), Superseded)
    assert (texts(coordinator), texts(coordinator, "elsewhere")) == ([], ["q", "c"])
    assert partials(coordinator, "t2") == ["b"]
    with pytest.raises(DeniedError, match="cleared"):
        coordinator.begin("t2", "q")


def test_a_conversation_goes_on_after_clear(where: Place) -> None:
    """A new task of a cleared conversation is a new beginning; clearing twice changes nothing more."""
    coordinator = where.coordinator()
    read(coordinator.begin("t1", "q"), whole("a")).commit()
    coordinator.clear()
    coordinator.clear()
    read(coordinator.begin("t2", "q"), whole("b")).commit()
    assert texts(coordinator) == ["q", "b"]


def test_a_committed_attempt_stays_so_after_clear(where: Place) -> None:
    """Asked again after a clear, an accepted attempt gives its result again, and the history stays empty."""
    coordinator = where.coordinator()
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    result = attempt.commit()
    coordinator.clear()
    assert (attempt.commit(), texts(coordinator)) == (result, [])


# -- mistakes


def test_an_unknown_attempt_is_named(where: Place) -> None:
    """An id that the store does not know is the caller's mistake."""
    with pytest.raises(DeniedError, match="no attempt nobody"):
        where.coordinator().supersede("nobody")


def test_an_attempt_is_committed_under_its_own_contract(where: Place) -> None:
    """A coordinator of another contract does not judge it."""
    attempt = read(where.coordinator("compat/1").begin("t", "q"), whole("a"))
    with pytest.raises(DeniedError, match="begun under compat/1"):
        where.coordinator("strict/1").commit(attempt)


def test_a_forgiving_contract_has_its_way(where: Place) -> None:
    """Under compat/1 a finish without a terminal event is accepted, and the record says what was missing."""
    coordinator = where.coordinator("compat/1")
    attempt = read(coordinator.begin("t", "q"), b"".join(pieces("a")[:2]))
    attempt.end("eof", is_framed=False)
    result = attempt.commit()
    assert isinstance(result, Committed)
    assert (result.evidence.terminal_event, result.evidence.framing_complete) == (None, True)
    other = coordinator.begin("t2", "q")
    read(other, pieces("b")[0] + b"data: [DONE]\n\n")
    result = other.commit()
    assert isinstance(result, Committed)
    assert (result.evidence.terminal_event, result.evidence.terminal_reason_source) == ("[DONE]", "none")
