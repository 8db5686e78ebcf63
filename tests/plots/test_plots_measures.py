"""The picture of measures: what it says, that it hides nothing, and which reports are refused."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from plots.__main__ import main
from plots.evidence import RefusalError
from plots.fonts import Fonts
from plots.measures import BOTTOM, LEFT, RIGHT, SMALL, TOP, axis_of, draw, duration, read
from plots.sheet import DPI

Json = dict[str, Any]

POINTS = 72 / DPI  # of an SVG, to a pixel


def wait(tasks: int, first_ms: float, step_ms: float) -> Json:
    """Give one kind of wait whose percentiles rise in steps."""
    quantiles_ms = [first_ms + step_ms * percent for percent in range(101)] if tasks else []
    return {"tasks": tasks, "p50_ms": None, "p95_ms": None, "quantiles_ms": quantiles_ms}


def a_report(**changes: Any) -> Json:
    """Give a report as `measures --json` prints it, but for the changes."""
    report: Json = {
        "schema": "endmark.measures/1",
        "file": "/somewhere/chat.jsonl",
        "attempts": 1234,
        "tasks": 1000,
        "ends": {"accepted": 950, "truncated": 84, "superseded": 200},
        "waits": {"first_display": wait(999, 100, 10), "accepted_completion": wait(950, 1000, 100)},
        "retries": 34,
        "stale_drops": 7,
        "accepted_without_evidence": 0,
        "findings": [],
    }
    return report | changes


def texts(report: Json, fonts: Fonts) -> list[str]:
    """Give what is written in the picture of a report."""
    svg = draw(read(json.dumps(report)), fonts).svg.decode("utf-8")
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_what_it_says(bare: Fonts) -> None:
    """File, counts, both waits with p50 and p95, every end, and the measure whose target is zero, in words."""
    written = texts(a_report(), bare)
    assert written[0] == "chat.jsonl · 1,234 attempts of 1,000 tasks"
    assert {"first display (999 tasks)", "accepted completion (950 tasks)"} <= set(written)
    assert {"p50 600 ms", "p95 1.05 s", "p50 6 s", "p95 10.5 s"} <= set(written)
    assert {"accepted", "950", "truncated", "84", "superseded", "200"} <= set(written)
    assert "accepted without evidence: 0, as it has to be" in written
    assert "retries per accepted answer: 0.04 · stale drops: 7" in written


@pytest.mark.parametrize("at_ms", [1, 1.01, 9.9, 10])
def test_no_percentile_is_told_outside_of_the_curves(bare: Fonts, at_ms: float) -> None:
    """Where all waits are at one edge of the axis, the words stand on the side that has room."""
    waits = {"first_display": wait(1, at_ms, 0), "accepted_completion": wait(1, at_ms, 0)}
    svg = draw(read(json.dumps(a_report(waits=waits))), bare).svg.decode("utf-8")
    told = re.findall(r'<text style="[^"]*text-anchor: (start|end)[^"]*" x="([^"]*)"[^>]*>(p(?:50|95) [^<]*)<', svg)
    assert len(told) == 4
    for side, x, words in told:
        room = (RIGHT - float(x) / POINTS) if side == "start" else (float(x) / POINTS - LEFT)
        assert room > len(words) * SMALL * 0.6, (side, x, words)


def test_a_finding_is_said_in_words(bare: Fonts) -> None:
    """An answer accepted without evidence is told in words, not in colour alone."""
    written = texts(a_report(accepted_without_evidence=3, findings=[{}] * 4), bare)
    assert "accepted without evidence: 3 — the target is 0" in written
    assert any(text.endswith(" · findings: 4") for text in written)


def test_nothing_accepted(bare: Fonts) -> None:
    """Where no answer was accepted the picture says so, and has no number in its place."""
    waits = {"first_display": wait(1, 5, 0), "accepted_completion": wait(0, 0, 0)}
    written = texts(a_report(waits=waits, ends={"accepted": 0}), bare)
    assert {"first display (1 task)", "accepted completion: in no task"} <= set(written)
    assert "retries per accepted answer: - · stale drops: 7" in written


def test_no_wait_at_all(bare: Fonts) -> None:
    """A file in which nothing was displayed or accepted is drawn all the same."""
    waits = {"first_display": wait(0, 0, 0), "accepted_completion": wait(0, 0, 0)}
    assert "first display: in no task" in texts(a_report(waits=waits), bare)


@pytest.mark.parametrize(
    ("found_ms", "low", "high"),
    [([], 0, 3), ([5.0], 0, 1), ([1.0], 0, 1), ([0.0], -1, 0), ([12.0, 900.0], 1, 3), ([0.5, 123456.0], -1, 6)],
)
def test_the_axis_holds_every_wait(found_ms: list[float], low: int, high: int) -> None:
    """The axis has whole decades, at least one, and every wait stands within it."""
    axis = axis_of(found_ms)
    assert (axis.low, axis.high) == (low, high)
    assert all(axis.x(10.0**low) <= axis.x(ms) <= axis.x(10.0**high) for ms in found_ms)


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0.1, "0.1 ms"), (12.34, "12.3 ms"), (999.0, "999 ms"), (1000.0, "1 s"), (61_234.0, "61.2 s"), (1e6, "1,000 s")],
)
def test_durations(ms: float, words: str) -> None:
    """A time is told in milliseconds or seconds, with three digits."""
    assert duration(ms) == words


def test_the_same_report_gives_the_same_bytes(bare: Fonts) -> None:
    """The picture has no date and nothing random in it."""
    found = read(json.dumps(a_report()))
    assert draw(found, bare) == draw(found, bare)
    assert TOP < BOTTOM


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "endmark.measures/2"},
        {"waits": {}},
        {"waits": None},
        {"attempts": "many"},
        {"attempts": -1},
        {"ends": [1]},
        {"ends": {"accepted": 1.5}},
        {"findings": None},
        {"waits": {"first_display": {"tasks": 1, "quantiles_ms": [1]}, "accepted_completion": wait(0, 0, 0)}},
        {"waits": {"first_display": wait(1, 100, -1), "accepted_completion": wait(0, 0, 0)}},
    ],
)
def test_another_shape_is_refused(changes: Json) -> None:
    """A report of another shape is refused in one line, never guessed at."""
    with pytest.raises(RefusalError, match=r"^the report of the measures [^\n]+$"):
        read(json.dumps(a_report(**changes)))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", "{"])
def test_nonsense_is_refused(text: str) -> None:
    """What is no report is refused."""
    with pytest.raises(RefusalError, match=r"^the report of the measures is n"):
        read(text)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--measures` reads a report from a file or from standard input, and `--out` names one form or both."""
    report = tmp_path / "report.json"
    report.write_text(json.dumps(a_report()))
    assert main(["--measures", str(report), "--out", str(tmp_path / "one.png")]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(a_report())))
    assert main(["--measures", "-", "--out", str(tmp_path / "both")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / name) for name in ("one.png", "both.png", "both.svg")
    ]
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "both.png").read_bytes()


@pytest.mark.parametrize(
    "argv",
    [["--measures", "x"], ["run", "--measures", "x", "--out", "y"], ["--measures", "x", "--out", "y", "--trace", "c"]],
)
def test_called_wrongly(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Measures need a place for their picture, and go with nothing else."""
    assert main(argv) == 2
    assert "usage:" in capsys.readouterr().err


def test_no_such_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report that is not there is said in one line."""
    assert main(["--measures", str(tmp_path / "none"), "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.startswith("plots: cannot read the report or write the picture: ")
