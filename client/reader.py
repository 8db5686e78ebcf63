"""The strict reader: one response, from its head to its outcome, without I/O.

    reader = Reader(contract, "openai-chat")
    reader.head(200, "text/event-stream") or reader.feed(b"data: ...") or reader.end("eof")

It joins framer, dialect and turn, and holds the outcome once there is one. Time, sockets and
cancellation belong to the caller, who reports them with `stop`. End of input is `end()`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from .buffers import Call
from .contract import Contract, ContractError
from .decoder import Decoder
from .dialects import find
from .events import MESSAGE, Event, Framer, Item
from .eventstream import EventStreamFramer
from .framer import SseFramer
from .ndjson import NdjsonFramer
from .outcomes import (
    CANCELLED,
    COMPLETE,
    CONTENT_TYPE,
    INCOMPLETE_FINISH,
    PROVIDER_ERROR,
    Fault,
    Outcome,
    http_outcome,
)
from .turn import State, Turn

FRAMERS: dict[str, Callable[[Contract], Framer]] = {
    "sse": SseFramer,
    "ndjson": NdjsonFramer,
    "eventstream": EventStreamFramer,
}

# The outcomes that a terminal reason leads to; only these have a class of ending.
_CLASSED = frozenset({COMPLETE, INCOMPLETE_FINISH, PROVIDER_ERROR})


class Control(Enum):
    """What a preview callback may answer."""

    CANCEL = "cancel"


CANCEL = Control.CANCEL

# Called with each piece of text as it is added to the preview; CANCEL stops the turn there and then.
OnPreview = Callable[[str], Control | None]


@dataclass(frozen=True, kw_only=True)
class Settled:
    """How a turn ended: outcome and why, what was visible, and what the provider gave.

    `reason_class` is the class of the ending (`answer`, `tools`, `truncated`, ...) where a terminal
    reason decided; `history_rule` what the contract lets into the history for that class; `calls` the
    tool calls of candidate 0, a proposal only where the outcome is COMPLETE.
    """

    outcome: Outcome
    why: str
    preview: str
    finish_reason: str | None
    reason_class: str | None = None
    history_rule: str = "withhold"
    calls: tuple[Call, ...] = ()
    unknown_events: int = 0
    saw_usage: bool = False  # recorded apart: missing usage blocks nothing unless the contract says so

    @property
    def answer(self) -> str | None:
        """The answer's text, which exists only where the turn is COMPLETE."""
        return self.preview if self.outcome == COMPLETE else None


class Judge(Protocol):
    """The surface of a reader, which attempts have as well: whatever feeds one can feed the other."""

    @property
    def settled(self) -> Settled | None:
        """How the turn ended, once it has."""

    def head(self, status: int, content_type: str | None, content_encoding: str | None = None) -> Settled | None:
        """Judge the response head."""

    def feed(self, data: bytes) -> Settled | None:
        """Judge the next bytes of the body."""

    def end(self, transport_end: str = "eof", *, is_framed: bool = True) -> Settled:
        """Judge the end of the body."""

    def stop(self, outcome: Outcome, why: str) -> Settled:
        """Settle the turn for a reason outside the bytes."""


class ContractJudge(Judge, Protocol):
    """A judge that says by which contract it judges, and what it expects to read."""

    @property
    def contract(self) -> Contract:
        """The contract."""

    @property
    def dialect(self) -> str:
        """The dialect's name."""


class Reader:
    """Reads one response body under one contract."""

    def __init__(self, contract: Contract, dialect: str, on_preview: OnPreview | None = None) -> None:
        """Raise ContractError where the contract has no rules for the dialect."""
        rules = contract.dialects.get(dialect)
        if rules is None:
            raise ContractError(f"contract {contract.name} has no rules for dialect {dialect!r}")
        self.contract, self.dialect, self._rules = contract, dialect, rules
        known = find(dialect)
        self._framer = FRAMERS[rules.framing](contract)
        self._decoder = Decoder(known, contract.limits.json_depth)
        self._turn = Turn(contract, rules, known.starts, known.empty_arguments, self._show)
        self._on_preview = on_preview
        self.settled: Settled | None = None

    @property
    def preview(self) -> str:
        """The text that is visible so far; provisional until the turn is settled as COMPLETE."""
        return self._turn.text

    @property
    def events(self) -> int:
        """How many events were dispatched so far."""
        return self._framer.events

    @property
    def state(self) -> State:
        """Where the turn stands; once it is settled, where it stood then."""
        return self._turn.state

    def head(self, status: int, content_type: str | None, content_encoding: str | None = None) -> Settled | None:
        """Judge the response head: status first, then content type (RFC 9110 sections 8.3 and 8.4)."""
        if status != 200:
            return self.stop(http_outcome(status), f"HTTP status {status}")
        essence = (content_type or "").partition(";")[0].strip().lower()
        if essence != self._rules.media_type and self.contract.switches["content_type"] == "refuse":
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
        return self._judge(self._framer.feed(data))

    def end(self, transport_end: str = "eof", *, is_framed: bool = True) -> Settled:
        """Judge the end of the body: `eof` is a clean one, framed where HTTP itself said so.

        Without an outcome by now the evidence never came, unless the contract takes this end for it.
        """
        flushes = self.contract.switches["last_event"] == "dispatch" and transport_end == "eof"
        if flushes and not self.settled:
            self._judge(self._framer.flush())
        if self.settled:
            return self.settled
        fault = self._turn.end(transport_end == "eof", is_framed)
        return self.stop(fault.outcome, fault.why)

    def stop(self, outcome: Outcome, why: str) -> Settled:
        """Settle the turn, for a reason inside or outside the bytes, unless it is settled already."""
        if self.settled is None:
            reason_class = self._turn.reason_class if outcome in _CLASSED else None
            self.settled = Settled(
                outcome=outcome,
                why=why,
                preview=self._turn.text,
                finish_reason=self._turn.finish_reason,
                reason_class=reason_class,
                history_rule=self.contract.history.get(reason_class or "", "withhold"),
                calls=tuple(self._turn.calls),
                unknown_events=self._turn.unknown_events,
                saw_usage=self._turn.saw_usage,
            )
        return self.settled

    def _judge(self, items: list[Item]) -> Settled | None:
        for item in items:
            if isinstance(item, bytes):
                fault = self._event(MESSAGE, item)
            elif isinstance(item, Event):
                fault = self._event(item.type, item.data)
            else:
                fault = item
            if fault:
                return self.stop(fault.outcome, fault.why)
        return None

    def _event(self, kind: str, data: bytes) -> Fault | None:
        repeated = self._decoder.repeated(kind, data)
        if repeated is not None:
            text, candidate, block = repeated
            return self._turn.repeat(text, candidate, block)
        found = self._decoder.signals(kind, data)
        return found if isinstance(found, Fault) else self._turn.apply(found)

    def _show(self, piece: str) -> Fault | None:
        if self._on_preview and self._on_preview(piece) is CANCEL:
            return Fault(outcome=CANCELLED, why="cancelled from the preview callback")
        return None
