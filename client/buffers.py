"""What a turn has collected: typed buffers, bounded together, nothing joined across types.

Text, refusals, reasoning and the arguments of each call live apart, per candidate. Blocks are kept
only as far as their order matters. This file knows no order of signals and no outcome but LIMIT.
"""

from dataclasses import dataclass, field

from .outcomes import LIMIT, PROTOCOL, Fault
from .signals import INCOMPLETE, NEW_CALL, Kind, Signal
from .units import utf16_units


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call as the provider proposed it: arguments as text, not yet judged."""

    id: str | None
    name: str | None
    arguments: str
    free: bool


@dataclass
class _CallBuffer:
    id: str | None = None
    name: str | None = None
    free: bool = False
    fragments: list[str] = field(default_factory=list)


class Candidate:
    """One candidate's buffers."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.reasoning: list[str] = []
        self.calls: dict[int, _CallBuffer] = {}
        self.reason: str | None = None
        self.reason_class: str | None = None

    def proposed(self, empty_arguments: bool) -> list[Call]:
        """Give the calls in the order in which they were opened."""
        found = []
        for call in self.calls.values():
            arguments = "".join(call.fragments)
            if not arguments and empty_arguments and not call.free:
                arguments = "{}"
            found.append(Call(id=call.id, name=call.name, arguments=arguments, free=call.free))
        return found


class Buffers:
    """All candidates of one turn, and its blocks."""

    def __init__(self, output_utf16: int) -> None:
        self._limit_utf16 = output_utf16
        self._used_utf16 = 0
        self.candidates: dict[int, Candidate] = {}
        self._unfinished: set[int] = set()
        self._blocks: dict[int, str] = {}  # every block that was ever opened, with its kind
        self._open: set[int] = set()
        self.has_incomplete_block = False
        self.is_finished = False  # a candidate was seen, and every one that was has finished

    @property
    def has_open_block(self) -> bool:
        """Say whether a block was opened and not closed."""
        return bool(self._open)

    def candidate(self, number: int) -> Candidate:
        """Give a candidate, which is seen from now on."""
        if number not in self.candidates:
            self.candidates[number] = Candidate()
            self._unfinished.add(number)
            self.is_finished = False
        return self.candidates[number]

    def finish(self, number: int, reason: str) -> None:
        """Note the raw reason with which a candidate finished."""
        self.candidate(number).reason = reason
        self._unfinished.discard(number)
        self.is_finished = not self._unfinished

    def open(self, block: int, kind: str) -> Fault | None:
        """Open a block; none is opened twice."""
        if block in self._blocks:
            return Fault(outcome=PROTOCOL, why=f"block {block} is opened a second time")
        self._blocks[block] = kind
        self._open.add(block)
        return None

    def was_open(self, block: int) -> bool:
        """Say whether a block was ever opened."""
        return block in self._blocks

    def close(self, block: int, how: str) -> Fault | None:
        """Close a block that is open."""
        if block not in self._open:
            return Fault(outcome=PROTOCOL, why=f"block {block} is closed and was not open")
        self._open.remove(block)
        self.has_incomplete_block |= how == INCOMPLETE
        return None

    def add(self, signal: Signal, value: str) -> Fault | None:
        """Add content to its buffer, unless the block or the size forbids it."""
        if signal.block is not None:
            fault = self._enter(signal, signal.block)
            if fault or self.has_no_effect(signal):
                return fault
        candidate = self.candidates.get(signal.candidate) or self.candidate(signal.candidate)
        if candidate.reason is not None:
            return Fault(outcome=PROTOCOL, why=f"{signal.kind} after the finish")
        if signal.kind is Kind.TOOL and signal.call is None:
            return None
        self._used_utf16 += utf16_units(value)
        if self._used_utf16 > self._limit_utf16:
            return Fault(outcome=LIMIT, why=f"output over {self._limit_utf16} UTF-16 units")
        if signal.kind is Kind.TOOL:
            return self._add_call(candidate, signal)
        pieces = {Kind.TEXT: candidate.text, Kind.REFUSAL: candidate.refusal, Kind.REASONING: candidate.reasoning}
        pieces[signal.kind].append(value)
        return None

    def add_text(self, text: str, number: int, block: int | None) -> Fault | None:
        """Add a text to a candidate and in a block that had one before; what may not goes the long way."""
        candidate = self.candidates[number]
        used_utf16 = self._used_utf16 + (len(text) if text.isascii() else utf16_units(text))
        is_closed = block is not None and block not in self._open
        if candidate.reason is not None or is_closed or used_utf16 > self._limit_utf16:
            return self.add(Signal(kind=Kind.TEXT, value=text, candidate=number, block=block), text)
        self._used_utf16 = used_utf16
        candidate.text.append(text)
        return None

    def _enter(self, signal: Signal, block: int) -> Fault | None:
        """See to it that the block of a content is open."""
        if block in self._open:
            return None
        if signal.opens is not None and block not in self._blocks:
            return self.open(block, signal.opens)
        return Fault(outcome=PROTOCOL, why=f"{signal.kind} in block {block}, which is not open")

    def has_no_effect(self, signal: Signal) -> bool:
        """Say whether a signal counts only in blocks of another kind than the open one that it speaks of."""
        if signal.only_in is None or signal.block not in self._open:
            return False
        return self._blocks[signal.block] != signal.only_in

    def _add_call(self, candidate: Candidate, signal: Signal) -> Fault | None:
        number = signal.call
        if number is None or number == NEW_CALL:
            number = NEW_CALL - len(candidate.calls)
        call = candidate.calls.setdefault(number, _CallBuffer(free=signal.free))
        for name in ("id", "name"):
            old, new = getattr(call, name), getattr(signal, name)
            if old is not None and new is not None and old != new:
                return Fault(outcome=PROTOCOL, why=f"a call whose {name} changes from {old!r} to {new!r}")
            setattr(call, name, new if old is None else old)
        call.fragments.append(signal.value)
        return None
