"""A sheet of paper measured in pixels: boxes, lines and text that knows how wide it is.

The pictures are laid out by hand, so that nothing overlaps and nothing is cut off: x runs to the
right and y downwards from the top left corner, in pixels of the PNG (the SVG has the same shape).
The same sheet gives the same bytes: no date, no random ids, no settings of the user. This file may
not know what is drawn.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from .fonts import BASE, MONO, Fonts

DPI = 150
INK, GREY, FAINT = "#1a1a1a", "#4a4a4a", "#d9d9d9"
BLUE, AMBER, RED = "#0b5c9e", "#f2b33d", "#b3123a"

_MORE_THAN_FITS = 1000  # characters that no sheet has room for on one line

Side = Literal["left", "center", "right"]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished picture in both forms."""

    png: bytes
    svg: bytes


@contextmanager
def plain_settings() -> Iterator[None]:
    """Matplotlib's own defaults, whatever the user's file says; SVG text stays text; no talk of fonts."""
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "endmark"})
        matplotlib.rcParams.update({"font.sans-serif": [BASE], "font.monospace": [MONO]})
        matplotlib.rcParams["hatch.linewidth"] = 0.8
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


class Sheet:
    """One picture in the making; use it within `plain_settings`."""

    def __init__(self, width: int, height: int, fonts: Fonts) -> None:
        self.width, self.height, self._fonts = width, height, fonts
        self._figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
        canvas = FigureCanvasAgg(self._figure)
        self._renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
        self._axes = self._figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self._axes.set_xlim(0, width)
        self._axes.set_ylim(height, 0)
        self._axes.set_axis_off()

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        edge: str = "none",
        hatch: str = "",
    ) -> None:
        """A filled rectangle from its top left corner; a hatch is drawn in the edge's colour."""
        patch = Rectangle((x, y), width, height, facecolor=fill, edgecolor=edge, linewidth=0.5)
        if hatch:
            patch.set_hatch(hatch)
        self._axes.add_patch(patch)

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        ink: str,
        width: float = 1,
        *,
        dashed: bool = False,
        behind: bool = False,
    ) -> None:
        """A straight line, its width in pixels; `behind` the boxes or before them."""
        (x0, y0), (x1, y1) = start, end
        line = Line2D([x0, x1], [y0, y1], color=ink, linewidth=width * 72 / DPI, solid_capstyle="butt")
        if dashed:
            line.set_linestyle((0, (3, 2)))
        line.set_zorder(0 if behind else 2)
        self._axes.add_line(line)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        *,
        ink: str = INK,
        side: Side = "left",
        bold: bool = False,
        mono: bool = False,
        upright: bool = False,
        room: float | None = None,
    ) -> float:
        """Words on the baseline `y`, cut with an ellipsis to `room`; gives their width, all in pixels."""
        text = Text(
            x,
            y,
            parse_math=False,
            fontsize=size * 72 / DPI,
            color=ink,
            horizontalalignment=side,
            verticalalignment="center" if upright else "baseline",
            rotation=90 if upright else 0,
            fontweight="bold" if bold else "normal",
        )
        text.set_figure(self._figure)
        base = MONO if mono else BASE
        if room is not None and len(words) > _MORE_THAN_FITS:
            words = words[:_MORE_THAN_FITS]
        width = self._fill(text, words, base)
        if room is not None and width > room:
            width = self._shorten(text, words, base, room)
        self._axes.add_artist(text)
        return width

    def measure(self, words: str, size: float, *, bold: bool = False, mono: bool = False) -> float:
        """How wide the words would be, in pixels."""
        text = Text(0, 0, parse_math=False, fontsize=size * 72 / DPI, fontweight="bold" if bold else "normal")
        text.set_figure(self._figure)
        return self._fill(text, words, MONO if mono else BASE)

    def finish(self, title: str) -> Picture:
        """The picture as bytes, titled, without a date."""
        return Picture(
            png=self._save("png", {"Software": None, "Title": title}),
            svg=self._save("svg", {"Date": None, "Creator": None, "Title": title}),
        )

    def _save(self, form: str, metadata: dict[str, str | None]) -> bytes:
        """The figure in one form."""
        out = io.BytesIO()
        self._figure.savefig(out, format=form, dpi=DPI, metadata=metadata)
        return out.getvalue()

    def _fill(self, text: Text, words: str, base: str) -> float:
        """Puts the words into the text with the fonts they need; gives the width in pixels."""
        spelt, families = self._fonts.spell(words, base)
        text.set_text(spelt)
        text.set_fontfamily([*families, "monospace" if base == MONO else "sans-serif"])
        return float(text.get_window_extent(self._renderer).width) if spelt else 0.0

    def _shorten(self, text: Text, words: str, base: str, room: float) -> float:
        """Fills in the longest beginning of the words that fits with an ellipsis, found by halving."""
        fits, too_long = 0, len(words)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if self._fill(text, words[:middle].rstrip() + "…", base) <= room:
                fits = middle
            else:
                too_long = middle
        return self._fill(text, words[:fits].rstrip() + "…", base)
