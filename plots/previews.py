"""Draws the previews of all trials: how long each was, and whether it entered the history.

One row a trial, in two balanced columns: the case, a bar as long as the preview in Unicode code
points, what became of it in words and in colour, and the text itself beneath. It shows what the
subject claimed; a claim that the auditor did not agree with is hatched red and carries the verdict.
This file may not know where the rows come from or why a verdict is what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .evidence import Audit, RefusalError, Trial
from .fonts import Fonts
from .sheet import AMBER, BLUE, FAINT, GREY, INK, RED, Picture, Sheet, plain_settings

WIDTH, ROW, TOP, BOTTOM, MARGIN, GAP = 1500, 40, 100, 62, 30, 44  # pixels
BAR, MARK, SIZE, SMALL = 15, 11, 15, 13  # pixels
MOST_ROWS = 1600  # a column; Agg draws at most 65,535 pixels
ROOM_FOR_NAME = 230  # pixels, at most


@dataclass(frozen=True, kw_only=True)
class Column:
    """Where the parts of one column lie, in pixels, and how many code points its axis holds."""

    left: float
    bars: float
    words: float
    right: float
    scale: int
    room: float

    def x(self, code_points: int) -> float:
        """Where a bar of this length ends; the room for its number lies beyond the axis."""
        return self.bars + min(code_points, self.scale) * (self.words - self.bars - self.room) / self.scale


def draw(audit: Audit, fonts: Fonts) -> Picture:
    """The picture of an audit."""
    trials = sorted(audit.trials, key=_reading_order)
    columns = _halves(trials)
    if len(columns[0]) > MOST_ROWS:
        raise RefusalError(f"{len(trials)} trials are too many for one picture: at most {2 * MOST_ROWS}")
    with plain_settings():
        sheet = Sheet(WIDTH, TOP + ROW * len(columns[0]) + BOTTOM, fonts)
        title = _title(audit)
        _head(sheet, title, trials)
        names = _names(trials)
        for place, rows in enumerate(columns):
            column = _column(sheet, place, len(columns), trials, names)
            _axis(sheet, column, TOP + ROW * len(columns[0]) + 2, max(len(trial.preview) for trial in trials))
            for index, trial in enumerate(rows):
                _row(sheet, column, TOP + ROW * index, trial, names[trial.trial])
        return sheet.finish(title)


def _reading_order(trial: Trial) -> tuple[bool, str, str, str]:
    """Committed first, then like outcomes together."""
    return not trial.committed, trial.outcome, trial.case, trial.trial


def _halves(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Two balanced columns, the first one longer where the number is odd; one for a single trial."""
    middle = (len(trials) + 1) // 2
    return [list(half) for half in (trials[:middle], trials[middle:]) if half]


def _title(audit: Audit) -> str:
    """Suite, subject, how many were committed, and which archive it was."""
    suites = ", ".join(sorted({trial.suite for trial in audit.trials}))
    committed = sum(trial.committed and trial.claimed for trial in audit.trials)
    part = f" · PARTIAL {len(audit.trials)} of {audit.of}" if audit.partial else ""
    return (
        f"{suites} · {audit.subject} · {committed} committed of {len(audit.trials)}{part}"
        f" · stable root {audit.stable_root[:12]}"
    )


def _names(trials: Sequence[Trial]) -> dict[str, str]:
    """What each row is called: its case, or the whole trial id where the case alone is not enough."""
    count = Counter(trial.case for trial in trials)
    suites = {trial.suite for trial in trials}
    return {trial.trial: trial.case if count[trial.case] == 1 else _short(trial, len(suites) == 1) for trial in trials}


def _short(trial: Trial, is_one_suite: bool) -> str:
    """Name a trial by what tells it apart: the contract before the case, since long names are cut at their end."""
    contract = trial.trial.partition("@")[2]
    return f"{contract} {trial.case}" if is_one_suite else f"{contract} {trial.suite}/{trial.case}"


def _head(sheet: Sheet, title: str, trials: Sequence[Trial]) -> None:
    """The title, what the colours mean, and why the unit matters."""
    sheet.text(MARGIN, 40, title, 23, room=WIDTH - 2 * MARGIN)
    x = float(MARGIN)
    for fill, words in _legend(trials):
        sheet.box(x, 62, 22, 13, fill, edge="white", hatch="////" if fill == RED else "")
        x += 30 + sheet.text(x + 30, 74, words, SIZE) + 28
    sheet.text(WIDTH - MARGIN, 74, _unit_note(trials), SIZE, ink=GREY, side="right", room=WIDTH - MARGIN - x)


