"""Signals in, outcome out: one turn as a table.

Rule: everything that moves a turn stands in TABLE. A missing entry is the protocol error; there is
no other place that decides about order. What an entry does is a method of the same name, which asks
the contract and the buffers. This file knows no bytes, no event and no provider.
"""

from collections.abc import Callable
from enum import StrEnum

from .buffers import Buffers, Call, Candidate
from .contract import Contract, DialectRules
from .outcomes import (
    COMPLETE,
    INCOMPLETE_FINISH,
    INCOMPLETE_STREAM,
    INVALID_JSON,
    PROTOCOL,
    PROVIDER_ERROR,
    UNSUPPORTED_OUTCOME,
    Fault,
)
from .signals import Kind, Signal
from .strict_json import parse


class State(StrEnum):
    """Where a turn stands while it is not settled."""

    NEW = "new"
    OPEN = "open"
    FINISHED = "finished"


TABLE: dict[tuple[State, Kind], str] = {
    (State.NEW, Kind.START): "begin",
    (State.NEW, Kind.USAGE): "note",
    (State.NEW, Kind.META): "note",
    (State.NEW, Kind.UNKNOWN): "note",
    (State.NEW, Kind.ERROR): "fail",
    (State.OPEN, Kind.OPEN): "open_block",
    (State.OPEN, Kind.CLOSE): "close_block",
    (State.OPEN, Kind.TEXT): "add",
    (State.OPEN, Kind.REFUSAL): "add",
    (State.OPEN, Kind.REASONING): "add",
    (State.OPEN, Kind.TOOL): "add",
    (State.OPEN, Kind.USAGE): "note",
    (State.OPEN, Kind.META): "note",
    (State.OPEN, Kind.UNKNOWN): "note",
    (State.OPEN, Kind.FINISH): "finish",
    (State.OPEN, Kind.DONE): "end_unfinished",
    (State.OPEN, Kind.ERROR): "fail",
    (State.FINISHED, Kind.USAGE): "note",
    (State.FINISHED, Kind.META): "note",
    (State.FINISHED, Kind.UNKNOWN): "note",
    (State.FINISHED, Kind.FINISH): "finish",
    (State.FINISHED, Kind.DONE): "complete",
    (State.FINISHED, Kind.ERROR): "fail",
}

_TEXT_STATES = frozenset(state for (state, kind), entry in TABLE.items() if (kind, entry) == (Kind.TEXT, "add"))

# Asked after each text of candidate 0 was added; a fault cancels the turn there and then.
OnText = Callable[[str], Fault | None]


