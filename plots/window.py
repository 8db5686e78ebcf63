"""The window through which a body is seen: which bytes are drawn, and where on the sheet each lies.

This file may not know what is drawn at an offset.
"""

from __future__ import annotations

from dataclasses import dataclass

from .evidence import RefusalError, Trace

WIDTH, LEFT, RIGHT, TAIL = 1500, 176, 1476, 236  # pixels; TAIL is kept free for the outcome
WHOLE = 320  # bytes: up to here the default window is the whole body
WINDOW, AFTER = 112, 20  # bytes of the default window of longer bodies, and how many lie beyond the end


@dataclass(frozen=True, kw_only=True)
class Window:
    """The part of the body that is drawn and where the exchange ended, in bytes; `right` in pixels."""

    first: int
    last: int
    end: int
    right: float

    @property
    def byte(self) -> float:
        """The width of one byte, in pixels."""
        return (self.right - LEFT) / max(1, self.last - self.first)

    def x(self, offset: int) -> float:
        """Where an offset lies, in pixels; what is outside lies on the edge."""
        return LEFT + (min(max(offset, self.first), self.last) - self.first) * self.byte

    def shows(self, start: int, end: int) -> bool:
        """Whether any byte of the span is inside."""
        return start < self.last and end > self.first

    def holds(self, offset: int) -> bool:
        """Whether the boundary is inside or on the edge."""
        return self.first <= offset <= self.last


def choose_window(trace: Trace, first: int | None, last: int | None) -> Window:
    """The window asked for; or else the whole of a short body, and of a long one what is around the end."""
    size = len(trace.body)
    if first is None and last is None and size > WHOLE:
        last = min(size, max(WINDOW, trace.end_byte + AFTER))
    if last is None:
        last = size if first is None else min(size, first + WINDOW)
    last = min(last, size)
    if first is None:
        first = 0 if last <= WHOLE else last - WINDOW
    if not 0 <= first < last and size:
        raise RefusalError(f"--from {first} --to {last} is no window into a body of {size} bytes")
    wide = Window(first=first, last=last, end=trace.end_byte, right=RIGHT)
    if wide.holds(wide.end) and wide.x(wide.end) + TAIL > WIDTH:
        return Window(first=first, last=last, end=trace.end_byte, right=WIDTH - TAIL)
    return wide
