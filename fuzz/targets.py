"""The targets by name: what says how an input deviates, and the inputs to begin with."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from . import archives, framings, json_texts, seeds, turns


class Target(NamedTuple):
    """One thing that is fuzzed."""

    deviation: Callable[[bytes], str | None]  # None where all is well; an exception is a find as well
    seeds: Callable[[], Iterable[bytes]]


TARGETS: dict[str, Target] = {
    **{
        name: Target(partial(framings.deviation, name), partial(seeds.of_framing, name))
        for name in ("sse", "ndjson", "eventstream")
    },
    "json": Target(json_texts.deviation, seeds.of_json),
    "turn": Target(turns.deviation, seeds.of_turn),
    "archive": Target(archives.deviation, seeds.of_archive),
}


def inputs(target: str) -> list[bytes]:
    """Give what a target begins with: its seeds, and what was found of it before."""
    return [*TARGETS[target].seeds(), *seeds.found_before(target)]
