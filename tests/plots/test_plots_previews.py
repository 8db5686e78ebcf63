"""The picture of previews: what it says, how large it is, and that it is the same every time."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import pytest

from plots.evidence import RefusalError, read_audit
from plots.fonts import Fonts, only
from plots.previews import MOST_ROWS, draw, scale, ticks, utf16_units
from plots.sheet import Picture

from .conftest import DATA

Json = dict[str, Any]


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG, in pixels."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def texts(svg: bytes) -> list[str]:
    """What is written in an SVG, in drawing order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode("utf-8"))


@pytest.fixture(scope="module")
def frozen() -> Picture:
    """The picture of the 22 frozen cases, drawn once for the tests that only look at it."""
    return draw(read_audit(json.loads((DATA / "audit-22.json").read_text("utf-8"))), Fonts(only("DejaVu Sans")))


def only_rows(report: Json, count: int) -> Json:
    """The report with its first `count` trials."""
    return {**report, "trials": report["trials"][:count]}


def test_size(frozen: Picture) -> None:
    """22 trials make a picture of about 1500 by 600 pixels."""
    assert size(frozen.png) == (1500, 602)


def test_every_trial_is_told_in_words(report: Json, frozen: Picture) -> None:
    """Every case stands in the SVG as text, with committed or refused and its outcome."""
    written = texts(frozen.svg)
    for row in report["trials"]:
        assert row["case"] in written
        word = "committed" if row["claim"]["committed"] else "refused"
        assert f"{word} · {row['claim']['outcome']}" in written
    assert sum(text.startswith("committed ·") for text in written) == 6
    assert sum(text.startswith("refused ·") for text in written) == 16


def test_title(frozen: Picture) -> None:
    """The title names suite, subject, the number committed and the first 12 digits of the stable root."""
    title = "frozen · endmark · 6 committed of 22 · stable root 0123456789ab"
    assert texts(frozen.svg)[0] == title


def test_partial_run_says_so(report: Json, bare: Fonts) -> None:
    """A run of a part of the suite has PARTIAL in its title."""
    report = only_rows(report, 3) | {"coverage": {"planned": 3, "of": 22, "partial": True}}
    assert "PARTIAL 3 of 22" in texts(draw(read_audit(report), bare).svg)[0]


def test_unit_is_code_points(frozen: Picture) -> None:
    """The axis names its unit, and the note shows with the emoji how UTF-16 units differ."""
    written = texts(frozen.svg)
    assert written.count("preview length in Unicode code points (not UTF-16 units)") == 2
    assert any(text.endswith("is 9 code points, but 10 UTF-16 units") for text in written)


def test_utf16_units() -> None:
    """A character beyond the basic plane counts two UTF-16 units."""
    assert (utf16_units("你好，Java 🌱"), utf16_units("")) == (10, 0)


def test_same_input_same_bytes(report: Json) -> None:
    """The same report gives the same PNG and SVG to the byte."""
    audit = read_audit(report)
    assert draw(audit, Fonts()) == draw(audit, Fonts())


def test_no_date(frozen: Picture) -> None:
    """The SVG carries no date."""
    assert b"dc:date" not in frozen.svg


def test_length_zero_has_no_bar(report: Json, bare: Fonts) -> None:
    """An empty preview has the number 0 and no bar: one box less than a preview of one character."""
    row = report["trials"][0]
    boxes = []
    for preview in ("", "x"):
        row["claim"]["preview"] = preview
        boxes.append(draw(read_audit(only_rows(report, 1)), bare).svg.count(b'<g id="patch_'))
    assert boxes[0] + 1 == boxes[1]


def test_all_previews_empty(report: Json, bare: Fonts) -> None:
    """A run that shows nothing at all still has a picture."""
    for row in report["trials"]:
        row["claim"]["preview"] = ""
    assert texts(draw(read_audit(report), bare).svg).count("0") >= 22


def test_one_trial(report: Json, bare: Fonts) -> None:
    """A single trial has one column, and the picture is lower."""
    picture = draw(read_audit(only_rows(report, 1)), bare)
    assert size(picture.png) == (1500, 202)
    assert sum("code points (" in text for text in texts(picture.svg)) == 1


@pytest.mark.parametrize(("count", "height"), [(2, 202), (3, 242), (21, 602)])
def test_columns_are_balanced(report: Json, bare: Fonts, count: int, height: int) -> None:
    """Two columns differ by one row at most; the height is that of the longer one."""
    assert size(draw(read_audit(only_rows(report, count)), bare).png) == (1500, height)


def test_disagreement_carries_the_verdict(report: Json, bare: Fonts) -> None:
    """A claim the auditor did not agree with is drawn as claimed and marked with the verdict's word."""
    row = report["trials"][0]
    row["verdict"] = "FALSE_COMMIT"
    row["claim"] = {**row["claim"], "committed": True}
    written = texts(draw(read_audit(report), bare).svg)
    assert "▲ FALSE_COMMIT" in written
    assert "the verdict is not AGREE" in written
    assert "7 committed of 22" in written[0]


