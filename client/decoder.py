"""Events in, signals out, for one stream: a dialect, and the stencils cut from what it has read.

The dialect alone says what an event means. A stencil repeats what it said of an event that differs in its
text, and in members that the dialect never looks at; with `STENCILS` at 0 every event is read by the dialect,
which gives the same signals.
"""

from .dialects import Dialect
from .outcomes import Fault
from .signals import Signal
from .stencil import Stencil

# How often a stream may have a stencil cut: one that never repeats itself is not worth more attempts.
STENCILS = 8


class Decoder:
    """Reads the events of one stream."""

    def __init__(self, dialect: Dialect, max_depth: int) -> None:
        self._dialect, self._max_depth = dialect, max_depth
        self._cuts_left = STENCILS
        # By the type of the event: the stencil, candidate and block of its text signal, and what it was cut from.
        self._known: dict[str, tuple[Stencil, int, int | None, bytes]] = {}

    def repeated(self, kind: str, data: bytes) -> tuple[str, int, int | None] | None:
        """Give the text of an event that is like one before, with its candidate and block; None for any other."""
        known = self._known.get(kind)
        if known is None:
            return None
        text = known[0].text(data)
        return (text, known[1], known[2]) if text else None

    def signals(self, kind: str, data: bytes) -> list[Signal] | Fault:
        """Read one event; a Fault for JSON that is none and for a shape that the protocol lacks."""
        found = self._dialect.signals(kind, data, self._max_depth)
        if self._cuts_left and not isinstance(found, Fault):
            self._cut(kind, data, found)
        return found

    def _cut(self, kind: str, data: bytes, signals: list[Signal]) -> None:
        """Cut a stencil that leaves a hole where this event differs from the one of the stencil before."""
        known = self._known.get(kind)
        stencil = self._dialect.stencil(data, signals, self._max_depth, known[3] if known else data)
        if stencil is not None:
            self._cuts_left -= 1
            self._known[kind] = stencil, signals[0].candidate, signals[0].block, data
