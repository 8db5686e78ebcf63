"""`ndjson`: one event a line, ended by LF; one CR before it is dropped, an empty line is nothing.

    https://github.com/ndjson/ndjson-spec
        Each JSON text MUST follow RFC 8259 and MUST be followed by the newline character (U+000A).

No other character ends a line: U+2028 inside a string is data. What it keeps between two pieces
is the bytes of a character and the unfinished line.
"""

from .characters import Characters
from .contract import Contract
from .events import Event, FaultedError
from .framer import Line
from .outcomes import LIMIT, Fault


class NdjsonFramer:
    """Cuts one body into lines."""

    def __init__(self, contract: Contract) -> None:
        self._most_events = contract.limits.events
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
        fault = self._take(whole, out) or later
        if fault:
            self._faulted = True
            out.append(fault)
        return out

    def flush(self) -> list[Event | Fault]:
        """End the unfinished line, as if its LF had come."""
        out: list[Event | Fault] = []
        fault = self._end_line(out)
        return [*out, fault] if fault else out

    def _take(self, chunk: bytes, out: list[Event | Fault]) -> Fault | None:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            fault = self._line.extend(piece) or self._end_line(out)
            if fault:
                return fault
        return self._line.extend(rest)

    def _end_line(self, out: list[Event | Fault]) -> Fault | None:
        line = self._line.take().removesuffix(b"\r")
        if not line:
            return None
        self._events += 1
        if self._events > self._most_events:
            return Fault(outcome=LIMIT, why=f"more than {self._most_events} events")
        out.append(Event(type="message", data=line.decode()))
        return None
