"""The targets: what has to be reached, what was measured, and whether it is enough.

A target that is missed makes `make bench` fail. This file only compares; it measures nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .peers import BASELINE, OURS
from .results import Contest, Results, Shape

# By part, variant and cut: how many times the baseline's speed ours has to have. Where nothing is named
# the framer must not be slower than httpx-sse.
FRAMER_BOUNDS = {("content", "64 KiB"): 3.5, ("content", "one event"): 2.0}
READER_BOUNDS = {"content": 2.5, "obfuscation": 1.3, "logprobs": 1.3}

# Twice the size, twice the time; a tenth more is left to caches and clocks.
GROWTH_BOUND = 2.2
RUN_BOUND = 2.0


@dataclass(frozen=True, kw_only=True)
class Target:
    """One bound and what was measured."""

    name: str
    measured: float
    bound: float
    is_at_most: bool = False

    @property
    def is_reached(self) -> bool:
        """Whether the bound is kept; exactly the bound is enough."""
        return self.measured <= self.bound if self.is_at_most else self.measured >= self.bound

    def __str__(self) -> str:
        what = "at most" if self.is_at_most else "at least"
        word = "reached" if self.is_reached else "MISSED"
        return f"{word}: {self.name}: {self.measured:.2f}, {what} {self.bound:g}"


def targets(results: Results) -> list[Target]:
    """Give the targets of every part that was measured."""
    found = [target for contest in results.contests for target in _contest(contest)]
    found += [target for shape in results.shapes for target in _shape(shape)]
    if results.run:
        name = "time of a whole run of the frozen suite, in imports of aiohttp.web"
        found.append(Target(name=name, measured=results.run.median, bound=RUN_BOUND, is_at_most=True))
    return found


def bound(contest: Contest) -> float | None:
    """Say how many times the baseline's speed ours has to have on this input; None where nothing is asked."""
    if contest.part == "framers":
        return FRAMER_BOUNDS.get((contest.variant, contest.pieces), 1.0)
    return READER_BOUNDS.get(contest.variant)


def _contest(contest: Contest) -> Iterator[Target]:
    least = bound(contest)
    if least is not None:
        name = f"{contest.part[:-1]}, {contest.title}: speed, in {contest.baseline}"
        yield Target(name=name, measured=contest.entry(OURS).ratio.median, bound=least)


def _shape(shape: Shape) -> Iterator[Target]:
    name = f"{shape.title}: time for twice the size, in times"
    yield Target(name=name, measured=shape.growth.median, bound=GROWTH_BOUND, is_at_most=True)
    yield Target(name=f"{shape.title}: speed, in {BASELINE}", measured=shape.ratio.median, bound=1.0)
