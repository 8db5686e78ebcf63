"""Decodes each read by itself, so every character that a read cuts becomes U+FFFD.

All else about it is fairly careful: it asks for status 200, a natural finish reason and the end.
"""

import io
from collections.abc import Iterator

from ..loop import Turn, serve

NATURAL_ENDS = {"stop", "end_turn", "STOP", "COMPLETE", "response.completed"}


def answer(turn: Turn) -> bool:
    """Keep what was shown if the stream was finished; the damage is in what was shown."""
    turn.read(turn.unpacked(_lines(turn)))
    return turn.finish_reason in NATURAL_ENDS and turn.saw_done


def _lines(turn: Turn) -> Iterator[str]:
    response = turn.post()
    if response.status != 200:
        raise RuntimeError(f"HTTP status {response.status}")
    text = io.StringIO()
    while data := response.read(turn.read_cap_bytes):
        text.write(data.decode("utf-8", "replace"))
    yield from text.getvalue().splitlines()


serve("_wrong/per_read", answer)
