"""UTF-16 code units, the unit of every limit that counts text.

The original experiment was Java, whose strings count UTF-16 units: an emoji counts two where
Unicode counts one code point and UTF-8 four bytes. Text has at least as many UTF-8 bytes as units,
so bytes that fit prove that the units do: `Pieces` counts nothing before it has to.
"""

from codecs import utf_16_le_encode

# The first bytes of the characters beyond U+3FFFF, most of which nobody has assigned (RFC 3629 section 4).
_RARE_LEADS = (b"\xf1", b"\xf2", b"\xf3", b"\xf4")


def utf16_units(text: str) -> int:
    """Count the UTF-16 code units of a text; a lone surrogate counts one."""
    return len(text) if text.isascii() else len(utf_16_le_encode(text, "surrogatepass")[0]) // 2


def decoded_utf16_units(data: bytes, text: str) -> int:
    """Count the units of a text whose UTF-8 bytes are at hand, by scans instead of an encoding.

    A character beyond U+FFFF takes two units, and begins with one of the bytes F0 to F4.
    """
    units = len(text) + data.count(b"\xf0") if 0xF0 in data else len(text)
    if 0xF1 in data or 0xF2 in data or 0xF3 in data or 0xF4 in data:
        units += sum(map(data.count, _RARE_LEADS))
    return units


def first_utf16_units(text: str, units: int) -> str:
    """Give the longest prefix of at most so many units that cuts no character."""
    head = text.encode("utf-16-le")[: 2 * units]
    return head.decode("utf-16-le", "ignore")


class Pieces:
    """UTF-8 text that arrives in pieces of whole characters, held up to a number of UTF-16 units."""

    def __init__(self, limit_utf16: int) -> None:
        self._limit_utf16 = limit_utf16
        self.held: list[bytes] = []
        self._counted = 0  # so many of them are counted exactly, the others by their bytes
        self._counted_utf16 = 0
        self._at_most_utf16 = 0

    def add(self, piece: bytes, extra_utf16: int = 0) -> bool:
        """Hold one piece more, with units that stand before it; say whether that is within the limit."""
        self.held.append(piece)
        self._counted_utf16 += extra_utf16
        self._at_most_utf16 += len(piece) + extra_utf16
        return self._at_most_utf16 <= self._limit_utf16 or self._is_within()

    def take(self, between: bytes = b"") -> bytes:
        """Give what is held, joined, and hold nothing."""
        whole = between.join(self.held)
        self.held = []
        self._counted = self._counted_utf16 = self._at_most_utf16 = 0
        return whole

    def _is_within(self) -> bool:
        """Count exactly what was counted by its bytes; each piece once, so that the work stays linear."""
        for piece in self.held[self._counted :]:
            self._counted_utf16 += decoded_utf16_units(piece, piece.decode())
        self._counted = len(self.held)
        self._at_most_utf16 = self._counted_utf16
        return self._counted_utf16 <= self._limit_utf16
