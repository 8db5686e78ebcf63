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
several bytes; only data becomes text. An unfinished line is a list of pieces, joined once, so an
8 MB line fed in 16-byte pieces costs 8 MB of copying and not 2 TB. Faults are values and come last
in the list that `feed` returns: the events before one are good.
"""

from .characters import Characters
from .contract import Contract, Limits
from .events import Event, FaultedError
from .outcomes import LIMIT, Fault
from .units import utf16_units

_BOM = b"\xef\xbb\xbf"
_CR = 13
_COLON = 58


class Line:
    """One unfinished line: its pieces, joined once, and its length in UTF-16 units."""

    def __init__(self, limit_utf16: int) -> None:
        self._limit_utf16 = limit_utf16
        self._pieces: list[bytes] = []
        self._utf16 = 0

    def extend(self, piece: bytes) -> Fault | None:
        """Add a piece; a fault where the line grows beyond its limit."""
        if not piece:
            return None
        self._pieces.append(piece)
        self._utf16 += len(piece) if piece.isascii() else utf16_units(piece.decode())
        if self._utf16 > self._limit_utf16:
            return Fault(outcome=LIMIT, why=f"line over {self._limit_utf16} UTF-16 units")
        return None

    def take(self) -> bytes:
        """Give the whole line and begin the next."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._utf16 = 0
        return line


class SseFramer:
    """Cuts one event stream into events."""

    def __init__(self, contract: Contract) -> None:
        self._limits: Limits = contract.limits
        self._characters = Characters(contract.limits.input_utf16, contract.utf8_errors)
        self._at_start = True
        self._after_cr = False
        self._line = Line(contract.limits.line_utf16)
        self._type = ""
        self._data: list[str] = []
        self._data_utf16 = 0
        self._events = 0
        self._faulted = False

    def feed(self, data: bytes) -> list[Event | Fault]:
        """Give the events that these bytes complete, and last the fault that they hold, if any."""
        if self._faulted:
            raise FaultedError
        out: list[Event | Fault] = []
        whole, later = self._characters.feed(data)
        fault = (self._take(whole, out) if whole else None) or later
        if fault:
            self._faulted = True
            out.append(fault)
        return out

    def flush(self) -> list[Event | Fault]:
        """End the unfinished line and the unfinished event, as if a blank line had come."""
        out: list[Event | Fault] = []
        line = self._line.take()
        fault = (self._field(line) if line else None) or self._dispatch(out)
        return [*out, fault] if fault else out

    def _take(self, chunk: bytes, out: list[Event | Fault]) -> Fault | None:
        """Cut whole characters into lines and act on each, up to the first fault."""
        if self._at_start:
            self._at_start = False
            chunk = chunk.removeprefix(_BOM)
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if _CR in chunk:
            self._after_cr = chunk[-1] == _CR
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            fault = self._line.extend(piece) or self._end_line(out)
            if fault:
                return fault
        return self._line.extend(rest)

    def _end_line(self, out: list[Event | Fault]) -> Fault | None:
        line = self._line.take()
        return self._field(line) if line else self._dispatch(out)

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
        self._events += 1
        if self._events > self._limits.events:
            return Fault(outcome=LIMIT, why=f"more than {self._limits.events} events")
        out.append(Event(type=kind or "message", data="\n".join(lines)))
        return None