def _legend(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """The colours that occur, with their meaning."""
    meanings = [
        (BLUE, "committed: entered the history", any(t.agrees and t.committed for t in trials)),
        (AMBER, "refused: history unchanged", any(t.agrees and not t.committed for t in trials)),
        (RED, "the verdict is not AGREE", any(not t.agrees for t in trials)),
    ]
    return [(fill, words) for fill, words, there in meanings if there]


def _unit_note(trials: Sequence[Trial]) -> str:
    """An example from this very picture that code points and UTF-16 units differ."""
    for preview in (trial.preview for trial in trials):
        units = utf16_units(preview)
        if units != len(preview) and len(preview) <= 40:
            return f"{preview} is {len(preview)} code points, but {units} UTF-16 units"
    return "lengths in Unicode code points, not UTF-16 units"


def utf16_units(text: str) -> int:
    """The length of the text in UTF-16 code units."""
    return len(text) + sum(ord(character) > 0xFFFF for character in text)


def _column(sheet: Sheet, place: int, of: int, trials: Sequence[Trial], names: dict[str, str]) -> Column:
    """The parts of the column at this place, as wide as the longest name and the longest words need."""
    width = (WIDTH - 2 * MARGIN - GAP * (of - 1)) / of
    left = MARGIN + place * (width + GAP)
    longest = max(sheet.measure(name[:40], SIZE) for name in set(names.values()))
    words = max(sheet.measure(text, SIZE) for text in {_fate(trial)[:40] for trial in trials})
    return Column(
        left=left,
        bars=left + min(longest, ROOM_FOR_NAME) + 14,
        words=left + width - min(words, 300) - MARK - 8,
        right=left + width,
        scale=scale([len(trial.preview) for trial in trials]),
        room=max(sheet.measure(f"{len(trial.preview):,}", SIZE) for trial in trials) + 24,
    )


def _row(sheet: Sheet, column: Column, top: float, trial: Trial, name: str) -> None:
    """One trial: name, bar with its length, fate in words; the text and the verdict beneath."""
    base, beneath, length = top + 16, top + 34, len(trial.preview)
    fill, edge, hatch = _colours(trial)
    sheet.text(column.left, base, name, SIZE, room=column.bars - column.left - 10)
    if length:
        width = max(column.x(length) - column.bars, 2)
        sheet.box(column.bars, top + 3, width, BAR, fill, edge=edge, hatch=hatch)
    if length > column.scale:
        for x in (column.x(length) - 18, column.x(length) - 11):
            sheet.line((x - 4, top + 20), (x + 4, top + 1), "white", 3)
    sheet.text(max(column.x(length), column.bars + 2) + 7, base, f"{length:,}", SIZE)
    sheet.box(column.words, top + 5, MARK, MARK, fill, edge=edge, hatch=hatch)
    fate = column.words + MARK + 8
    sheet.text(fate, base, _fate(trial), SIZE, room=column.right - fate)
    if not trial.agrees:
        sheet.text(fate, beneath, f"▲ {trial.verdict}", SMALL, ink=RED, bold=True, room=column.right - fate)
    if trial.preview:
        end = column.right if trial.agrees else column.words - 10
        sheet.text(column.bars + 1, beneath, trial.preview, SMALL, ink=GREY, room=end - column.bars)


def _fate(trial: Trial) -> str:
    """What became of the preview, and the outcome; where nothing was claimed, what should have been."""
    if not trial.claimed:
        return f"no claim · {trial.outcome}"
    return f"{'committed' if trial.committed else 'refused'} · {trial.outcome}"


def _colours(trial: Trial) -> tuple[str, str, str]:
    """Fill, edge and hatch of a bar; light, middle and dark also without colour."""
    if not trial.agrees:
        return (RED, "white", "////") if trial.claimed else ("white", RED, "////")
    return (BLUE if trial.committed else AMBER), "none", ""


def _axis(sheet: Sheet, column: Column, bottom: float, longest: int) -> None:
    """The scale below a column and thin lines behind its bars."""
    for tick in ticks(column.scale):
        x = column.x(tick)
        sheet.line((x, TOP - 4), (x, bottom), INK if tick == 0 else FAINT, behind=True)
        sheet.text(x, bottom + 18, f"{tick:,}", SMALL, side="center")
    if longest > column.scale:
        sheet.text(column.right, bottom + 18, "a broken bar is longer than the axis", SMALL, ink=GREY, side="right")
    label = "preview length in Unicode code points (not UTF-16 units)"
    sheet.text(column.bars, bottom + 40, label, SIZE, ink=INK, room=column.right - column.bars)


def scale(lengths: Sequence[int]) -> int:
    """The code points that the axis holds: the longest, unless it is over twenty times the next one."""
    *rest, longest = sorted({0, *lengths})
    if rest and longest > 20 * rest[-1] > 0:
        return rest[-1] + rest[-1] // 4
    return max(1, longest)


def ticks(highest: int) -> list[int]:
    """Three to seven whole numbers from 0 in round steps, up to the highest itself if that can be."""
    steps = [f * 10**e for e in range(len(str(highest))) for f in (1, 2, 3, 5)]
    fair = [step for step in steps if 2 <= highest / step <= 6] or [1]
    step = next((step for step in fair if highest % step == 0), fair[0])
    return list(range(0, highest + 1, step))
