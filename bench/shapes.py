"""Inputs of one shape and any size: whether time grows as the input does, and for whom it does not.

A shape is a unit repeated, and an event at its end that everybody must still give. This file decides how
far each framer is driven; what that means is for the report.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .contests import WrongResultError
from .inputs import cut, stream
from .peers import BASELINE, FRAMERS, OURS, texts
from .results import Peak, Shape, Span
from .scale import Scale
from .timing import Work, bounded, rounds

MEGABYTE = 2**20
PIECES = {16: "16 B", 1024: "1 KiB", 65536: "64 KiB", 2**30: "one piece"}
FIRST_MEGABYTES = 1 / 16  # where a peer's climb begins
# A climb goes on to twice the size while the last size took at most this part of the time allowed.
CLIMBS_ON = 0.3


@dataclass(frozen=True, kw_only=True)
class Flood:
    """One shape: what stands before and after the repeated unit, and what data it dispatches."""

    name: str
    unit: bytes
    piece_bytes: int
    data: Callable[[int], list[str]]  # by the number of units
    before: bytes = b""
    after: bytes = b"data: end\n\n"

    @property
    def title(self) -> str:
        """Name the shape and its pieces in words."""
        return f"{self.name}, {PIECES[self.piece_bytes]}"

    def count(self, megabytes: float) -> int:
        """How many units make so many megabytes (of 2**20 bytes)."""
        return int(megabytes * MEGABYTE) // len(self.unit)

    def pieces(self, megabytes: float) -> list[bytes]:
        """The body of this size, cut."""
        return cut(self.before + self.unit * self.count(megabytes) + self.after, self.piece_bytes)


def _only_the_end(_: int) -> list[str]:
    return ["end"]


CHAT = stream(0).events[1].decode()

FLOODS = (
    Flood(name="one line", unit=b"a", piece_bytes=16, data=lambda n: ["a" * n], before=b"data: ", after=b"\n\n"),
    Flood(name="one line", unit=b"a", piece_bytes=1024, data=lambda n: ["a" * n], before=b"data: ", after=b"\n\n"),
    Flood(name="CR", unit=b"\r", piece_bytes=65536, data=_only_the_end),
    Flood(name="comments (`:`)", unit=b":\n", piece_bytes=65536, data=_only_the_end),
    Flood(name="empty events (`data:`)", unit=b"data:\n\n", piece_bytes=65536, data=lambda n: [""] * n + ["end"]),
    Flood(name="events without data (`event: x`)", unit=b"event: x\n\n", piece_bytes=65536, data=_only_the_end),
    Flood(name="data lines of one event", unit=b"data:\n", piece_bytes=65536, data=lambda n: ["\n" * n + "end"]),
    Flood(name="chat events", unit=CHAT.encode(), piece_bytes=65536, data=lambda n: [CHAT[6:-2]] * n + ["end"]),
    Flood(name="chat events", unit=CHAT.encode(), piece_bytes=2**30, data=lambda n: [CHAT[6:-2]] * n + ["end"]),
)


def shape(flood: Flood, scale: Scale) -> Shape:
    """Time our framer at every size and httpx-sse at the largest in the same rounds, then drive all the others.

    Raises WrongResultError where our framer gives anything but what the shape holds.
    """
    largest = scale.megabytes[-1]
    _, wrong = _once(OURS, flood, largest)
    if wrong:
        raise WrongResultError(f"{flood.title}: {OURS} {wrong}")
    sizes = {f"{OURS} {size}": size for size in scale.megabytes}
    works = {name: _framing(OURS, flood, size) for name, size in sizes.items()}
    times = rounds({**works, BASELINE: _framing(BASELINE, flood, largest)}, scale.shape_rounds)
    first, last = times[f"{OURS} {scale.megabytes[0]}"], times[f"{OURS} {largest}"]
    doublings = len(scale.megabytes) - 1
    return Shape(
        title=flood.title,
        seconds={size: Span.of(times[name]).median for name, size in sizes.items()},
        growth=Span.of([(b / a) ** (1 / doublings) for a, b in zip(first, last, strict=True)]),
        ratio=Span.of([theirs / own for theirs, own in zip(times[BASELINE], last, strict=True)]),
        peaks=tuple(climb(name, flood, scale) for name in FRAMERS if name != OURS),
    )


def climb(framer: str, flood: Flood, scale: Scale) -> Peak:
    """Drive a framer up to the largest size, as far as the time allowed for each size lets it come."""
    size, found, note = FIRST_MEGABYTES, dict[float, float](), ""
    while size <= scale.megabytes[-1]:
        answer = bounded(partial(_once, framer, flood, size), scale.peak_seconds)
        if answer is None:
            note = note or f"more than {scale.peak_seconds:g} s at {size:g} MB"
            break
        seconds, note = answer
        if seconds is None:
            break
        found[size] = seconds
        if seconds > CLIMBS_ON * scale.peak_seconds:
            break
        size *= 2
    top = max(found, default=None)
    quarter = None if top is None else found.get(top / 4)
    return Peak(
        framer=framer,
        megabytes=top,
        seconds=None if top is None else found[top],
        growth=(found[top] / quarter) ** 0.5 if top and quarter else None,
        note=note,
    )


def _framing(framer: str, flood: Flood, megabytes: float) -> Work:
    frame, pieces = FRAMERS[framer](), flood.pieces(megabytes)
    return lambda: frame(pieces)


def _once(framer: str, flood: Flood, megabytes: float) -> tuple[float | None, str]:
    """Frame one size once: CPU seconds, None where it refused, and what was wrong, if anything."""
    frame, pieces = FRAMERS[framer](), flood.pieces(megabytes)
    start = time.process_time()
    try:
        data = frame(pieces)
    except Exception as error:  # a peer may refuse with anything
        return None, f"{type(error).__name__} at {megabytes:g} MB"
    seconds = time.process_time() - start
    right, got = flood.data(flood.count(megabytes)), texts(data)
    return seconds, "" if got == right else _difference(got, right)


def _difference(data: list[str], right: list[str]) -> str:
    if len(data) != len(right):
        return f"gives {_events(len(data))} where there {'is' if len(right) == 1 else 'are'} {len(right):,}"
    return "gives other data than was sent"


def _events(count: int) -> str:
    return f"{count:,} event" + "s" * (count != 1)
