"""The turn's table: every pair of state and signal, under the three contracts."""

import pytest

from client.contract import Contract, load
from client.outcomes import (
    COMPLETE,
    INCOMPLETE_FINISH,
    INVALID_JSON,
    LIMIT,
    PROTOCOL,
    PROVIDER_ERROR,
    UNSUPPORTED_OUTCOME,
    Outcome,
)
from client.signals import NEW_CALL, Kind, Signal, finish
from client.turn import TABLE, State, Turn

FROZEN, STRICT, COMPAT = load("frozen-text/1"), load("strict/1"), load("compat/1")


def signal(kind: Kind, **more: object) -> Signal:
    """Give a signal with the members that a test is about."""
    return Signal(kind=kind, **more)  # type: ignore[arg-type]


TEXT, STOP, DONE, META = signal(Kind.TEXT, value="x"), finish("stop"), signal(Kind.DONE), signal(Kind.META)
CALL = signal(Kind.TOOL, call=0, id="a", name="f", value="{}")


def turn(contract: Contract = STRICT, dialect: str = "openai-chat", starts: bool = False) -> Turn:
    """Give a turn of a dialect without blocks."""
    return Turn(contract, contract.dialects[dialect], starts, False, lambda _: None)


def settle(contract: Contract, *signals: Signal) -> Outcome | None:
    """Apply signals one event each; give the outcome, None where there is none yet."""
    moving = turn(contract)
    for one in signals:
        fault = moving.apply([one])
        if fault:
            return fault.outcome
    return None


FROM_OPEN: list[tuple[Signal, Outcome | None, Outcome | None]] = [
    (TEXT, None, None),
    (META, None, None),
    (signal(Kind.USAGE), None, None),
    (signal(Kind.UNKNOWN), PROTOCOL, None),
    (signal(Kind.REASONING, value="x"), None, None),
    (signal(Kind.REFUSAL, value="x"), PROTOCOL, None),
    (CALL, PROTOCOL, None),
    (signal(Kind.TOOL), PROTOCOL, None),
    (signal(Kind.START), PROTOCOL, PROTOCOL),
    (signal(Kind.TEXT, value="x", candidate=1), PROTOCOL, None),
    (STOP, None, None),
    (finish("length"), INCOMPLETE_FINISH, INCOMPLETE_FINISH),
    (finish("content_filter"), INCOMPLETE_FINISH, INCOMPLETE_FINISH),
    (finish("error"), PROVIDER_ERROR, PROVIDER_ERROR),
    (finish("tool_calls"), UNSUPPORTED_OUTCOME, PROTOCOL),
    (finish("new"), UNSUPPORTED_OUTCOME, UNSUPPORTED_OUTCOME),
    (finish(""), UNSUPPORTED_OUTCOME, UNSUPPORTED_OUTCOME),
    (signal(Kind.ERROR, value="x"), PROVIDER_ERROR, PROVIDER_ERROR),
    (DONE, PROTOCOL, PROTOCOL),
]

FROM_FINISHED: list[tuple[Signal, Outcome | None, Outcome | None]] = [
    (META, None, None),
    (signal(Kind.USAGE), None, None),
    (DONE, COMPLETE, COMPLETE),
    (signal(Kind.ERROR, value="x"), PROVIDER_ERROR, PROVIDER_ERROR),
    (TEXT, PROTOCOL, PROTOCOL),
    (signal(Kind.REASONING, value="x"), PROTOCOL, PROTOCOL),
    (CALL, PROTOCOL, PROTOCOL),
    (finish("content_filter"), INCOMPLETE_FINISH, INCOMPLETE_FINISH),
    (finish("length"), PROTOCOL, PROTOCOL),
]


@pytest.mark.parametrize(("one", "frozen", "strict"), FROM_OPEN)
def test_open(one: Signal, frozen: Outcome | None, strict: Outcome | None) -> None:
    """An open turn moves as the table and the contract say."""
    assert (settle(FROZEN, one), settle(STRICT, one)) == (frozen, strict)


@pytest.mark.parametrize(("one", "strict", "compat"), FROM_FINISHED)
def test_finished(one: Signal, strict: Outcome | None, compat: Outcome | None) -> None:
    """A finished turn takes metadata, the terminal event, a late filter or an error, and nothing else."""
    assert (settle(STRICT, TEXT, STOP, one), settle(COMPAT, TEXT, STOP, one)) == (strict, compat)


def test_every_entry_has_a_method() -> None:
    """Each entry of the table names a method of the turn, and each state has entries."""
    assert all(callable(getattr(Turn, entry)) for entry in TABLE.values())
    assert {state for state, _ in TABLE} == set(State)


def test_repeated_finish() -> None:
    """The same finish twice is PROTOCOL under strict/1 and nothing under compat/1."""
    assert settle(STRICT, TEXT, STOP, STOP) == PROTOCOL
    assert settle(COMPAT, TEXT, STOP, STOP, DONE) == COMPLETE


def test_done_without_finish() -> None:
    """The terminal event alone is PROTOCOL under strict/1 and COMPLETE under compat/1."""
    assert settle(STRICT, TEXT, DONE) == PROTOCOL
    assert settle(COMPAT, TEXT, DONE) == COMPLETE
    assert settle(COMPAT, DONE) == UNSUPPORTED_OUTCOME


