"""Bytes in, the bytes of whole characters out: UTF-8 checked and counted, whatever the cuts.

Every byte is looked at once and in whatever line it stands. What a cut leaves open, up to three
bytes of a character, is kept for the next piece. This file knows no lines and no events.
"""

from codecs import utf_8_decode

from .outcomes import INVALID_UTF8, LIMIT, Fault
from .units import first_utf16_units, utf16_units


class Characters:
    """Checks one body; strictly, or with U+FFFD in place of what is no UTF-8."""

    def __init__(self, input_utf16: int, errors: str) -> None:
        """Take the most UTF-16 units that may come, and `strict` or `replace`."""
        self._limit_utf16, self._errors = input_utf16, errors
        self._cut = b""  # the bytes of a character whose rest has not come
        self._seen_utf16 = 0

    def feed(self, data: bytes) -> tuple[bytes, Fault | None]:
        """Give the bytes up to the last whole character, and the fault that stands behind them."""
        chunk = self._cut + data
        if chunk.isascii():
            self._cut = b""
            return self._within(chunk, None, len(chunk), None)
        text, used, fault = self._decode(chunk)
        self._cut = chunk[used:]
        whole = chunk[:used] if self._errors == "strict" else text.encode()
        return self._within(whole, text, utf16_units(text), fault)

    def _decode(self, chunk: bytes) -> tuple[str, int, Fault | None]:
        try:
            text, used = utf_8_decode(chunk, self._errors, False)
        except UnicodeDecodeError as error:
            why = f"{error.reason} {chunk[error.start]:#04x}"
            return chunk[: error.start].decode(), error.start, Fault(outcome=INVALID_UTF8, why=why)
        if chunk[used : used + 1] != b"\xed" or chunk[used + 1 : used + 2] <= b"\x9f":
            return text, used, None
        # CPython waits for the third byte of a surrogate; RFC 3629 refuses it at the second.
        if self._errors == "strict":
            return text, used, Fault(outcome=INVALID_UTF8, why="an encoded surrogate")
        return text + "\ufffd" * (len(chunk) - used), len(chunk), None

    def _within(self, whole: bytes, text: str | None, utf16: int, fault: Fault | None) -> tuple[bytes, Fault | None]:
        room = self._limit_utf16 - self._seen_utf16
        self._seen_utf16 += utf16
        if utf16 <= room:
            return whole, fault
        head = whole[:room] if text is None else first_utf16_units(text, room).encode()
        return head, Fault(outcome=LIMIT, why=f"input over {self._limit_utf16} UTF-16 units")
