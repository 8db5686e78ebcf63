"""The strict reader: one response, from its head to its outcome, without I/O.

    reader = Reader(contract, "openai-chat")
    reader.head(200, "text/event-stream") or reader.feed(b"data: ...") or reader.end()

It joins framer, dialect and turn, and holds the outcome once there is one. Time, sockets and
cancellation belong to the caller, who reports them with `stop`. End of input is `end()`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from .contract import Contract, ContractError
from .dialects import find
from .framer import Event, Framer
from .outcomes import CANCELLED, COMPLETE, CONTENT_TYPE, INCOMPLETE_STREAM, Fault, Outcome, http_outcome
from .signals import Kind
from .turn import Turn


class Control(Enum):
    """What a preview callback may answer."""

    CANCEL = "cancel"


CANCEL = Control.CANCEL

# Called with each piece of text as it is added to the preview; CANCEL stops the turn there and then.
OnPreview = Callable[[str], Control | None]


@dataclass(frozen=True, kw_only=True)
class Settled:
    """How a turn ended: outcome, why, what was visible, and the raw reason the provider gave."""

    outcome: Outcome
    why: str
    preview: str
    finish_reason: str | None

    @property
    def answer(self) -> str | None:
        """The answer, which exists only where the turn is COMPLETE."""
        return self.preview if self.outcome == COMPLETE else None


class Reader:
    """Reads one response body under one contract."""

    def __init__(self, contract: Contract, dialect: str, on_preview: OnPreview | None = None) -> None:
        """Raise ContractError where the contract has no rules for the dialect."""
        rules = contract.dialects.get(dialect)
        if rules is None:
            raise ContractError(f"contract {contract.name} has no rules for dialect {dialect!r}")
        self._rules, self._limits = rules, contract.limits
        self._signals = find(dialect)
        self._framer = Framer(contract.limits)
        self._turn = Turn(contract.limits, rules)
        self._on_preview = on_preview
        self.settled: Settled | None = None

    @property
    def preview(self) -> str:
        """The text that is visible so far; provisional until the turn is settled as COMPLETE."""
        return self._turn.text

    def head(self, status: int, content_type: str | None, content_encoding: str | None = None) -> Settled | None:
        """Judge the response head: status first, then content type (RFC 9110 sections 8.3 and 8.4)."""
        if status != 200:
            return self.stop(http_outcome(status), f"HTTP status {status}")
        essence = (content_type or "").partition(";")[0].strip().lower()
        if essence != self._rules.media_type:
            return self.stop(CONTENT_TYPE, f"content type {essence!r}, not {self._rules.media_type!r}")
        if (content_encoding or "identity").strip().lower() != "identity":
            return self.stop(CONTENT_TYPE, f"content encoding {content_encoding!r}")
        return None

    def feed(self, data: bytes) -> Settled | None:
        """Judge the next bytes of the body, in any portion; give the settled turn, if they settle it.

        Raises RuntimeError when the turn is settled already: nothing may be read after that.
        """
        if self.settled:
            raise RuntimeError(f"fed after the turn was settled as {self.settled.outcome}")
        for item in self._framer.feed(data):
            fault = self._event(item) if isinstance(item, Event) else item
            if fault:
                return self.stop(fault.outcome, fault.why)
        return None

    def end(self) -> Settled:
        """Judge the end of the body: without an outcome by now, the evidence never came."""
        return self.stop(INCOMPLETE_STREAM, "the body ended before the required evidence")

    def stop(self, outcome: Outcome, why: str) -> Settled:
        """Settle the turn for a reason outside the bytes, unless it is settled already."""
        if self.settled is None:
            self.settled = Settled(
                outcome=outcome,
                why=why,
                preview=self._turn.text,
                finish_reason=self._turn.finish_reason,
            )
        return self.settled

    def _event(self, event: Event) -> Fault | None:
        found = self._signals(event, self._limits.json_depth)
        if isinstance(found, Fault):
            return found
        for signal in found:
            fault = self._turn.apply(signal)
            if not fault and signal.kind is Kind.TEXT:
                fault = self._show(signal.value)
            if fault:
                return fault
        return None

    def _show(self, piece: str) -> Fault | None:
        if self._on_preview and self._on_preview(piece) is CANCEL:
            return Fault(outcome=CANCELLED, why="cancelled from the preview callback")
        return None
