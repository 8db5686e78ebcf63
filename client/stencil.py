"""What the events of one stream share, cut out once, so that only what differs is read again.

Most events of an answer are one JSON text with another string in one place, and perhaps another value
where nobody looks. A stencil holds the bytes between those places, its holes. JSON's grammar is free of
context, and no text can be read in two ways: where a text is valid and a hole in it is exactly one value,
any other value in that place gives a valid text that differs there alone. So an event that has the
stencil's bytes, and in each hole exactly one strict value, needs no second look at the names, the nesting
and the numbers around them. Which members may differ is the dialect's to say; this file knows JSON and
no dialect. An event that does not fit is read like any other.
"""

import re
from typing import NamedTuple

from .strict_json import is_value, parse, parse_string

# A place in a JSON text: the names of members and the numbers of elements that lead to it.
Place = tuple[str | int, ...]

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]++')


class Hole(NamedTuple):
    """Where a value stands in a text, and in how many containers."""

    start: int
    end: int
    depth: int


class Stencil:
    """The bytes around the holes of one event, its first, and what may stand in the holes."""

    def __init__(self, data: bytes, text: Hole, unread: list[Hole], max_depth: int) -> None:
        holes = sorted([text, *unread])
        ends = [0, *(hole.end for hole in holes)]
        starts = [*(hole.start for hole in holes), len(data)]
        self._first, *between, self._last = [data[a:b] for a, b in zip(ends, starts, strict=True)]
        self._first_bytes, self._last_bytes = len(self._first), len(self._last)
        depths_left = [None if hole is text else max_depth - hole.depth for hole in holes]
        *self._steps, (_, self._last_depth) = zip([*between, b""], depths_left, strict=True)

    def text(self, data: bytes) -> str | None:
        """Give the text of an event that fits, which may be empty; None for any other."""
        if data[: self._first_bytes] != self._first or data[-self._last_bytes :] != self._last:
            return None
        middle = data[self._first_bytes : -self._last_bytes]
        return self._many(middle) if self._steps else parse_string(middle)

    def _many(self, middle: bytes) -> str | None:
        """Read several holes; where their bounds are taken wrongly, one of them holds no value."""
        text = None
        for literal, depth_left in self._steps:
            piece, found, middle = middle.partition(literal)
            if not found or (depth_left is not None and not is_value(piece, depth_left)):
                return None
            if depth_left is None:
                text = parse_string(piece)
        if self._last_depth is None:
            return parse_string(middle)
        return text if is_value(middle, self._last_depth) else None


def holes(data: bytes, places: frozenset[Place]) -> dict[Place, Hole]:
    """Find the values at these places of a text that `parse` accepts, each within none of the others."""
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(data)]
    found: dict[Place, Hole] = {}
    _walk(tokens, 0, (), places, found)
    return found


_Tokens = list[tuple[bytes, int, int]]


def _walk(tokens: _Tokens, at: int, place: Place, places: frozenset[Place], found: dict[Place, Hole]) -> int:
    """Walk over the value whose first token is number `at`; give the number of the token behind it."""
    token, start, end = tokens[at]
    at += 1
    if token in (b"{", b"["):
        count = 0
        while tokens[at][0] not in (b"}", b"]"):
            at += tokens[at][0] == b","
            name: str | int = count
            if token == b"{":
                name = _name(tokens[at][0])
                at += 2
            at = _walk(tokens, at, (*place, name), places, found)
            count += 1
        end = tokens[at][2]
        at += 1
    if place in places:
        found[place] = Hole(start, end, len(place))
    return at


def _name(token: bytes) -> str:
    value = parse(token, 0)
    return value if isinstance(value, str) else ""
