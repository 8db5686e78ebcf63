"""`ndjson`: one event a line, ended by LF; one CR before it is dropped, an empty line is nothing.

    https://github.com/ndjson/ndjson-spec
        Each JSON text MUST follow RFC 8259 and MUST be followed by the newline character (U+000A).

No other character ends a line: U+2028 inside a string is data. What it keeps between two pieces
is the bytes of a character and the unfinished line.
"""

from .events import Item
from .lines import LineFramer
from .outcomes import Fault


class NdjsonFramer(LineFramer):
    """Cuts one body into lines."""

    def _lines(self, lines: list[bytes], out: list[Item]) -> Fault | None:
        for line in lines:
            text = line.removesuffix(b"\r")
            fault = self._emit(text, out) if text else None
            if fault:
                return fault
        return None
