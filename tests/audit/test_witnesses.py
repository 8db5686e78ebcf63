"""What a finding says of itself: quoted, cut, harmless to a terminal, and true."""

from __future__ import annotations

import itertools

import pytest

import audit

NESTED: list[object] = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("你好 é 🌱", "你好 é 🌱"),
        ("a\x1b[2J\r\n", "a\\x1b[2J\\r\\n"),
        ("\x9b\u202e\ud800", "\\x9b\\u202e\\ud800"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    """What is printable stays as it is, all else is escaped."""
    assert audit.plain(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 80, repr("x" * 80)),
        ("x" * 81, repr("x" * 80) + "... (81 long)"),
        (b"x" * 81, repr(b"x" * 80) + "... (81 long)"),
        ([1] * 52 + [22], repr([1] * 52 + [22])),
        ([1] * 54, repr([1] * 54)[:160] + "..."),
        (None, "None"),
        (NESTED, "a value that nests too deep to be shown"),
    ],
    ids=["80", "81", "bytes", "160", "longer", "None", "nested"],
)
def test_brief(value: object, shown: str) -> None:
    """A text of 80 and any other value of 160 characters is shown whole."""
    assert audit.brief(value) == shown


def test_brief_of_a_given_length() -> None:
    """The caller may cut shorter."""
    assert audit.brief("12345", 4) == "'1234'... (5 long)"


SHORT = [bytes(letters) for size in range(5) for letters in itertools.product(b"ab", repeat=size)]


def test_difference() -> None:
    """The offset is the first at which two texts differ: all pairs of short ones are tried, and what stands there."""
    for found, expected in itertools.permutations(SHORT, 2):
        pairs = itertools.zip_longest(found, expected)
        at = next(at for at, (one, other) in enumerate(pairs) if one != other)
        shown = f"offset {at}: {found[at:]!r}, expected {expected[at:]!r}"
        assert audit.difference(found, expected) == shown


def test_difference_is_cut() -> None:
    """16 bytes of each are shown."""
    common = b"x" * 1000
    shown = f"offset 1000: {b'a' * 16!r}, expected {b'b' * 16!r}"
    assert audit.difference(common + b"a" * 17 + common, common + b"b" * 17) == shown


def test_findings_are_escaped() -> None:
    """Place, text and witness of findings and notes go through `plain`, the code is one of ours."""
    found = audit.Findings()
    found.add("E-X", "a\n", "b\n", "c\n")
    found.note("N-X", "a\n", "b\n", "c\n")
    assert found.findings == [("E-X", "a\\n", "b\\n", "c\\n")]
    assert found.notes == [("N-X", "a\\n", "b\\n", "c\\n")]


def test_findings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly the limit is listed."""
    monkeypatch.setattr(audit, "MAX_FINDINGS", 2)
    found = audit.Findings()
    for number in range(4):
        assert found.full is (number >= 2)
        found.add("E-X", str(number), "", "")
    assert [finding.place for finding in found.findings] == ["0", "1"]
