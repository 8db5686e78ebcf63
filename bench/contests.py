"""The inputs of the chat kind, who meets on each, and the check that everybody did the work.

A plan is one input cut in one way. Its contestants are prepared the same way for clocks and for counting
instructions, and nothing is prepared whose result is not the right one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from . import readers
from .inputs import SCRIPTS, VARIANTS, Stream, short_stream, streams
from .peers import BASELINE, FRAMERS, OURS, Data, Frame, texts
from .readers import FRAMER_FLOORS, READER_FLOORS, READERS, Floor
from .results import Contest, Entry, Span, Whole
from .scale import Scale
from .timing import Work, cpu_seconds, rounds

CUTS: dict[str, int | None] = {"one event": None, "1 KiB": 1024, "64 KiB": 65536}
SHORT = "short"
SHORT_CUTS: dict[str, int | None] = {"1 byte": 1, "7 bytes": 7}


class WrongResultError(Exception):
    """A contestant gave another result than the input holds, so its time would say nothing."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One input cut in one way."""

    part: str
    variant: str
    cut: str
    piece_bytes: int | None

    @property
    def key(self) -> str:
        """A name of its own among all plans."""
        return f"{self.part}/{self.variant}/{self.cut}"

    @property
    def baseline(self) -> str:
        """Whom everybody's time is divided by."""
        return BASELINE if self.part == "framers" else readers.BASELINE

    @property
    def floors(self) -> dict[str, Floor]:
        """What is timed beside the contestants, on the largest pieces alone."""
        if self.cut != "64 KiB":
            return {}
        return FRAMER_FLOORS if self.part == "framers" else READER_FLOORS

    @property
    def names(self) -> list[str]:
        """All contestants, without the floors."""
        return list(FRAMERS if self.part == "framers" else READERS)

    @property
    def counted_names(self) -> list[str]:
        """Whose instructions are counted; counting takes long, so readers in 1 KiB pieces are left out."""
        is_left_out = self.part == "readers" and self.cut == "1 KiB"
        return [] if is_left_out else [*self.names, *self.floors]

    def timed(self, scale: Scale) -> list[Stream]:
        """The streams of one round."""
        if self.variant == SHORT:
            return [short_stream()] * scale.short_streams
        return list(streams(scale.streams, self.variant))

    def counted(self) -> list[Stream]:
        """What callgrind is given: one stream of each script, of 100 events; it is slow."""
        return [short_stream()] if self.variant == SHORT else list(streams(len(SCRIPTS), self.variant, 100))

    def units(self, bodies: list[Stream]) -> int:
        """How many units figures are given for: events, or streams where they are short."""
        return len(bodies) if self.variant == SHORT else sum(len(body.events) for body in bodies)

    def work(self, name: str, bodies: list[Stream]) -> Work:
        """Prepare one contestant or floor; raise WrongResultError where it does not do the work."""
        cases = [body.pieces(self.piece_bytes) for body in bodies]
        if name in self.floors:
            return _all([self.floors[name](body, pieces) for body, pieces in zip(bodies, cases, strict=True)])
        run = self._contestant(name)
        for number, (body, pieces) in enumerate(zip(bodies, cases, strict=True)):
            got = run(pieces)
            if (texts(got) if isinstance(got, list) else got) != (body.data if self.part == "framers" else body.answer):
                raise WrongResultError(f"{self.key}: {name} gives something else than stream {number} holds")

        def work() -> None:
            for pieces in cases:
                run(pieces)

        return work

    def _contestant(self, name: str) -> Callable[[list[bytes]], object]:
        return FRAMERS[name]() if self.part == "framers" else READERS[name]()


def _extend(data: list[Data], frame: Frame, pieces: list[bytes]) -> None:
    data.append(frame(pieces))


def _all(works: list[Work]) -> Work:
    def work() -> None:
        for each in works:
            each()

    return work


def plans(part: str) -> Iterator[Plan]:
    """Give every plan of a part: framers or readers."""
    for variant in ["content"] if part == "framers" else list(VARIANTS):
        for cut, piece_bytes in CUTS.items():
            yield Plan(part=part, variant=variant, cut=cut, piece_bytes=piece_bytes)
    if part == "framers":
        for cut, piece_bytes in SHORT_CUTS.items():
            yield Plan(part=part, variant=SHORT, cut=cut, piece_bytes=piece_bytes)


def contest(plan: Plan, scale: Scale, instructions: dict[tuple[str, str], float]) -> Contest:
    """Time everybody on one plan; the counted instructions come by plan and name."""
    bodies = plan.timed(scale)
    works = {name: plan.work(name, bodies) for name in [*plan.names, *plan.floors]}
    times = rounds(works, scale.rounds)
    units = plan.units(bodies)
    size = sum(len(body.body) for body in bodies)
    base = times[plan.baseline]

    def entry(name: str) -> Entry:
        typical = Span.of(times[name]).median
        return Entry(
            name=name,
            ns=typical / units * 1e9,
            mb_per_s=size / typical / 1e6,
            ratio=Span.of([theirs / own for theirs, own in zip(base, times[name], strict=True)]),
            instructions=instructions.get((plan.key, name)),
            is_floor=name in plan.floors,
        )

    return Contest(
        part=plan.part,
        variant=plan.variant,
        pieces=plan.cut,
        baseline=plan.baseline,
        entries=tuple(entry(name) for name in works),
    )


def whole(scale: Scale) -> Whole:
    """Frame every stream once in 64 KiB pieces; raise WrongResultError if one event is not the right one."""
    frame, seconds, size, events = FRAMERS[OURS](), 0.0, 0, 0
    for number, body in enumerate(streams(scale.all_streams)):
        pieces, given = body.pieces(CUTS["64 KiB"]), list[Data]()
        seconds += cpu_seconds(partial(_extend, given, frame, pieces))
        data = texts(given[0])
        if data != body.data:
            raise WrongResultError(f"stream {number} of all: an event is not the one that was sent")
        size, events = size + len(body.body), events + len(data)
    return Whole(streams=scale.all_streams, events=events, megabytes=size / 1e6, seconds=seconds)
