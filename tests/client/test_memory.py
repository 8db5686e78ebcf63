"""What a framer holds: however its input is cut and whatever it is full of, no more than its limits and 1 MB."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from client.contract import load
from client.events import Framer
from client.framer import SseFramer
from client.ndjson import NdjsonFramer
from client.outcomes import Fault
from client.units import Pieces

MEGABYTE = 2**20
STRICT = load("strict/1")
# Few events, since those that one piece ends are given at once and are the caller's.
TIGHT = replace(STRICT, limits=replace(STRICT.limits, line_utf16=MEGABYTE, event_utf16=MEGABYTE, events=8192))

# Each goes on until the framer refuses it or 4 MB were fed: what it is full of, and the size of a piece.
FLOODS = {
    "one line, byte by byte": (b"a", 1),
    "one line, in 16 bytes": (b"a", 16),
    "one line of three-byte characters, byte by byte": ("你".encode(), 1),
    "data lines of one event, line by line": (b"data:\n", 6),
    "data lines of one event, at once": (b"data:\n", 4 * MEGABYTE),
    "data lines of a character, in 64 KiB": ("data:你\n".encode(), 65536),
    "comments, at once": (b":\n", 4 * MEGABYTE),
    "CR, at once": (b"\r", 4 * MEGABYTE),
    "events without data, at once": (b"event: x\n\n", 4 * MEGABYTE),
    "events, in 64 KiB": (b"data: abcdefgh\n\n", 65536),
}


def pieces(unit: bytes, size: int) -> Iterator[bytes]:
    """Give 4 MB of a unit over and over, in pieces of a size."""
    whole = unit * (4 * MEGABYTE // len(unit))
    for start in range(0, len(whole), size):
        yield whole[start : start + size]


def peak_bytes(framer: Framer, flood: tuple[bytes, int]) -> int:
    """Give the most that was held beyond what stood before, pieces made and events given left out as they go."""
    fed = pieces(*flood)
    piece = next(fed)  # the flood itself is not the framer's
    tracemalloc.start()
    try:
        while piece:
            found = framer.feed(piece)
            if found and isinstance(found[-1], Fault):
                break
            del found
            piece = next(fed, b"")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("flood", FLOODS.values(), ids=list(FLOODS))
@pytest.mark.parametrize("make", [SseFramer, NdjsonFramer])
def test_limits_and_a_megabyte(make: type[SseFramer | NdjsonFramer], flood: tuple[bytes, int]) -> None:
    """A line and an event of at most 3 bytes a unit, and 1 MB more."""
    unit_bytes = 3 if not flood[0].isascii() else 1
    assert peak_bytes(make(TIGHT), flood) <= 2 * MEGABYTE * unit_bytes + MEGABYTE


def test_the_control_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that are never joined take a pointer each, and are caught."""
    monkeypatch.setattr("client.units._TOGETHER", 10**9)
    assert peak_bytes(SseFramer(TIGHT), FLOODS["data lines of one event, line by line"]) > 3 * MEGABYTE


@pytest.mark.parametrize("together", [1, 2, 3, 4096])
def test_joining_changes_nothing(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken, and what is within the limit, does not depend on how many pieces were joined."""
    monkeypatch.setattr("client.units._TOGETHER", together)
    held = Pieces(9, b"\n")
    added = [
        held.add(piece.encode(), extra_utf16=number > 0) for number, piece in enumerate(["a", "", "🌱", "你", "b"])
    ]
    assert added == [True, True, True, True, True]  # 1, 2, 5, 7, 9 units
    assert not held.add(b"", extra_utf16=1)
    assert held.take() == "a\n\n🌱\n你\nb\n".encode()
    assert held.add(b"abcdefghi")
