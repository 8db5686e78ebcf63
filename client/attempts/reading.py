"""One attempt's own buffer: a `Reader`, the attempt's identity, and what the transport said.

It has the reader's surface, so whatever feeds a reader can feed an attempt. It knows no store and no
decision: what may be published is the coordinator's to say.
"""

import hashlib

from ..contract import Contract
from ..history import Message
from ..outcomes import DEADLINE, INCOMPLETE_STREAM, READ_TIMEOUT, Outcome
from ..reader import OnPreview, Reader, Settled
from ..turn import State
from . import payload
from .evidence import Wire
from .records import Record


class Reading:
    """Reads the response of one attempt. A replaced or cleared one may read on; it changes nothing."""

    def __init__(self, record: Record, contract: Contract, dialect: str, on_preview: OnPreview | None) -> None:
        self.record = record
        self.contract, self.dialect = contract, dialect
        self._reader = Reader(contract, dialect, on_preview)
        self._sha256 = hashlib.sha256()
        self._wire_bytes = 0
        self._http_status: int | None = None
        self._transport_end, self._is_framed = "left", False

    @property
    def id(self) -> str:
        """The attempt's own id, which no other has."""
        return self.record.attempt_id

    @property
    def task_id(self) -> str:
        """The task that it answers."""
        return self.record.task_id

    @property
    def fence(self) -> int:
        """Its number within the task; a higher one was begun later."""
        return self.record.fence

    @property
    def replaces(self) -> str | None:
        """The attempt in whose place it was made, by supersede or retry."""
        return self.record.replaces

    @property
    def preview(self) -> str:
        """The text that is visible so far; provisional, whatever it looks like."""
        return self._reader.preview

    @property
    def events(self) -> int:
        """How many events were dispatched so far."""
        return self._reader.events

    @property
    def state(self) -> State:
        """Where its turn stands; once it is settled, where it stood then."""
        return self._reader.state

    @property
    def settled(self) -> Settled | None:
        """How the turn ended, once it has; that alone publishes nothing."""
        return self._reader.settled

    @property
    def wire(self) -> Wire:
        """What the transport said so far."""
        return Wire(
            http_status=self._http_status,
            transport_end=self._transport_end,
            is_framed=self._is_framed,
            wire_bytes=self._wire_bytes,
            wire_sha256=self._sha256.hexdigest(),
        )

    @property
    def shown(self) -> Message:
        """What it holds so far, as the message that it would be."""
        turn = self.settled
        if turn is None:
            return Message(role="assistant", content=self.preview)
        return payload.answer(turn) or payload.visible(turn)

    def head(self, status: int, content_type: str | None, content_encoding: str | None = None) -> Settled | None:
        """Judge the response head, as `Reader.head` does."""
        self._http_status = status
        return self._reader.head(status, content_type, content_encoding)

    def feed(self, data: bytes) -> Settled | None:
        """Judge the next bytes of the body; RuntimeError once the turn is settled, as for `Reader.feed`."""
        turn = self._reader.feed(data)
        self._sha256.update(data)
        self._wire_bytes += len(data)
        return turn

    def end(self, transport_end: str = "eof", *, is_framed: bool = True) -> Settled:
        """Judge the end of the body, as `Reader.end` does."""
        if self.settled is None:
            self._transport_end, self._is_framed = transport_end, is_framed
        return self._reader.end(transport_end, is_framed=is_framed)

    def stop(self, outcome: Outcome, why: str) -> Settled:
        """Settle the turn from outside, for instance as READ_TIMEOUT, unless it is settled already."""
        if self.settled is None and outcome in (READ_TIMEOUT, DEADLINE):
            self._transport_end = "timeout"
        return self._reader.stop(outcome, why)

    def settle(self) -> Settled:
        """Give the settled turn; one that nobody has ended is settled as INCOMPLETE_STREAM."""
        return self.stop(INCOMPLETE_STREAM, "asked to publish before the turn was settled")