def test_the_end_without_done() -> None:
    """A clean end after the finish is COMPLETE under compat/1 alone; an unclean one never is."""
    for contract, is_clean, outcome in ((STRICT, True, False), (COMPAT, True, True), (COMPAT, False, False)):
        moving = turn(contract)
        moving.apply([TEXT, STOP])
        assert (moving.end(is_clean, is_framed=True).outcome == COMPLETE) is outcome


def test_start_comes_first() -> None:
    """Where a dialect has a start, nothing but notes may come before it, and it comes once."""
    moving = turn(starts=True)
    assert moving.apply([META]) is None
    found = moving.apply([TEXT])
    assert found
    assert found.outcome == PROTOCOL
    moving = turn(starts=True)
    assert moving.apply([signal(Kind.START)]) is None
    found = moving.apply([signal(Kind.START)])
    assert found


def test_blocks() -> None:
    """A block is opened once, closed once, written while open, and closed before the finish."""
    opened, closed = signal(Kind.OPEN, block=0, value="text"), signal(Kind.CLOSE, block=0)
    written = signal(Kind.TEXT, block=0, value="x")
    assert settle(STRICT, opened, written, closed, STOP, DONE) == COMPLETE
    for wrong in ([written], [closed], [opened, opened], [opened, closed, closed], [opened, closed, written]):
        assert settle(STRICT, *wrong) == PROTOCOL
    assert settle(STRICT, opened, closed, opened) == PROTOCOL
    assert settle(STRICT, opened, written, STOP) == PROTOCOL


def test_candidates() -> None:
    """A turn is finished when every candidate that was seen has finished."""
    second = signal(Kind.TEXT, value="y", candidate=1)
    assert settle(STRICT, TEXT, second, STOP, DONE) == PROTOCOL
    assert settle(STRICT, TEXT, second, STOP, finish("stop", 1), DONE) == COMPLETE
    assert settle(STRICT, TEXT, second, STOP, TEXT) == PROTOCOL


ARGUMENTS = [("{}", COMPLETE), ('{"a":1}', COMPLETE), ("", INVALID_JSON), ('{"a":', INVALID_JSON), ("[]", INVALID_JSON)]


@pytest.mark.parametrize(("arguments", "outcome"), [*ARGUMENTS, ('{"a":1,"a":2}', INVALID_JSON)])
def test_arguments(arguments: str, outcome: Outcome) -> None:
    """Arguments are judged at the completion: one strict JSON object, or INVALID_JSON."""
    call = signal(Kind.TOOL, call=0, name="f", value=arguments)
    assert settle(STRICT, call, finish("tool_calls"), DONE) == outcome


def test_a_token_limit_outranks_bad_arguments() -> None:
    """Arguments that are cut are not even looked at where the provider said it stopped at a limit."""
    call = signal(Kind.TOOL, call=0, name="f", value='{"a":')
    assert settle(STRICT, call, finish("length")) == INCOMPLETE_FINISH


def test_one_buffer_a_call() -> None:
    """Fragments of two calls are never joined; a call whose name changes is PROTOCOL."""
    moving = turn()
    parts = [("a", '{"x"'), ("b", '{"y"'), ("a", ":1}"), ("b", ":2}")]
    for name, value in parts:
        moving.apply([signal(Kind.TOOL, call=ord(name), name=name, value=value)])
    assert [(call.name, call.arguments) for call in moving.calls] == [("a", '{"x":1}'), ("b", '{"y":2}')]
    fault = moving.apply([signal(Kind.TOOL, call=ord("a"), name="c")])
    assert fault
    assert fault.outcome == PROTOCOL


def test_calls_without_a_number() -> None:
    """Calls that come whole and without a number are calls of their own."""
    moving = turn()
    for _ in range(3):
        moving.apply([signal(Kind.TOOL, call=NEW_CALL, name="f", value="{}")])
    assert len(moving.calls) == 3


def test_stop_with_a_call_is_a_proposal() -> None:
    """`stop` after calls is a tool proposal; `stop` after a refusal is a filter."""
    moving = turn()
    moving.apply([CALL, STOP])
    assert moving.reason_class == "tools"
    assert settle(STRICT, signal(Kind.REFUSAL, value="no"), STOP) == INCOMPLETE_FINISH


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.REFUSAL, Kind.REASONING, Kind.TOOL])
def test_all_buffers_are_bounded_together(kind: Kind) -> None:
    """Exactly the output limit passes, whatever the types; one unit more is LIMIT and is not added."""
    limit = STRICT.limits.output_utf16
    full = signal(kind, value="🌱" * (limit // 2), **({"call": 0} if kind is Kind.TOOL else {}))
    assert settle(STRICT, full) is None
    assert settle(STRICT, full, TEXT) == LIMIT


def test_the_raw_reason_is_kept() -> None:
    """The terminal reason is kept as the provider wrote it, listed or not."""
    moving = turn()
    moving.apply([finish("Some_New-Reason")])
    assert moving.finish_reason == "Some_New-Reason"
