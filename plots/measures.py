"""Draws the measures of a record file: two waits side by side, how attempts ended, and what has to be zero.

Left, how long after the question the first text was seen, and how long until an answer was accepted: for each
wait the part of the tasks that it was over in. What lies between the two was seen and was no answer yet. Right,
every attempt by how it ended. This file reads the report of `measures --json`, and may not know how one is made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from .evidence import RefusalError, one_line
from .fonts import Fonts
from .sheet import AMBER, BLUE, FAINT, GREY, INK, RED, Picture, Sheet, plain_settings

SCHEMA = "endmark.measures/1"

WIDTH, HEIGHT, MARGIN = 1500, 640, 30  # pixels
LEFT, RIGHT, TOP, BOTTOM = 100, 900, 130, 500  # of the curves
NAMES, BARS, EDGE, ROW, BAR = 960, 1090, 1390, 40, 18  # of the ends
SIZE, SMALL = 15, 13
TOLD = 130  # what a percentile's words need beside its mark

LEAST_MS = 0.1  # the axis is logarithmic; what is quicker stands at its edge
PERCENTS = (0, 25, 50, 75, 95, 100)


@dataclass(frozen=True, kw_only=True)
class Wait:
    """One kind of wait: in how many tasks, and its percentiles 0 to 100 in milliseconds, none for no task."""

    name: str
    tasks: int
    quantiles_ms: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The report, as far as it is drawn."""

    file: str
    attempts: int
    tasks: int
    first_display: Wait
    accepted_completion: Wait
    ends: tuple[tuple[str, int], ...]
    retries: int
    stale_drops: int
    without_evidence: int
    findings: int


# ---------------------------------------------------------------------------------------------
# Reading the report