def test_all_agree_has_no_alarm(frozen: Picture) -> None:
    """Where every verdict is AGREE neither the alarm nor its legend is drawn."""
    assert not [text for text in texts(frozen.svg) if "▲" in text or "AGREE" in text]


def test_no_claim_commits_nothing(report: Json, bare: Fonts) -> None:
    """A trial without a claim shows what was derived, says so, and does not count as committed."""
    row = next(row for row in report["trials"] if row["case"] == "crlf")
    row.update(verdict="NO_CLAIM", claim=None)
    written = texts(draw(read_audit(report), bare).svg)
    assert "no claim · COMPLETE" in written
    assert "5 committed of 22" in written[0]


def session(claim: Json | None) -> Json:
    """Give the row of a session as the auditor gives it: what was shown and stored, and no outcome of one body."""
    derived = {"stored": ["kept"], "display": "kept", "state": "accepted", "outcome": "COMPLETE"}
    names = {"trial": "sessions/normal@strict/1", "suite": "sessions", "case": "normal", "contract": "strict/1"}
    return {**names, "verdict": "AGREE", "derived": derived, "claim": claim}


@pytest.mark.parametrize(
    ("claim", "word", "committed"),
    [
        ({"stored": ["kept"], "display": "kept", "outcome": "COMPLETE"}, "committed · COMPLETE", 1),
        ({"stored": [], "display": "half", "outcome": None}, "refused · COMPLETE", 0),
        (None, "no claim · COMPLETE", 0),
    ],
)
def test_a_session_is_told_by_what_it_stored(
    claim: Json | None, word: str, committed: int, report: Json, bare: Fonts
) -> None:
    """A session that stored an answer is committed, one that stored none is refused, and its screen is the preview."""
    report["trials"] = [session(claim)]
    written = texts(draw(read_audit(report), bare).svg)
    assert word in written
    assert f"{committed} committed of" in written[0]
    assert (claim or {"display": "kept"})["display"] in written


def test_missing_outcome_comes_from_the_auditor(report: Json, bare: Fonts) -> None:
    """A subject that claims no outcome is shown with the derived one."""
    row = next(row for row in report["trials"] if row["case"] == "missing-done")
    row["claim"] = {**row["claim"], "outcome": None}
    assert "refused · INCOMPLETE_STREAM" in texts(draw(read_audit(report), bare).svg)


def test_long_texts_are_cut(report: Json, bare: Fonts) -> None:
    """Long names and previews end in an ellipsis; the length is still the whole one."""
    row = report["trials"][0]
    row["case"] = "a" * 100
    row["claim"] = {**row["claim"], "preview": "abc " * 2000}
    written = texts(draw(read_audit(report), bare).svg)
    assert [text for text in written if re.fullmatch("a+…", text)]
    assert [text for text in written if text.startswith("abc abc") and text.endswith("…")]
    assert "8,000" in written


def test_same_case_under_two_contracts(report: Json, bare: Fonts) -> None:
    """Where a case name is not enough the row is called by its contract as well, before what may be cut."""
    report["trials"][1]["case"] = report["trials"][0]["case"]
    written = texts(draw(read_audit(report), bare).svg)
    assert [text for text in written if text.startswith("frozen-text/1 ")]


def test_dollars_are_no_mathematics(report: Json, bare: Fonts) -> None:
    """Text between dollar signs is drawn as it is."""
    report["trials"][0]["claim"]["preview"] = "$x^2$ costs $5"
    assert "$x^2$ costs $5" in texts(draw(read_audit(report), bare).svg)


def test_too_many_trials(report: Json, bare: Fonts) -> None:
    """More rows than a PNG can hold are refused before anything is drawn."""
    many = [{**report["trials"][0]} for _ in range(2 * MOST_ROWS + 1)]
    with pytest.raises(RefusalError, match="too many"):
        draw(read_audit({**report, "trials": many}), bare)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [([], 1), ([0, 0], 1), ([3, 9], 9), ([1, 20], 20), ([3, 9, 4097], 11), ([0, 4097], 4097), ([5], 5)],
)
def test_scale(lengths: list[int], expected: int) -> None:
    """The axis holds the longest preview, unless that one would make all others invisible."""
    assert scale(lengths) == expected


def test_broken_bar_says_so(report: Json, bare: Fonts) -> None:
    """A bar that is longer than the axis keeps its number, and the axis says what the break means."""
    report["trials"][0]["claim"]["preview"] = "a" * 4097
    written = texts(draw(read_audit(report), bare).svg)
    assert "4,097" in written
    assert sum("a broken bar is longer" in text for text in written) == 2


@pytest.mark.parametrize(
    ("highest", "expected"),
    [(1, [0, 1]), (3, [0, 1, 2, 3]), (9, [0, 3, 6, 9]), (406, [0, 100, 200, 300, 400])],
)
def test_ticks(highest: int, expected: list[int]) -> None:
    """Ticks are round, start at 0 and stay within the axis."""
    assert ticks(highest) == expected
