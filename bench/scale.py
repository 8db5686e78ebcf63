"""How much is measured: the whole bench, or a smoke version that only shows that everything works."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes and counts of one run."""

    rounds: int
    streams: int  # in each round, of each variant
    short_streams: int  # repetitions of the stream of 250 bytes
    all_streams: int  # fed once
    shape_rounds: int
    megabytes: tuple[float, ...]  # sizes of a shape, each twice the one before
    peak_seconds: float  # wall time that one framer may take for one size of a shape
    is_counting: bool  # instructions too
    runs: int  # whole runs of the frozen suite


FULL = Scale(
    rounds=25,
    streams=9,
    short_streams=40,
    all_streams=1000,
    shape_rounds=5,
    megabytes=(1, 2, 4, 8),
    peak_seconds=3,
    is_counting=True,
    runs=9,
)
QUICK = Scale(
    rounds=2,
    streams=3,
    short_streams=6,
    all_streams=9,
    shape_rounds=1,
    megabytes=(0.0625, 0.125),
    peak_seconds=0.5,
    is_counting=False,
    runs=1,
)