class Turn:
    """One answer in the making."""

    def __init__(
        self, contract: Contract, rules: DialectRules, starts: bool, empty_arguments: bool, on_text: OnText
    ) -> None:
        self._contract, self._rules, self._on_text = contract, rules, on_text
        self._switches = contract.switches
        self._empty_arguments = empty_arguments
        self.saw_usage = False
        self.unknown_events = 0
        self.finish_reason: str | None = None  # of candidate 0, as the provider wrote it last
        self.reason_class: str | None = None
        self._buffers = Buffers(contract.limits.output_utf16)
        # Finished once every candidate that was seen has finished.
        self.state = State.NEW if starts else State.OPEN

    @property
    def text(self) -> str:
        """The text of candidate 0 so far: the preview, and the answer once the turn is COMPLETE."""
        return "".join(self._first.text)

    @property
    def calls(self) -> list[Call]:
        """The calls of candidate 0, as far as they were proposed."""
        return self._first.proposed(self._empty_arguments)

    def apply(self, signals: list[Signal]) -> Fault | None:
        """Move by the signals of one event; give what settles the turn (COMPLETE included), or None."""
        for signal in signals:
            if self._is_forbidden(signal):
                return Fault(outcome=PROTOCOL, why=f"the contract has no place for the signal {signal.kind}")
        for signal in signals:
            fault = self._move(signal)
            if fault:
                return fault
        return None

    def repeat(self, text: str, candidate: int, block: int | None) -> Fault | None:
        """Move by a text signal of a candidate and a block that moved this turn before."""
        if self.state not in _TEXT_STATES:
            return self._move(Signal(kind=Kind.TEXT, value=text, candidate=candidate, block=block))
        fault = self._buffers.add_text(text, candidate, block)
        return fault if fault or candidate else self._on_text(text)

    def end(self, is_clean: bool, is_framed: bool) -> Fault:
        """Settle the turn at the end of the body; framed: more than the connection's end said so."""
        if self.state is State.FINISHED and is_clean and self._may_end(is_framed):
            return self.complete()
        return Fault(outcome=INCOMPLETE_STREAM, why="the body ended before the required evidence")

    # -- the table's entries

    def begin(self, _: Signal) -> Fault | None:
        self.state = State.OPEN
        return None

    def note(self, signal: Signal) -> Fault | None:
        self.saw_usage |= signal.kind is Kind.USAGE
        self.unknown_events += signal.kind is Kind.UNKNOWN
        return None

    def open_block(self, signal: Signal) -> Fault | None:
        if signal.block is None or (signal.opens is not None and self._buffers.was_open(signal.block)):
            return None
        return self._buffers.open(signal.block, signal.value)

    def close_block(self, signal: Signal) -> Fault | None:
        return None if signal.block is None else self._buffers.close(signal.block, signal.value)

    def add(self, signal: Signal) -> Fault | None:
        fault = self._buffers.add(signal, signal.value)
        if fault or signal.kind is not Kind.TEXT or signal.candidate:
            return fault
        return self._on_text(signal.value)

    def finish(self, signal: Signal) -> Fault | None:
        candidate = self._buffers.candidate(signal.candidate)
        if candidate.reason is not None:
            return self._finish_again(candidate, signal.value)
        self._buffers.finish(signal.candidate, signal.value)
        if self._buffers.has_open_block:
            return Fault(outcome=PROTOCOL, why="a finish while a block is open")
        found = self._classed(candidate, self._rules.reasons.get(signal.value))
        if signal.candidate == 0 or isinstance(found, Fault):
            self.reason_class = candidate.reason_class
        return found

    def fail(self, signal: Signal) -> Fault | None:
        self.reason_class = "error"
        return Fault(outcome=PROVIDER_ERROR, why=f"the provider reported an error: {signal.value[:200]}")

    def end_unfinished(self, _: Signal) -> Fault | None:
        """The terminal event without a finish: where the contract takes it, as if `answer` had come."""
        finished = any(c.reason is not None for c in self._buffers.candidates.values())
        if self._buffers.has_open_block or finished or self._switches["terminal_without_finish"] == "protocol":
            return Fault(outcome=PROTOCOL, why="the terminal event without a finish")
        if self._first.refusal and not self._first.calls:
            self.reason_class = "filtered"
            return Fault(outcome=INCOMPLETE_FINISH, why="the model refused")
        self.reason_class = "tools" if self._first.calls else "answer"
        return self.complete()

    def complete(self, _: Signal | None = None) -> Fault:
        """Ask for all that is still missing, and only then call the turn COMPLETE."""
        if self._switches["usage"] == "required" and not self.saw_usage:
            return Fault(outcome=INCOMPLETE_STREAM, why="no usage, which the contract requires")
        calls = [call for c in self._buffers.candidates.values() for call in c.proposed(self._empty_arguments)]
        for call in calls:
            why = self._wrong_call(call)
            if why:
                return Fault(outcome=INVALID_JSON, why=why)
        if not self._first.text and not calls and self._switches["empty_completion"] == "refuse":
            return Fault(outcome=UNSUPPORTED_OUTCOME, why="a completion without text")
        return Fault(outcome=COMPLETE, why="every required piece of evidence arrived")

    # -- what they ask

    @property
    def _first(self) -> Candidate:
        return self._buffers.candidates.get(0) or Candidate()

    def _is_forbidden(self, signal: Signal) -> bool:
        if self._buffers.has_no_effect(signal):
            return False
        if signal.kind is Kind.UNKNOWN:
            return self._switches["unknown_event"] == "protocol"
        if signal.candidate and self._switches["candidates"] == "one":
            return True
        return signal.kind in (Kind.TOOL, Kind.REFUSAL) and "tools" not in self._rules.results

    def _move(self, signal: Signal) -> Fault | None:
        state = self.state
        if signal.kind is Kind.FINISH and signal.candidate == 0:
            self.finish_reason = signal.value
        entry = TABLE.get((state, signal.kind))
        if entry is None:
            return Fault(outcome=PROTOCOL, why=f"{signal.kind} where the turn is {state}")
        move: Callable[[Signal], Fault | None] = getattr(self, entry)
        fault = move(signal)
        if self.state is not State.NEW:
            self.state = State.FINISHED if self._buffers.is_finished else State.OPEN
        return fault

    def _finish_again(self, candidate: Candidate, reason: str) -> Fault | None:
        before, candidate.reason = candidate.reason, reason
        if self._switches["late_filter"] == "filtered" and self._rules.reasons.get(reason) == "filtered":
            self.reason_class = candidate.reason_class = "filtered"
            return Fault(outcome=INCOMPLETE_FINISH, why=f"finish_reason {reason!r} after {before!r}")
        if reason == before and self._switches["repeated_finish"] == "same":
            return None
        return Fault(outcome=PROTOCOL, why=f"a second finish, {reason!r} after {before!r}")

    def _classed(self, candidate: Candidate, reason_class: str | None) -> Fault | None:
        """Judge a finish by the class of its reason; give what settles the turn, or None."""
        reason = candidate.reason
        if reason_class is None:
            return Fault(outcome=UNSUPPORTED_OUTCOME, why=f"finish_reason {reason!r} is not in the contract")
        if reason_class == "answer" and candidate.refusal:
            reason_class = "filtered"
        if reason_class == "answer" and candidate.calls:
            reason_class = "tools"
        candidate.reason_class = reason_class
        if reason_class == "error":
            return Fault(outcome=PROVIDER_ERROR, why=f"finish_reason {reason!r} is an error")
        if reason_class in ("truncated", "filtered", "paused"):
            return Fault(outcome=INCOMPLETE_FINISH, why=f"finish_reason {reason!r} is {reason_class}")
        if reason_class == "tools" and not candidate.calls:
            return Fault(outcome=PROTOCOL, why=f"finish_reason {reason!r} without a tool call")
        if self._buffers.has_incomplete_block:
            return Fault(outcome=PROTOCOL, why=f"finish_reason {reason!r} after an incomplete block")
        if reason_class not in self._rules.results:
            return Fault(outcome=UNSUPPORTED_OUTCOME, why=f"a result of the class {reason_class}")
        return None

    def _wrong_call(self, call: Call) -> str | None:
        if not call.name:
            return "a tool call without a name"
        if call.free:
            return None
        arguments = parse(call.arguments.encode(), self._contract.limits.json_depth)
        if isinstance(arguments, Fault):
            return f"arguments of {call.name}: {arguments.why}"
        return None if isinstance(arguments, dict) else f"arguments of {call.name}: no JSON object"

    def _may_end(self, is_framed: bool) -> bool:
        if self._rules.terminal == "closed-framing":
            return is_framed or self._switches["close_delimited"] == "complete"
        return self._switches["finish_without_terminal"] == "complete"
