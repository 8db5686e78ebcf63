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
several bytes, and data stays bytes: whoever reads it knows what it holds. Faults are values and come
last in the list that `feed` returns: the events before one are good. Two short cuts give what the loop over lines
would give: whole events of one data line each are split off at once, and runs of blank lines and of
comments between events are skipped at once.
"""

import re

from .contract import Contract
from .events import MESSAGE, Event, Item
from .lines import LineFramer
from .outcomes import LIMIT, Fault
from .units import Pieces

_BOM = b"\xef\xbb\xbf"
_LF, _CR, _COLON = b"\n\r:"

_NOTHING = re.compile(rb"(?:\n|:[^\n]*+\n)*+")  # blank lines and comments
_IDLE = (b"\n", b":")  # how those begin
_DATA = b"data: "
_BLANK = b"\n\n"
_NEXT_DATA = _BLANK + _DATA


class SseFramer(LineFramer):
    """Cuts one event stream into events."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._at_start = True
        self._after_cr = False
        self._type = b""
        self._data = Pieces(contract.limits.event_utf16)
        self._between = False  # nothing is open: neither a line nor an event nor a CR that an LF may follow
        # No line and no event of a chunk of so many bytes can be over its limit.
        self._safe_bytes = min(contract.limits.line_utf16, contract.limits.event_utf16)

    def _take(self, chunk: bytes, out: list[Item]) -> Fault | None:
        """Take the short cuts for a piece of a line and for one whole event of one data line, or look closer."""
        if self._line.held and not (_LF in chunk or _CR in chunk):
            return self._extend(chunk)
        if self._between and chunk[-2:] == _BLANK and chunk[:6] == _DATA:
            data = chunk[6:-2]
            if not (_LF in data or _CR in data or len(chunk) > self._safe_bytes or self.events == self._limits.events):
                self.events += 1
                out.append(data)
                return None
        fault = self._take_lines(chunk, out)
        self._between = not (self._line.held or self._data.held or self._type or self._after_cr)
        return fault

    def _take_lines(self, chunk: bytes, out: list[Item]) -> Fault | None:
        """Drop one leading BOM, make every line end an LF, and act on what that gives."""
        if self._at_start:
            self._at_start = False
            chunk = chunk.removeprefix(_BOM)
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if _CR in chunk:
            self._after_cr = chunk[-1] == _CR
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._data.held or self._type:
            begun, blank, chunk = chunk.partition(_BLANK)
            fault = super()._take(begun + blank, out)
            if fault:
                return fault
        elif self._line.held and _LF in chunk:
            chunk = self._line.take() + chunk
        if not self._line.held and len(chunk) <= self._safe_bytes:
            chunk = self._split(chunk, out)
        return super()._take(chunk, out)

    def _split(self, chunk: bytes, out: list[Item]) -> bytes:
        """Skip comments and blank lines, split off whole events if each is one data line; give the rest."""
        if chunk[:1] in _IDLE:
            chunk = _NOTHING.sub(b"", chunk, count=1)
        end = chunk.rfind(_BLANK)
        if end < 0 or chunk[:6] != _DATA:
            return chunk
        events = chunk[6:end].split(_NEXT_DATA)
        if _LF in b"".join(events) or self.events + len(events) > self._limits.events:
            return chunk
        self.events += len(events)
        out += events
        return chunk[end + 2 :]

    def _lines(self, lines: list[bytes], out: list[Item]) -> Fault | None:
        for line in lines:
            if not line:
                fault = self._dispatch(out)
            elif line[0] == _COLON:
                continue
            else:
                fault = self._field(line)
            if fault:
                return fault
        return None

    def _field(self, line: bytes) -> Fault | None:
        """Process one line that is neither blank nor a comment (HTML 9.2.6, "process the field")."""
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"event":
            self._type = value
        elif name == b"data" and not self._data.add(value, extra_utf16=bool(self._data.held)):
            return Fault(outcome=LIMIT, why=f"event over {self._limits.event_utf16} UTF-16 units")
        return None

    def _dispatch(self, out: list[Item]) -> Fault | None:
        """Act on a blank line; without a data field nothing is dispatched and the type is lost."""
        kind, self._type = self._type, b""
        if not self._data.held:
            return None
        data = self._data.take(b"\n")
        return self._emit(Event(kind.decode(), data) if kind and kind != MESSAGE.encode() else data, out)
