"""Writes the bytes of a body below the lanes, as text, where there is room for it.

With nine pixels a byte each has a cell of its own, exactly below its offset; with fewer the text of
each event is broken into lines below that event. This file may not know what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .evidence import Trace
from .sheet import FAINT, GREY, INK, Sheet
from .window import LEFT, WHOLE, Window

HEAD, SIZE, SMALL = 16, 13, 12  # pixels
CELL = 9.0  # pixels a byte needs for a cell of its own
LINES = 3  # of text below a stretch of the body


def write_body(sheet: Sheet, window: Window, trace: Trace, base: float) -> None:
    """The body as text: a cell for each byte, or lines below each stretch, or no room at all."""
    sheet.text(24, base, "body", HEAD, bold=True)
    shown = [cell for cell in cells(trace.body) if window.shows(cell[0], cell[1])]
    if not shown:
        sheet.text(LEFT + 8, base, "the body is empty", SMALL, ink=GREY)
    elif window.byte >= CELL:
        _in_cells(sheet, window, trace, shown, base)
    elif window.last - window.first <= WHOLE:
        _in_lines(sheet, window, trace, shown, base)
    else:
        words = f"no room for the text of more than {WHOLE} bytes: choose fewer with --from and --to"
        sheet.text(LEFT + 8, base, words, SMALL, ink=GREY)
    names = [f"{sign} is {name}" for sign, name in _NAMES.items() if any(c[2] == sign for c in shown)]
    sheet.text(24, base + 18, ", ".join(names), SMALL, ink=GREY, room=LEFT - 32)


Cell = tuple[int, int, str]


def _in_cells(sheet: Sheet, window: Window, trace: Trace, shown: list[Cell], base: float) -> None:
    """Each character above its own bytes; where it has no room, the bytes upright in hexadecimal."""
    for start, end, words in shown:
        x, size = (window.x(start) + window.x(end)) / 2, min(15.0, window.byte * 1.45)
        if sheet.measure(words, size, mono=True) <= (end - start) * window.byte + 1:
            plain = len(words) == 1 and words not in _NAMES
            sheet.text(x, base, words, size, ink=INK if plain else GREY, side="center", mono=True)
            continue
        for at in range(start, end):
            if window.shows(at, at + 1):
                x = window.x(at) + window.byte / 2
                sheet.text(x, base - 5, f"{trace.body[at]:02X}", 11, ink=GREY, mono=True, upright=True)


def _in_lines(sheet: Sheet, window: Window, trace: Trace, shown: list[Cell], base: float) -> None:
    """The text of each event below it, broken into lines that are as wide as the event."""
    edges = {window.first, window.last, *(e.start for e in trace.events), *(e.end for e in trace.events)}
    for start, end in pairwise(sorted(edge for edge in edges if window.holds(edge))):
        x, width = window.x(start), window.x(end) - window.x(start)
        words = [cell[2] for cell in shown if start <= cell[0] < end]
        lines = list(_broken(sheet, words, width - 5))
        if len(lines) > LINES:
            lines = [*lines[: LINES - 1], lines[LINES - 1] + "…"]
        for number, line in enumerate(lines):
            sheet.text(x + 3, base + 18 * number, line, SIZE, ink=GREY, mono=True, room=width - 3)
        if start > window.first:
            sheet.line((x, base - 14), (x, base + 18 * (LINES - 1) + 4), FAINT)


def _broken(sheet: Sheet, words: list[str], room: float) -> Iterator[str]:
    """The characters in lines that are at most so wide, in pixels; names in brackets."""
    widths = {word: sheet.measure(_bracketed(word) * 9, SIZE, mono=True) / 9 for word in set(words)}
    line, used = "", 0.0
    for word in words:
        if line and used + widths[word] > room:
            yield line
            line, used = "", 0.0
        line, used = line + _bracketed(word), used + widths[word]
    if line:
        yield line


def _bracketed(word: str) -> str:
    """A name or a number in brackets, so that it is not taken for text."""
    return word if len(word) == 1 else f"‹{word}›"


def cells(body: bytes) -> list[Cell]:
    """Start, end (bytes) and text of each character; bytes that are no text stand in hexadecimal."""
    found: list[Cell] = []
    start = 0
    while start < len(body):
        end = start + _LENGTHS.get(body[start] >> 4, 1)
        try:
            found.append((start, end, sign(body[start:end].decode("utf-8"))))
        except UnicodeDecodeError:
            end = start + 1
            found.append((start, end, f"{body[start]:02X}"))
        start = end
    return found


_LENGTHS = {0b1100: 2, 0b1101: 2, 0b1110: 3, 0b1111: 4}  # first four bits of a character -> its bytes
_NAMES = {"↵": "LF", "←": "CR"}
_SIGNS = {"\n": "↵", "\r": "←", "\t": "TAB", "\ufeff": "BOM"}


def sign(character: str) -> str:
    """The character, or a sign or a name for what cannot be seen."""
    return _SIGNS.get(character, character if character.isprintable() else f"U+{ord(character):04X}")
