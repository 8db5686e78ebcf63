"""What the two text framings share: whole characters cut into lines, and events counted.

A line is cut on bytes, since LF never occurs inside a character of several bytes. An unfinished line is a
list of pieces, joined once, so an 8 MB line fed in 16-byte pieces costs 8 MB of copying and not 2 TB. What
a line means is the framing's own.
"""

from .characters import Characters
from .contract import Contract
from .events import Event, FaultedError
from .outcomes import LIMIT, Fault
from .units import utf16_units


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


class LineFramer:
    """Feeds whole characters, line by line, to what a framing makes of them."""

    def __init__(self, contract: Contract) -> None:
        self._limits = contract.limits
        self._characters = Characters(contract.limits.input_utf16, contract.utf8_errors)
        self._line = Line(contract.limits.line_utf16)
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
        """Give what the end of the body cut, as if its ending had come."""
        out: list[Event | Fault] = []
        fault = self._end(self._line.take(), out)
        return [*out, fault] if fault else out

    def _take(self, chunk: bytes, out: list[Event | Fault]) -> Fault | None:
        """Cut whole characters at LF and act on each line, up to the first fault."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            fault = self._line.extend(piece) or self._act(self._line.take(), out)
            if fault:
                return fault
        return self._line.extend(rest)

    def _emit(self, event: Event, out: list[Event | Fault]) -> Fault | None:
        """Dispatch one event, unless it is one too many."""
        self._events += 1
        if self._events > self._limits.events:
            return Fault(outcome=LIMIT, why=f"more than {self._limits.events} events")
        out.append(event)
        return None

    def _act(self, line: bytes, out: list[Event | Fault]) -> Fault | None:
        """Act on a line that has ended."""
        raise NotImplementedError

    def _end(self, line: bytes, out: list[Event | Fault]) -> Fault | None:
        """Act on the line that the end of the body cut, and on what no ending has dispatched."""
        raise NotImplementedError
