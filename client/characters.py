"""Bytes in, the bytes of whole characters out: UTF-8 checked and counted, whatever the cuts.

Every byte is looked at once and in whatever line it stands. What a cut leaves open, up to three
bytes of a character, is kept for the next piece. This file knows no lines and no events.
"""

import re
from codecs import utf_8_decode

from .outcomes import INVALID_UTF8, LIMIT, Fault
from .units import decoded_utf16_units, first_utf16_units

# What RFC 3629 section 3 forbids: the first two bytes of a surrogate's three.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


class Characters:
    """Checks one body; strictly, or with U+FFFD in place of what is no UTF-8."""

    def __init__(self, input_utf16: int, errors: str) -> None:
        """Take the most UTF-16 units that may come, and `strict` or `replace`."""
        self._limit_utf16, self._errors = input_utf16, errors
        self._cut = b""  # the bytes of a character whose rest has not come
        self._seen_utf16 = 0

    def feed(self, data: bytes) -> tuple[bytes, Fault | None]:
        """Give the bytes up to the last whole character, and the fault that stands behind them."""
        if self._cut:
            return self._cut_characters(self._cut + data)
        if data.isascii():
            self._seen_utf16 += len(data)
        else:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                return self._cut_characters(data)
            self._seen_utf16 += decoded_utf16_units(data, text)
        return (data, None) if self._seen_utf16 <= self._limit_utf16 else self._over(data, data.decode())

    @property
    def refuses_end(self) -> bool:
        """Say whether the end cuts a character that nothing replaces."""
        return bool(self._cut) and self._errors == "strict"

    def finish(self) -> tuple[bytes, Fault | None]:
        """Give what the end makes of a character that it cuts: U+FFFD where bytes are replaced, else nothing."""
        return self._counted(self._cut.decode(errors="replace"), None)

    def _cut_characters(self, chunk: bytes) -> tuple[bytes, Fault | None]:
        """Take bytes that are not whole characters, for a cut or for an offence."""
        try:
            text, used = utf_8_decode(chunk, self._errors, False)
        except UnicodeDecodeError as error:
            why = f"{error.reason} {chunk[error.start]:#04x}"
            return self._counted(chunk[: error.start].decode(), Fault(outcome=INVALID_UTF8, why=why))
        self._cut = chunk[used:]
        if not _SURROGATE.match(self._cut):
            return self._counted(text, None)
        # CPython waits for the third byte of a surrogate; RFC 3629 refuses it at the second.
        if self._errors == "strict":
            return self._counted(text, Fault(outcome=INVALID_UTF8, why="an encoded surrogate"))
        text += "\ufffd" * len(self._cut)
        self._cut = b""
        return self._counted(text, None)

    def _counted(self, text: str, fault: Fault | None) -> tuple[bytes, Fault | None]:
        whole = text.encode()
        self._seen_utf16 += decoded_utf16_units(whole, text)
        return (whole, fault) if self._seen_utf16 <= self._limit_utf16 else self._over(whole, text)

    def _over(self, whole: bytes, text: str) -> tuple[bytes, Fault]:
        """Give the characters that are still within the limit."""
        room_utf16 = self._limit_utf16 - (self._seen_utf16 - decoded_utf16_units(whole, text))
        fault = Fault(outcome=LIMIT, why=f"input over {self._limit_utf16} UTF-16 units")
        return first_utf16_units(text, room_utf16).encode(), fault
