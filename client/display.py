"""What a screen may show of an answer that is still coming, and what it says that this is worth.

    display = Display()
    attempt = coordinator.begin("task-1", "What is new?", on_preview=display.show)
    ...  # while the attempt is read, as often as is liked: draw(display.screen)
    display.settle(attempt.commit())

The display policy is written apart from acceptance: it says when text may be seen, never whether it counts;
that is the coordinator's, and only its `Committed` makes a screen `accepted`. A display is one attempt's. A
further attempt has a display of its own, so that no screen ever joins the texts of two.

No side effect can hang on a text update: nothing is called when text comes. The caller reads `screen`, a value,
and what it holds is `Shown` and no `str`, so that whatever asks for an answer does not take it. This file knows
no terminal, no clock and no stream.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from .attempts.records import Committed, Refused, Result


class DisplayPolicy(StrEnum):
    """When text may be seen. What was seen cannot be made unseen: choose by the harm of that."""

    IMMEDIATE = "immediate"  # as it comes, provisional
    SEGMENTS = "segments"  # segment by segment, each approved by the caller
    FULL = "full"  # nothing before the answer is accepted


class ScreenState(StrEnum):
    """What the text on a screen is worth."""

    GENERATING = "generating"
    INTERRUPTED = "interrupted"  # it came to nothing; the text is a part, to be read as one
    WITHDRAWN = "withdrawn"  # taken off the screen for good
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """Text for eyes. It is no `str`, and prints as what it is and not as what it says."""

    characters: str

    def __repr__(self) -> str:
        return f"<shown: {len(self.characters)} code points>"


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What a display shows, and what that is worth.

    `held_code_points` counts what came and is not shown: not yet, or not at all.
    """

    text: Shown
    state: ScreenState
    held_code_points: int

    @property
    def clipboard(self) -> str:
        """What copying gives: the text, under a line that says what it is unless it is an accepted answer."""
        if self.state is ScreenState.ACCEPTED:
            return self.text.characters
        return f"[{self.state}: not an answer]\n{self.text.characters}"


# Says whether a segment may be seen. It has to be pure: it is asked again for an answer that is accepted.
Approve = Callable[[str], bool]

# Where a segment ends: behind a line end, a full stop that white space follows, a full stop that needs none.
_SEGMENT_END = re.compile(r"\n|[.!?]\s|[。！？]")


class Display:
    """One attempt's screen: read `screen` and draw it. Text that comes late changes nothing."""

    def __init__(self, policy: DisplayPolicy = DisplayPolicy.IMMEDIATE, approve: Approve | None = None) -> None:
        """Raise ValueError where `approve` is missing for `segments`, or given for another policy."""
        if (policy is DisplayPolicy.SEGMENTS) != (approve is not None):
            raise ValueError(f"display policy {policy}: `approve` belongs to {DisplayPolicy.SEGMENTS} and to no other")
        self._policy, self._approve = policy, approve
        self._gate = self._new_gate()
        self._pieces: list[str] = []
        self._came = 0
        self._state = ScreenState.GENERATING

    @property
    def screen(self) -> Screen:
        """What is to be drawn now."""
        self._pieces = ["".join(self._pieces)]
        text = Shown(self._pieces[0])
        return Screen(text=text, state=self._state, held_code_points=self._came - len(text.characters))

    def show(self, piece: str) -> None:
        """Take a piece of text as it comes; it fits where a reader asks for `on_preview`."""
        if self._state is ScreenState.GENERATING:
            self._came += len(piece)
            self._pieces.append(self._gate.take(piece))

    def settle(self, result: Result) -> None:
        """Say how the attempt was decided. The answer that was committed is shown, whatever came before it."""
        if isinstance(result, Committed):
            self._accept(result.message["content"])
        elif isinstance(result, Refused):
            self.interrupt()
        elif self._state is ScreenState.GENERATING:
            self.withdraw()

    def interrupt(self) -> None:
        """Say that it ended without an answer, for instance because it was cancelled; what was seen stays."""
        if self._state is ScreenState.GENERATING:
            self._state = ScreenState.INTERRUPTED

    def withdraw(self) -> None:
        """Take the text off the screen for good, since another attempt or another conversation has its place."""
        self._state, self._pieces = ScreenState.WITHDRAWN, []

    def _accept(self, answer: str) -> None:
        if self._state is ScreenState.WITHDRAWN:
            return
        gate = self._new_gate()
        self._pieces, self._came = [gate.take(answer), gate.rest()], len(answer)
        self._state = ScreenState.ACCEPTED

    def _new_gate(self) -> "_Gate":
        if self._approve is not None:
            return _Segments(self._approve)
        return _Immediate() if self._policy is DisplayPolicy.IMMEDIATE else _Full()


class _Gate(Protocol):
    """What stands between the text that comes and the screen."""

    def take(self, piece: str) -> str:
        """Take the next piece; give what may be seen now that was not before."""

    def rest(self) -> str:
        """Give what may be seen once all of it is accepted."""


class _Immediate:
    def take(self, piece: str) -> str:
        return piece

    def rest(self) -> str:
        return ""


class _Full:
    def __init__(self) -> None:
        self._held: list[str] = []

    def take(self, piece: str) -> str:
        self._held.append(piece)
        return ""

    def rest(self) -> str:
        return "".join(self._held)


class _Segments:
    """Lets whole segments through while each is approved. They do not depend on how the text was cut into pieces."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve
        self._open: list[str] = []  # the pieces of a segment that has not ended
        self._refused = False

    def take(self, piece: str) -> str:
        before = self._open[-1][-1] if self._open else ""  # a segment's end may be cut behind its full stop
        text, start = before + piece, len(before)
        seen = []
        for end in (found.end() for found in _SEGMENT_END.finditer(text)):
            seen.append(self._ask(text[start:end]))
            start = end
        if text[start:]:
            self._open.append(text[start:])
        return "".join(seen)

    def rest(self) -> str:
        return self._ask("")

    def _ask(self, end: str) -> str:
        """Ask for the segment that ends so; a refused one holds back itself and all after it."""
        segment = "".join([*self._open, end])
        self._open = []
        self._refused = self._refused or not (segment == "" or self._approve(segment))
        return "" if self._refused else segment