def read(text: str | bytes) -> Measures:
    """The report as plain, checked values; anything else is a refusal."""
    try:
        report = json.loads(text)
    except ValueError:
        raise RefusalError("the report of the measures is no JSON") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise RefusalError(f"the report of the measures is not {SCHEMA}")
    try:
        waits = report["waits"]
        return Measures(
            file=str(report["file"]),
            attempts=_whole(report["attempts"]),
            tasks=_whole(report["tasks"]),
            first_display=_wait("first display", waits["first_display"]),
            accepted_completion=_wait("accepted completion", waits["accepted_completion"]),
            ends=tuple((str(name), _whole(count)) for name, count in report["ends"].items()),
            retries=_whole(report["retries"]),
            stale_drops=_whole(report["stale_drops"]),
            without_evidence=_whole(report["accepted_without_evidence"]),
            findings=len(report["findings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        words = one_line(f"{type(error).__name__}: {error}")
        raise RefusalError(f"the report of the measures has another shape: {words}") from None


def _wait(name: str, wait: Any) -> Wait:
    """One kind of wait, with as many percentiles as there are or none."""
    quantiles_ms = tuple(float(ms) for ms in wait["quantiles_ms"])
    if len(quantiles_ms) not in (0, 101) or list(quantiles_ms) != sorted(quantiles_ms):
        raise ValueError(f"{name}: percentiles that are not 101 in ascending order")
    return Wait(name=name, tasks=_whole(wait["tasks"]), quantiles_ms=quantiles_ms)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value


# ---------------------------------------------------------------------------------------------
# Drawing


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The decades of milliseconds that the curves stand on."""

    low: int
    high: int

    def x(self, ms: float) -> float:
        """Where a wait stands, in pixels."""
        part = (math.log10(max(ms, LEAST_MS)) - self.low) / (self.high - self.low)
        return LEFT + min(max(part, 0.0), 1.0) * (RIGHT - LEFT)


def draw(measures: Measures, fonts: Fonts) -> Picture:
    """The picture of the measures."""
    with plain_settings():
        sheet = Sheet(WIDTH, HEIGHT, fonts)
        counts = f"{_count(measures.attempts, 'attempt')} of {_count(measures.tasks, 'task')}"
        title = f"{one_line(PurePath(measures.file).name)} · {counts}"
        sheet.text(MARGIN, 40, title, 23, room=WIDTH - 2 * MARGIN)
        words = "part of the tasks, by the time since the question; between the lines: seen, and no answer yet"
        sheet.text(LEFT, 82, words, SIZE, ink=GREY, room=NAMES - LEFT - 20)
        sheet.text(NAMES, 82, "how the attempts ended", SIZE, ink=GREY)
        waits = (measures.first_display, measures.accepted_completion)
        axis = axis_of([ms for wait in waits for ms in wait.quantiles_ms])
        _grid(sheet, axis)
        _curve(sheet, axis, measures.first_display, AMBER, dashed=True)
        _curve(sheet, axis, measures.accepted_completion, BLUE)
        _legend(sheet, waits)
        _ends(sheet, measures.ends)
        _foot(sheet, measures)
        return sheet.finish(title)


def axis_of(found_ms: Sequence[float]) -> Axis:
    """The decades that hold all waits; 1 ms to 1 s where there is none."""
    if not found_ms:
        return Axis(low=0, high=3)
    low = math.floor(math.log10(max(min(found_ms), LEAST_MS)))
    high = math.ceil(math.log10(max(*found_ms, LEAST_MS)))
    return Axis(low=low, high=max(high, low + 1))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _y(percent: float) -> float:
    return BOTTOM - percent * (BOTTOM - TOP) / 100


def _grid(sheet: Sheet, axis: Axis) -> None:
    """Lines at the percentiles and at the decades, with their names."""
    for percent in PERCENTS:
        sheet.line((LEFT, _y(percent)), (RIGHT, _y(percent)), INK if percent == 0 else FAINT, behind=True)
        sheet.text(LEFT - 12, _y(percent) + 5, f"{percent} %", SMALL, ink=GREY, side="right")
    for decade in range(axis.low, axis.high + 1):
        x = axis.x(10.0**decade)
        sheet.line((x, TOP), (x, BOTTOM + 6), FAINT, behind=True)
        sheet.text(x, BOTTOM + 24, duration(10.0**decade), SMALL, side="center")


def duration(ms: float) -> str:
    """A time in the unit that needs the fewest digits."""
    if ms >= 1000:
        return f"{ms / 1000:,.3g} s" if ms < 1_000_000 else f"{ms / 1000:,.0f} s"
    return f"{ms:.3g} ms"


def _curve(sheet: Sheet, axis: Axis, wait: Wait, ink: str, *, dashed: bool = False) -> None:
    """Steps through the percentiles, every other one where it is dashed, with the 50th and the 95th told."""
    points = [(axis.x(ms), _y(percent)) for percent, ms in enumerate(wait.quantiles_ms)]
    for (x0, y0), (x1, y1) in list(pairwise(points))[:: 2 if dashed else 1]:
        sheet.line((x0, y0), (x1, y0), ink, 3)
        sheet.line((x1, y0), (x1, y1), ink, 3)
    for percent in (50, 95) if points else ():
        x, y = points[percent]
        sheet.box(x - 5, y - 5, 10, 10, ink, edge="white")
        words = f"p{percent} {duration(wait.quantiles_ms[percent])}"
        is_left = x - LEFT > TOLD if dashed else RIGHT - x < TOLD
        base = y - 7 if dashed else y + 18
        sheet.text(x - 11 if is_left else x + 11, base, words, SMALL, bold=True, side="right" if is_left else "left")


def _legend(sheet: Sheet, waits: tuple[Wait, Wait]) -> None:
    """What the two lines are, and of how many tasks."""
    x = float(LEFT)
    for wait, ink, dashed in zip(waits, (AMBER, BLUE), (True, False), strict=True):
        sheet.line((x, 105), (x + 34, 105), ink, 3, dashed=dashed)
        words = f"{wait.name} ({_count(wait.tasks, 'task')})" if wait.tasks else f"{wait.name}: in no task"
        x += 42 + sheet.text(x + 42, 110, words, SIZE) + 30


def _ends(sheet: Sheet, ends: Sequence[tuple[str, int]]) -> None:
    """A bar for each way to end, the longest as long as there is room."""
    most = max((count for _, count in ends), default=0) or 1
    for row, (name, count) in enumerate(ends):
        y = TOP - 20 + ROW * row
        sheet.text(BARS - 12, y + 14, name, SIZE, side="right")
        sheet.box(BARS, y, count * (EDGE - BARS) / most, BAR, BLUE if name == "accepted" else AMBER)
        sheet.text(BARS + count * (EDGE - BARS) / most + 8, y + 14, f"{count:,}", SIZE)


def _foot(sheet: Sheet, measures: Measures) -> None:
    """The measure whose target is zero, in a box that says so without colour as well; beside it the others."""
    bad = measures.without_evidence
    words = f"accepted without evidence: {bad:,}" + (" — the target is 0" if bad else ", as it has to be")
    needs = sheet.measure(words, 17, bold=True) + 28
    sheet.box(MARGIN, HEIGHT - 80, needs, 40, "white" if bad else BLUE, edge=RED if bad else "none")
    sheet.text(MARGIN + 14, HEIGHT - 54, words, 17, ink=RED if bad else "white", bold=True)
    accepted = dict(measures.ends).get("accepted", 0)
    ratio = f"{measures.retries / accepted:.2f}" if accepted else "-"
    more = f"retries per accepted answer: {ratio} · stale drops: {measures.stale_drops:,}"
    if measures.findings:
        more += f" · findings: {measures.findings:,}"
    sheet.text(MARGIN + needs + 26, HEIGHT - 54, more, SIZE, room=WIDTH - 2 * MARGIN - needs - 26)
