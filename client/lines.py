"""What the two text framings share: whole characters cut into lines, and events counted.

A line is cut on bytes, since LF never occurs inside a character of several bytes. An unfinished line is a
list of pieces, joined once, so an 8 MB line fed in 16-byte pieces costs 8 MB of copying and not 2 TB. What
a line means is the framing's own.
"""

from .characters import Characters
from .contract import Contract
from .events import Event, FaultedError, Item
from .outcomes import LIMIT, Fault
from .units import Pieces, utf16_units

# A piece is worked through in blocks of this size, so that the lines of a flood are never all held at once.
_BLOCK_BYTES = 16 * 1024

_LF = 10


class LineFramer:
    """Feeds whole characters, line by line, to what a framing makes of them."""

    def __init__(self, contract: Contract) -> None:
        self._limits = contract.limits
        self._characters = Characters(contract.limits.input_utf16, contract.utf8_errors)
        self._line = Pieces(contract.limits.line_utf16)
        self.events = 0
        self._faulted = False

    def feed(self, data: bytes) -> list[Item]:
        """Give the events that these bytes complete, and last the fault that they hold, if any."""
        if self._faulted:
            raise FaultedError
        out: list[Item] = []
        fault = self._block(data, out) if len(data) <= _BLOCK_BYTES else self._blocks(data, out)
        if fault:
            self._faulted = True
            out.append(fault)
        return out

    def flush(self) -> list[Item]:
        """Give what the end of the body cut, as if its line end and a blank line had come."""
        if self._characters.refuses_end:
            return []
        out: list[Item] = []
        last, later = self._characters.finish()
        fault = (self._take(last, out) if last else None) or later
        fault = fault or self._lines([self._line.take(), b""], out)
        return [*out, fault] if fault else out

    def _blocks(self, data: bytes, out: list[Item]) -> Fault | None:
        for start in range(0, len(data), _BLOCK_BYTES):
            fault = self._block(data[start : start + _BLOCK_BYTES], out)
            if fault:
                return fault
        return None

    def _block(self, data: bytes, out: list[Item]) -> Fault | None:
        whole, later = self._characters.feed(data)
        return (self._take(whole, out) if whole else None) or later

    def _take(self, chunk: bytes, out: list[Item]) -> Fault | None:
        """Cut whole characters at LF and act on each line, up to the first fault."""
        if self._line.held and _LF in chunk:
            chunk = self._line.take() + chunk
        *lines, rest = chunk.split(b"\n")
        if len(chunk) <= self._limits.line_utf16 or (too_long := self._too_long(lines)) is None:
            return self._lines(lines, out) or (self._extend(rest) if rest else None)
        return self._lines(lines[:too_long], out) or self._extend(lines[too_long])

    def _too_long(self, lines: list[bytes]) -> int | None:
        """Find the first line over its limit: UTF-8 has at least as many bytes as units."""
        for number, line in enumerate(lines):
            if len(line) > self._limits.line_utf16 < utf16_units(line.decode()):
                return number
        return None

    def _extend(self, piece: bytes) -> Fault | None:
        """Add a piece to the unfinished line; a fault where it grows beyond its limit."""
        if self._line.add(piece):
            return None
        return Fault(outcome=LIMIT, why=f"line over {self._limits.line_utf16} UTF-16 units")

    def _emit(self, item: bytes | Event, out: list[Item]) -> Fault | None:
        """Dispatch one event, unless it is one too many."""
        if self.events == self._limits.events:
            return Fault(outcome=LIMIT, why=f"more than {self._limits.events} events")
        self.events += 1
        out.append(item)
        return None

    def _lines(self, lines: list[bytes], out: list[Item]) -> Fault | None:
        """Act on lines that have ended, up to the first fault."""
        raise NotImplementedError
