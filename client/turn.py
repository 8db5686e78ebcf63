"""Signals in, outcome out: one turn as a table.

Rule: everything that moves a turn stands in TABLE. A missing entry is the protocol error; there
is no other place that decides about order. A `finish` is looked up under the class that the
contract gives its raw reason. This file knows no bytes, no JSON and no provider.
"""

from enum import Enum

from .contract import DialectRules, Limits
from .outcomes import (
    COMPLETE,
    INCOMPLETE_FINISH,
    LIMIT,
    PROTOCOL,
    PROVIDER_ERROR,
    UNSUPPORTED_OUTCOME,
    Fault,
    Outcome,
)
from .signals import Kind, Signal
from .units import utf16_units


class State(Enum):
    """Where a turn stands while it is not settled."""

    OPEN = "open"
    FINISHED = "finished"


UNLISTED = "unlisted"

TABLE: dict[tuple[State, str], State | Outcome] = {
    (State.OPEN, "text"): State.OPEN,
    (State.OPEN, "meta"): State.OPEN,
    (State.OPEN, "finish:answer"): State.FINISHED,
    (State.OPEN, "finish:truncated"): INCOMPLETE_FINISH,
    (State.OPEN, "finish:filtered"): INCOMPLETE_FINISH,
    (State.OPEN, "finish:error"): PROVIDER_ERROR,
    (State.OPEN, f"finish:{UNLISTED}"): UNSUPPORTED_OUTCOME,
    (State.OPEN, "error"): PROVIDER_ERROR,
    (State.FINISHED, "meta"): State.FINISHED,
    (State.FINISHED, "done"): COMPLETE,
    (State.FINISHED, "error"): PROVIDER_ERROR,
}


class Turn:
    """One answer in the making: its text so far, its raw terminal reason, its state."""

    def __init__(self, limits: Limits, rules: DialectRules) -> None:
        self._limits, self._rules = limits, rules
        self._state = State.OPEN
        self._text: list[str] = []
        self.text_utf16 = 0
        self.finish_reason: str | None = None

    @property
    def text(self) -> str:
        """The text so far: the preview, and the answer once the turn is COMPLETE."""
        return "".join(self._text)

    def apply(self, signal: Signal) -> Fault | None:
        """Move by one signal; give what settles the turn (COMPLETE included), or None."""
        mark = self._mark(signal)
        after = TABLE.get((self._state, mark))
        if signal.kind is Kind.FINISH:
            self.finish_reason = signal.value
        if after is None:
            return Fault(outcome=PROTOCOL, why=f"{mark} where the turn is {self._state.value}")
        if isinstance(after, State):
            self._state = after
            return self._add(signal.value) if signal.kind is Kind.TEXT else None
        if after == COMPLETE and not self._text:
            return Fault(outcome=UNSUPPORTED_OUTCOME, why="a completion without text")
        return Fault(outcome=after, why=_why(signal, mark))

    def _mark(self, signal: Signal) -> str:
        if signal.kind is not Kind.FINISH:
            return str(signal.kind.value)
        return f"finish:{self._rules.reasons.get(signal.value, UNLISTED)}"

    def _add(self, text: str) -> Fault | None:
        utf16 = self.text_utf16 + utf16_units(text)
        if utf16 > self._limits.output_utf16:
            return Fault(outcome=LIMIT, why=f"output over {self._limits.output_utf16} UTF-16 units")
        self.text_utf16 = utf16
        self._text.append(text)
        return None


def _why(signal: Signal, mark: str) -> str:
    if signal.kind is Kind.FINISH:
        return f"finish_reason {signal.value!r} is {mark.partition(':')[2]}"
    if signal.kind is Kind.ERROR:
        return f"the provider reported an error: {signal.value[:200]}"
    return "every required piece of evidence arrived"
