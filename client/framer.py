"""Bytes in, events out: UTF-8 and the event-stream framing of the WHATWG HTML standard.

Rules. Bytes arrive in pieces that end anywhere: inside a character, between CR and LF, inside a
field name. What comes out must not depend on the cuts, so the framer keeps exactly what a cut
can leave open: up to three bytes of a character, whether the last byte was a CR, the unfinished
line, and the data lines of the event that no blank line has ended yet.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
        stream        = [ bom ] *event
        event         = *( comment / field ) end-of-line
        comment       = colon *any-char end-of-line
        field         = 1*name-char [ colon [ space ] *any-char ] end-of-line
        end-of-line   = ( cr lf / cr / lf )

Where it is stricter than the standard: a byte that is no UTF-8 is a fault, not U+FFFD, in
whatever line it stands; sizes are bounded; and `id` and `retry` have no effect, since a client
that reconnects by itself splices two answers.

Theory of operation. Every byte is looked at once: checked as UTF-8, counted, cut into lines.
Lines are cut on bytes, since CR and LF never occur inside a character of several bytes; only
data becomes text. An unfinished line is a list of pieces, joined once, so an 8 MB line fed in
16-byte pieces costs 8 MB of copying and not 2 TB. Faults are values and come last in the list
that `feed` returns: the events before one are good.
"""

from codecs import utf_8_decode
from dataclasses import dataclass

from .contract import Limits
from .outcomes import INVALID_UTF8, LIMIT, Fault
from .units import first_utf16_units, utf16_units

_BOM = b"\xef\xbb\xbf"
_CR = 13
_COLON = 58


@dataclass(frozen=True, kw_only=True)
class Event:
    """One dispatched event: its type (`message` if none was set) and its joined data."""

    type: str
    data: str


class Framer:
    """Cuts one response body into events."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cut = b""  # the bytes of a character whose rest has not come
        self._input_utf16 = 0
        self._at_start = True
        self._after_cr = False
        self._line: list[bytes] = []  # the pieces of the unfinished line
        self._line_utf16 = 0
        self._type = ""
        self._data: list[str] = []
        self._data_utf16 = 0
        self._events = 0
        self._faulted = False

    def feed(self, data: bytes) -> list[Event | Fault]:
        """Give the events that these bytes complete, and last the fault that they hold, if any.

        Raises RuntimeError when fed again after a fault: that is the caller's mistake.
        """
        if self._faulted:
            raise RuntimeError("the framer was fed after a fault")
        out: list[Event | Fault] = []
        whole, later = self._whole_characters(data)
        fault = self._take(whole, out) if whole else None
        fault = fault or later
        if fault:
            self._faulted = True
            out.append(fault)
        return out

    def _whole_characters(self, data: bytes) -> tuple[bytes, Fault | None]:
        """Give the bytes up to the last whole character, and the fault that stands behind them."""
        chunk = self._cut + data
        fault = None
        if chunk.isascii():
            text, used = None, len(chunk)
            utf16 = used
        else:
            try:
                text, used = utf_8_decode(chunk, "strict", False)
            except UnicodeDecodeError as error:
                used = error.start
                text = chunk[:used].decode()
                fault = Fault(outcome=INVALID_UTF8, why=f"{error.reason} {chunk[used]:#04x}")
            utf16 = utf16_units(text)
        self._cut = chunk[used:]
        if self._cut[:1] == b"\xed" and self._cut[1:2] > b"\x9f":
            # CPython waits for the third byte of a surrogate; RFC 3629 refuses it at the second.
            fault = Fault(outcome=INVALID_UTF8, why="an encoded surrogate")
        room = self._limits.input_utf16 - self._input_utf16
        self._input_utf16 += utf16
        if utf16 <= room:
            return chunk[:used], fault
        head = chunk[:room] if text is None else first_utf16_units(text, room).encode()
        return head, _over("input", self._limits.input_utf16)

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
        for line in ended:
            fault = self._end_line(line, out)
            if fault:
                return fault
        return self._extend_line(rest)

    def _extend_line(self, piece: bytes) -> Fault | None:
        if not piece:
            return None
        self._line.append(piece)
        self._line_utf16 += _utf16_of(piece)
        if self._line_utf16 > self._limits.line_utf16:
            return _over("line", self._limits.line_utf16)
        return None

    def _end_line(self, piece: bytes, out: list[Event | Fault]) -> Fault | None:
        fault = self._extend_line(piece)
        if fault:
            return fault
        line = b"".join(self._line)
        self._line.clear()
        self._line_utf16 = 0
        if not line:
            return self._dispatch(out)
        return self._field(line)

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
            return _over("event", self._limits.event_utf16)
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


def _utf16_of(piece: bytes) -> int:
    return len(piece) if piece.isascii() else utf16_units(piece.decode())


def _over(what: str, limit: int) -> Fault:
    return Fault(outcome=LIMIT, why=f"{what} over {limit} UTF-16 units")
