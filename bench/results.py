"""What the bench found, as values: what report, picture and checks read. This file measures nothing."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .scale import Scale

# What differs from event to event, in words; "short" is a stream of its own.
VARIANT_WORDS = {
    "content": "content alone differs",
    "obfuscation": "`obfuscation` too",
    "logprobs": "`logprobs` too",
    "top_logprobs": "two `top_logprobs` too",
    "short": "250 bytes",
}


@dataclass(frozen=True, kw_only=True)
class Span:
    """A median with the smallest and the largest of its rounds."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Span":
        """Make the span of the rounds' values; raise statistics.StatisticsError where there is none."""
        return Span(median=statistics.median(values), low=min(values), high=max(values))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One contestant on one input.

    `ratio` is the baseline's CPU time over its own, within a round: above 1 it is faster than the
    baseline. A unit is an event, or a whole stream where it is short; uncounted instructions are None.
    """

    name: str
    ns: float  # CPU nanoseconds for one unit, median of the rounds
    mb_per_s: float
    ratio: Span
    instructions: float | None  # for one unit
    is_floor: bool = False


@dataclass(frozen=True, kw_only=True)
class Contest:
    """All contestants on one input, cut in one way."""

    part: str  # framers, readers
    variant: str  # a key of VARIANT_WORDS
    pieces: str  # how it is cut, in words
    baseline: str
    entries: tuple[Entry, ...]

    @property
    def title(self) -> str:
        """Name the input in words."""
        if (self.part, self.variant) == ("framers", "content"):
            return f"chat, {self.pieces}"
        return f"{VARIANT_WORDS[self.variant]}, {self.pieces}"

    def entry(self, name: str) -> Entry:
        """Give the contestant of this name; raise StopIteration if there is none."""
        return next(entry for entry in self.entries if entry.name == name)


@dataclass(frozen=True, kw_only=True)
class Peak:
    """How far one framer came with one shape: the largest size within the time allowed."""

    framer: str
    megabytes: float | None  # None where not even the smallest size came through
    seconds: float | None
    growth: float | None  # for twice the size, the mean over the last two doublings
    note: str = ""  # what was wrong with what came out, or how it refused


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One shape of input: how our time grows with its size, and how it compares."""

    title: str  # the shape and its pieces
    seconds: dict[float, float]  # by megabytes, median CPU time of our framer
    growth: Span  # for twice the size, the mean over all doublings: 2 is linear, 4 quadratic
    ratio: Span  # httpx-sse's time over ours at the largest size
    peaks: tuple[Peak, ...]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One fact of framing, and what each framer did: "" where it is right, else what came instead."""

    name: str
    answers: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Whole:
    """The framer over every stream once."""

    streams: int
    events: int
    megabytes: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and when it was measured."""

    date: str
    processor: str
    cores: int
    system: str
    python: str
    versions: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything that one run measured; a part that did not run is None or empty."""

    machine: Machine
    scale: Scale
    counted: str = ""  # with what instructions were counted, or why they were not
    contests: tuple[Contest, ...] = ()
    whole: Whole | None = None
    shapes: tuple[Shape, ...] = ()
    facts: tuple[Fact, ...] = ()
    run: Span | None = None  # wall time of a whole run over that of importing the server's library
