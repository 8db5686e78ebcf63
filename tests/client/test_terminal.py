"""Text of a model on a terminal: nothing of it acts, and rows are as wide as they are said to be."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.terminal import cells, harmless, rows, tail


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 你好 🌱 é", "plain, 你好 🌱 é"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb\x08c\x7f", "a\\rb\\x08c\\x7f"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("\u2028\ufeff\ue000", "\\u2028\\ufeff\\ue000"),
        ("a\tb\n", "a    b\\n"),
        ("\ud800", "\\ud800"),
        ("👩\u200d💻 می\u200cخواهم", "👩\u200d💻 می\u200cخواهم"),
    ],
)
def test_harmless(text: str, shown: str) -> None:
    """What would move the cursor, change the terminal or turn the writing is written by its number."""
    assert harmless(text) == shown


@given(st.text(st.characters()))
def test_no_control_passes(text: str) -> None:
    """No text has a control, format or unassigned character left, but for the two joiners."""
    left = {unicodedata.category(char) for char in harmless(text) if char not in "\u200c\u200d"}
    assert not left & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("你好", 4), ("e\u0301", 1), ("🌱", 2), ("❤\ufe0f", 2), ("ﬁ", 1), ("", 0)]
)
def test_cells(text: str, width: int) -> None:
    """Wide characters take two cells, combining marks none, and an emoji made of a narrow character two."""
    assert cells(text) == width


@given(st.text(st.characters()), st.integers(2, 30))
def test_rows_hold_all_of_the_text(text: str, width: int) -> None:
    """Rows are never wider than asked, and joined they are the text, made harmless line by line."""
    found = rows(text, width)
    assert all(cells(row) <= width for row in found)
    assert "".join(found) == "".join(map(harmless, text.split("\n")))


def test_rows_keep_empty_lines() -> None:
    """Line ends begin rows, also where nothing stands between them."""
    assert rows("a\n\nb\n", 10) == ["a", "", "b", ""]


@given(st.text(st.characters()), st.integers(4, 30))
def test_a_tail_fits_and_is_the_end(text: str, width: int) -> None:
    """A tail fits its width, and is the whole text or, behind an ellipsis, the end of it."""
    found = tail(text, width)
    assert cells(found) <= width
    assert found == harmless(text) or (found[0] == "…" and harmless(text).endswith(found[1:]))
