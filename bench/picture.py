"""Draws the ratios as three panels of bars; the same results give the same bytes."""

import io
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import readers
from .checks import bound
from .peers import BASELINE, OURS
from .results import Contest, Results

BLUE, LIGHT, INK, RED = "#1f5fa8", "#c9cdd3", "#222222", "#b3261e"
WIDTH, ROW, HEAD = 14, 0.2, 1.3  # inches


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One row of a panel; without a ratio it heads the rows below it."""

    label: str
    ratio: float | None = None
    bound: float | None = None
    is_ours: bool = False


def draw(results: Results) -> bytes:
    """Give the SVG; a part that was not measured leaves its panel empty."""
    panels = (
        (f"Bytes to events,\nin the speed of {BASELINE}", _contests(results, "framers")),
        (f"Bytes to an answer, in the speed of\n{readers.BASELINE}", _contests(results, "readers")),
        (f"Bytes to events, {_largest(results):g} MB of one shape,\nin the speed of {BASELINE}", _shapes(results)),
    )
    rows = max(len(bars) for _, bars in panels)
    title = "Speed of the reading core"
    with matplotlib.rc_context():
        matplotlib.rcParams.update(
            {"svg.fonttype": "none", "svg.hashsalt": "endmark", "font.family": "DejaVu Sans", "font.size": 8}
        )
        figure = Figure(figsize=(WIDTH, HEAD + ROW * rows), layout="constrained")
        for axes, (heading, bars) in zip(figure.subplots(1, len(panels)), panels, strict=True):
            _panel(axes, heading, bars, rows)
        figure.suptitle(f"{title} · {results.machine.processor} · {results.machine.date}", fontsize=11)
        figure.supxlabel(
            "blue: endmark · red: the least it has to reach · above 1 is faster than the baseline", fontsize=8
        )
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
        return out.getvalue()


def _panel(axes: Axes, heading: str, bars: list[Bar], rows: int) -> None:
    axes.set_title(heading, fontsize=9.5, color=INK)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=0)
    for place, bar in enumerate(bars):
        if bar.ratio is None:
            continue
        axes.barh(place, bar.ratio, height=0.75, color=BLUE if bar.is_ours else LIGHT)
        if bar.bound:
            axes.plot([bar.bound, bar.bound], [place - 0.45, place + 0.45], color=RED, linewidth=2, zorder=4)
        _note(axes, bar.ratio, place, f"{bar.ratio:.2f}", BLUE if bar.is_ours else INK)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
    for tick, bar in zip(axes.get_yticklabels(), bars, strict=True):
        tick.set_fontweight("bold" if bar.ratio is None else "normal")
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_xlim(0, max([1.0, *[max(bar.ratio or 0, bar.bound or 0) for bar in bars]]) * 1.18)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _note(axes: Axes, x: float, y: int, text: str, color: str) -> None:
    """Write beside a bar, on white, so that no line runs through a figure."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    axes.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", va="center", color=color, bbox=box)


def _contests(results: Results, part: str) -> list[Bar]:
    """Draw what there is a target for beyond not being slower, and the stream of 250 bytes."""
    chosen = [contest for contest in results.contests if contest.part == part and contest.pieces != "1 KiB"]
    return [bar for contest in chosen if bound(contest) for bar in _group(contest)]


def _group(contest: Contest) -> list[Bar]:
    return [
        Bar(label=contest.title.replace("`", "")),
        *[
            Bar(
                label=entry.name,
                ratio=entry.ratio.median,
                bound=bound(contest) if entry.name == OURS else None,
                is_ours=entry.name == OURS,
            )
            for entry in contest.entries
            if not entry.is_floor
        ],
    ]


def _shapes(results: Results) -> list[Bar]:
    return [
        Bar(label=shape.title.replace("`", ""), ratio=shape.ratio.median, bound=1.0, is_ours=True)
        for shape in results.shapes
    ]


def _largest(results: Results) -> float:
    return max((size for shape in results.shapes for size in shape.seconds), default=0)
