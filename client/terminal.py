"""Text for a terminal: made harmless, measured in cells, cut into rows. It knows no stream and writes nothing.

What a model wrote may hold anything, an escape sequence that rewrites the screen or marks that turn the
direction of writing as well (https://www.unicode.org/reports/tr9/). Whatever is no visible character is shown
by its number instead.
"""

import unicodedata
from collections.abc import Iterator

_WIDE = {"W": 2, "F": 2}

# Joiners without which some scripts and emoji are written wrongly; they move nothing.
_JOINERS = "\u200c\u200d"

# Makes a narrow character before it an emoji, which is wide.
_EMOJI_STYLE = "\ufe0f"

_TAB = "    "


def harmless(text: str) -> str:
    """Write what would act on a terminal by its number; line ends as well, so that the text is one line."""
    return "".join(char if _is_visible(char) else _number(char) for char in text.replace("\t", _TAB))


def cells(text: str) -> int:
    """Count terminal cells: East Asian wide characters and emoji take two, combining marks and joiners none."""
    return sum(map(_cells, text))


def rows(text: str, width: int) -> list[str]:
    """Cut a text into rows of at most so many cells, at its line ends and wherever a row is full."""
    return [row for line in text.split("\n") for row in _broken(harmless(line), width)]


def tail(text: str, width: int) -> str:
    """Give the end of a text on one line of so many cells; an ellipsis says that it began before."""
    last = harmless(text[-width:])
    if len(text) <= width and cells(last) <= width:
        return last
    while cells(last) >= width:
        last = last[1:]
    return "…" + last


def _is_visible(char: str) -> bool:
    return char.isprintable() or char in _JOINERS


def _number(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me") or char in _JOINERS:
        return int(char == _EMOJI_STYLE)
    return _WIDE.get(unicodedata.east_asian_width(char), 1)


def _broken(line: str, width: int) -> Iterator[str]:
    row, used = "", 0
    for char in line:
        if used + _cells(char) > width:
            yield row
            row, used = "", 0
        row, used = row + char, used + _cells(char)
    yield row
