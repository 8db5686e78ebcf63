"""`sse`: bytes in, events out, by the event-stream framing of the WHATWG HTML standard.

Rules. Bytes arrive in pieces that end anywhere: inside a character, between CR and LF, inside a
field name. What comes out must not depend on the cuts, so the framer keeps exactly what a cut
can leave open: the bytes of a character, whether the last byte was a CR, the unfinished line,
and the data lines of the event that no blank line has ended yet.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
        stream        = [ bom ] *event
        event         = *( comment / field ) end-of-line
        comment       = colon *any-char end-of-line
        field         = 1*name-char [ colon [ space ] *any-char ] end-of-line
        end-of-line   = ( cr lf / cr / lf )

Where it is stricter than the standard: sizes are bounded, and `id` and `retry` have no effect,
since a client that reconnects by itself splices two answers.

Theory of operation. Lines are cut on bytes, since CR and LF never occur inside a character of
several bytes; only data becomes text. Faults are values and come last in the list that `feed`
returns: the events before one are good.
"""

from .contract import Contract
from .events import Event
from .lines import LineFramer
from .outcomes import LIMIT, Fault
from .units import utf16_units

_BOM = b"\xef\xbb\xbf"
_CR = 13
_COLON = 58


class SseFramer(LineFramer):
    """Cuts one event stream into events."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._at_start = True
        self._after_cr = False
        self._type = ""
        self._data: list[str] = []
        self._data_utf16 = 0

    def _take(self, chunk: bytes, out: list[Event | Fault]) -> Fault | None:
        """Drop one leading BOM, and make every line end an LF."""
        if self._at_start:
            self._at_start = False
            chunk = chunk.removeprefix(_BOM)
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if _CR in chunk:
            self._after_cr = chunk[-1] == _CR
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return super()._take(chunk, out)

    def _act(self, line: bytes, out: list[Event | Fault]) -> Fault | None:
        return self._field(line) if line else self._dispatch(out)

    def _end(self, line: bytes, out: list[Event | Fault]) -> Fault | None:
        return (self._field(line) if line else None) or self._dispatch(out)

    def _field(self, line: bytes) -> Fault | None:
        """Process one line that is not blank (HTML 9.2.6, "process the field")."""
        if line[0] == _COLON:
            return None
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            return self._data_line(value.decode())
        if name == b"event":
            self._type = value.decode()
        return None

    def _data_line(self, value: str) -> Fault | None:
        self._data_utf16 += utf16_units(value) + bool(self._data)
        self._data.append(value)
        if self._data_utf16 > self._limits.event_utf16:
            return Fault(outcome=LIMIT, why=f"event over {self._limits.event_utf16} UTF-16 units")
        return None

    def _dispatch(self, out: list[Event | Fault]) -> Fault | None:
        """Act on a blank line; without a data field nothing is dispatched and the type is lost."""
        kind, lines = self._type, self._data
        self._type, self._data, self._data_utf16 = "", [], 0
        if not lines:
            return None
        return self._emit(Event(type=kind or "message", data="\n".join(lines)), out)
