"""The turn's table: every pair of state and signal, and what the entries do."""

import pytest

from client.contract import load
from client.outcomes import (
    COMPLETE,
    INCOMPLETE_FINISH,
    LIMIT,
    PROTOCOL,
    PROVIDER_ERROR,
    UNSUPPORTED_OUTCOME,
    Outcome,
)
from client.signals import Kind, Signal
from client.turn import Turn

CONTRACT = load("frozen-text/1")
TEXT, STOP = Signal(Kind.TEXT, "x"), Signal(Kind.FINISH, "stop")

FROM_OPEN: list[tuple[Signal, Outcome | None]] = [
    (TEXT, None),
    (Signal(Kind.META), None),
    (STOP, None),
    (Signal(Kind.FINISH, "length"), INCOMPLETE_FINISH),
    (Signal(Kind.FINISH, "content_filter"), INCOMPLETE_FINISH),
    (Signal(Kind.FINISH, "error"), PROVIDER_ERROR),
    (Signal(Kind.FINISH, "tool_calls"), UNSUPPORTED_OUTCOME),
    (Signal(Kind.FINISH, ""), UNSUPPORTED_OUTCOME),
    (Signal(Kind.ERROR, "x"), PROVIDER_ERROR),
    (Signal(Kind.DONE), PROTOCOL),
    (Signal(Kind.TOOL), PROTOCOL),
    (Signal(Kind.REFUSAL), PROTOCOL),
]

FROM_FINISHED: list[tuple[Signal, Outcome | None]] = [
    (Signal(Kind.META), None),
    (Signal(Kind.DONE), COMPLETE),
    (Signal(Kind.ERROR, "x"), PROVIDER_ERROR),
    (TEXT, PROTOCOL),
    (STOP, PROTOCOL),
    (Signal(Kind.FINISH, "length"), PROTOCOL),
    (Signal(Kind.TOOL), PROTOCOL),
    (Signal(Kind.REFUSAL), PROTOCOL),
]


def turn() -> Turn:
    """Give a turn under frozen-text/1."""
    return Turn(CONTRACT.limits, CONTRACT.dialects["openai-chat"])


@pytest.mark.parametrize(("signal", "outcome"), FROM_OPEN)
def test_open(signal: Signal, outcome: Outcome | None) -> None:
    """An open turn moves as the table says."""
    found = turn().apply(signal)
    assert (found.outcome if found else None) == outcome


@pytest.mark.parametrize(("signal", "outcome"), FROM_FINISHED)
def test_finished(signal: Signal, outcome: Outcome | None) -> None:
    """A finished turn takes metadata, the terminal event or an error, and nothing else."""
    moving = turn()
    assert moving.apply(TEXT) is None
    assert moving.apply(STOP) is None
    found = moving.apply(signal)
    assert (found.outcome if found else None) == outcome


def test_empty_completion() -> None:
    """A completion without text is UNSUPPORTED_OUTCOME."""
    moving = turn()
    assert moving.apply(STOP) is None
    found = moving.apply(Signal(Kind.DONE))
    assert found
    assert found.outcome == UNSUPPORTED_OUTCOME


@pytest.mark.parametrize("char", ["a", "你", "🌱"])
def test_output_limit(char: str) -> None:
    """Exactly 4,096 UTF-16 units pass; one more is LIMIT and is not added."""
    units = 2 if char == "🌱" else 1
    moving = turn()
    assert moving.apply(Signal(Kind.TEXT, char * (4096 // units))) is None
    found = moving.apply(Signal(Kind.TEXT, "a"))
    assert found
    assert found.outcome == LIMIT
    assert len(moving.text) == 4096 // units


def test_the_raw_reason_is_kept() -> None:
    """The terminal reason is kept as the provider wrote it, listed or not."""
    moving = turn()
    moving.apply(Signal(Kind.FINISH, "Some_New-Reason"))
    assert moving.finish_reason == "Some_New-Reason"
