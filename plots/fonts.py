"""Chooses, character by character, an installed font that really has the glyph.

Previews hold whatever a model wrote, and a box in their place would be a false picture. The order:
DejaVu Sans (it comes with matplotlib), then the first of `PREFERRED` that is installed and has the
character, then any Noto Sans that has it. A glyph counts only if it has an outline, so a
colour font whose glyphs are bitmaps or layers is never chosen. A character that no font has, and
every character that cannot be seen (controls, marks of direction, line breaks), is written by its
number instead, as in ‹U+1F331›. `Fonts.report` says in one line which fonts were used and what was
replaced. This file may not know what is drawn or where the text comes from.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

BASE = "DejaVu Sans"
MONO = "DejaVu Sans Mono"
PREFERRED = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Noto Emoji",
    "Noto Sans Symbols 2",
    "Noto Sans Symbols2",
    "Symbola",
    "Segoe UI",
    "Segoe UI Symbol",
    "Apple Symbols",
    "STIXGeneral",
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

Finder = Callable[[str], "str | None"]


class Fonts:
    """Knows the fonts of one picture, and remembers which were used and what was replaced."""

    def __init__(self, find: Finder | None = None) -> None:
        self._find = find or _installed
        self.used: list[str] = [BASE]
        self.replaced: list[str] = []

    def spell(self, text: str, base: str = BASE) -> tuple[str, list[str]]:
        """The text as it can be drawn, and the font families it needs, `base` first."""
        families, spelt = [base], []
        for character in text:
            family = self._family(character, base)
            if family is None:
                spelt.append(_number(character))
                _remember(self.replaced, spelt[-1])
            else:
                spelt.append(character)
                _remember(families, family)
                _remember(self.used, family)
        return "".join(spelt), families

    def report(self) -> str:
        """One line: the fonts that were used, and the characters that were written by number."""
        shown = " ".join(self.replaced[:12]) + (" …" if len(self.replaced) > 12 else "")
        return f"fonts: {', '.join(self.used)}; replaced: {shown or 'nothing'}"

    def _family(self, character: str, base: str) -> str | None:
        """The family that draws the character, None where it must be written by number."""
        if unicodedata.category(character) in _UNSEEN:
            return None
        return _first((base, BASE), character) or self._find(character)


def only(*families: str) -> Finder:
    """A finder that looks at these families and nowhere else."""
    return lambda character: _first(families, character)


def _installed(character: str) -> str | None:
    """The family that has the character: the preferred ones, then Noto Sans, then those installed lately."""
    found = _first(PREFERRED, character) or _first(_others(), character)
    if found is None and _learn_new_fonts():
        found = _first(PREFERRED, character) or _first(_others(), character)
    return found


def _first(families: Iterable[str], character: str) -> str | None:
    """The first of the families that can draw the character."""
    return next((family for family in families if _has(family, character)), None)


@lru_cache(maxsize=65536)
def _has(family: str, character: str) -> bool:
    """Whether the family's regular face has the character, with an outline unless it is a space."""
    face = _face(family)
    if face is None or not face.get_char_index(ord(character)):
        return False
    if unicodedata.category(character) == "Zs":
        return True
    face.load_char(ord(character))
    return len(face.get_path()[0]) > 0


@lru_cache(maxsize=64)  # each keeps a file open
def _face(family: str) -> FT2Font | None:
    """The regular face of an installed family, as matplotlib itself would find it.

    Where a font's file has gone since matplotlib wrote its list, the search makes the list anew and then
    answers with some other font; so the name must still be there afterwards.
    """
    try:
        path = font_manager.fontManager.findfont(
            font_manager.FontProperties(family=[family]), fallback_to_default=False
        )
        face = font_manager.get_font(path)
        face.set_size(20, 72)
    except (ValueError, RuntimeError, OSError):
        return None
    return face if family in _names() else None


@lru_cache(maxsize=1)
def _others() -> tuple[str, ...]:
    """The installed families of Noto Sans, one for nearly every script; colour fonts are none of them."""
    return tuple(sorted(name for name in _names() if name.startswith("Noto Sans")))


def _names() -> set[str]:
    """The families that matplotlib knows now."""
    return {entry.name for entry in font_manager.fontManager.ttflist}


@lru_cache(maxsize=1)
def _learn_new_fonts() -> bool:
    """Adds the fonts that were installed after matplotlib wrote its list; whether there were any."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    fresh = sorted(set(font_manager.findSystemFonts()) - known)
    for path in fresh:
        try:
            font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError, NotImplementedError, ValueError):
            continue
    if fresh:
        for cache in (_has, _face, _others):
            cache.cache_clear()
    return bool(fresh)


def _number(character: str) -> str:
    """The character by its number, as in ‹U+1F331›."""
    return f"‹U+{ord(character):04X}›"


def _remember(seen: list[str], item: str) -> None:
    """Adds the item to the list unless it is there."""
    if item not in seen:
        seen.append(item)
