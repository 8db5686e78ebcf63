"""The choice of fonts: no character comes out as a box."""

from __future__ import annotations

import pytest

from plots import fonts
from plots.fonts import BASE, MONO, Fonts, only


def test_plain_text_needs_one_font(bare: Fonts) -> None:
    """Text that DejaVu Sans has is left alone."""
    assert bare.spell("committed · Grüße") == ("committed · Grüße", [BASE])
    assert bare.report() == "fonts: DejaVu Sans; replaced: nothing"


def test_missing_glyph_is_written_by_number(bare: Fonts) -> None:
    """A character that no font has is written by its number, and the report names it once."""
    assert bare.spell("🌱🌱 你")[0] == "‹U+1F331›‹U+1F331› ‹U+4F60›"
    assert bare.report() == "fonts: DejaVu Sans; replaced: ‹U+1F331› ‹U+4F60›"


@pytest.mark.parametrize("character", ["\n", "\x1b", "\u202e", "\ud800", "\u2028", "\ue000", "\x00"])
def test_unseen_character_is_written_by_number(bare: Fonts, character: str) -> None:
    """Controls, marks of direction, surrogates and private characters never reach the picture."""
    assert bare.spell(character)[0] == f"‹U+{ord(character):04X}›"


def test_other_font_is_used_and_reported() -> None:
    """A character that the base has not is drawn with another font that has it."""
    chosen = Fonts(only("STIXGeneral"))
    integral = "\u2a0c\U0001d504"
    assert chosen.spell(integral, MONO) == (integral, [MONO, BASE, "STIXGeneral"])
    assert "STIXGeneral" in chosen.report()


def test_the_font_of_boxes_is_never_chosen() -> None:
    """Matplotlib's own last resort, which has a box for every character, is no candidate."""
    assert Fonts().spell("\U0001fbff\U000e01ef")[0].endswith("‹U+E01EF›")
    assert not [name for name in (*fonts.PREFERRED, *fonts._others()) if "last resort" in name.lower()]


def test_a_font_that_is_gone_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where matplotlib answers with some other font for a family it no longer knows, that does not count."""
    monkeypatch.setattr(fonts, "_names", lambda: {BASE})
    fonts._face.cache_clear()
    assert fonts._face(MONO) is None
    fonts._face.cache_clear()


def test_font_without_outline_does_not_count() -> None:
    """A family that is not installed, or whose glyph is empty, does not have the character."""
    assert not fonts._has("No Such Family", "a")
    assert not fonts._has(BASE, "\u2060")
    assert fonts._has(BASE, " ")


def test_report_is_one_short_line(bare: Fonts) -> None:
    """However many characters are replaced, the report names at most twelve."""
    bare.spell("".join(chr(0x4E00 + n) for n in range(200)))
    assert "\n" not in bare.report()
    assert bare.report().count("‹") == 12
