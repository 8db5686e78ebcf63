"""UTF-16 code units, the unit of every limit that counts text.

The original experiment was Java, whose strings count UTF-16 units: an emoji counts two where
Unicode counts one code point and UTF-8 four bytes.
"""


def utf16_units(text: str) -> int:
    """Count the UTF-16 code units of a text; a lone surrogate counts one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def first_utf16_units(text: str, units: int) -> str:
    """Give the longest prefix of at most so many units that cuts no character."""
    head = text.encode("utf-16-le")[: 2 * units]
    return head.decode("utf-16-le", "ignore")
