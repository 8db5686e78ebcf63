"""The targets `sse`, `ndjson` and `eventstream`: bytes to events, by the client's framer and by the auditor.

An input is a head of 9 bytes (two of switches, four limits, two cuts, one that mends checksums) and a body.
Both witnesses give the same events and the same fault, each at the byte that proves it; a cut moves them to the
end of their piece and nowhere else; and the framer holds no more than what no event has ended, and its limits.
"""

from itertools import zip_longest

from client import Contract, load
from tests.witnesses import FRAMERS, Item, items_by_auditor, items_by_client

from .choices import Choices, Ends, cut, cut_around, limited, sizes_of, switched
from .frames import mend
from .growth import held_bytes

HEAD_BYTES = 9

_CONTRACT = load("strict/1")
_UNITS = {"line_utf16": 1, "event_utf16": 1, "input_utf16": 4, "events": 1}

# What a framer may hold besides bytes, and for each byte that is open: a list of pieces of one byte each.
_CONSTANT_BYTES = 4096
_BYTES_EACH = 64


def deviation(framing: str, data: bytes) -> str | None:
    """Say how the witnesses, or two ways to cut, differ on an input; None where nothing does."""
    choices = Choices(data)
    contract = limited(switched(_CONTRACT, choices), choices, **_UNITS)
    sizes = Choices(choices.take(2))
    mends = choices.byte() % 2 == 1
    body = mend(choices.rest()) if mends and framing == "eventstream" else choices.rest()

    theirs = items_by_auditor(framing, body, contract)
    for pieces in (cut_around(body, [item.at for item in theirs]), cut(body, sizes)):
        ends = Ends(pieces)
        framer = FRAMERS[framing](contract)
        fresh_bytes = held_bytes(framer)
        ours = items_by_client(framer, pieces, contract.switches["last_event"] == "dispatch")
        expected = [item._replace(at=ends.of(item.at)) for item in theirs]
        for number, (one, other) in enumerate(zip_longest(ours, expected)):
            if one != other:
                return f"item {number} in pieces of {sizes_of(pieces)}: the client has {one}, the auditor {other}"
        grown_bytes, most_bytes = held_bytes(framer) - fresh_bytes, _most_bytes(framing, contract, theirs, pieces)
        if grown_bytes > most_bytes:
            return f"the framer holds {grown_bytes} bytes, and at most {most_bytes} can be open"
    return None


def _most_bytes(framing: str, contract: Contract, items: list[Item], pieces: list[bytes]) -> int:
    """Give the most bytes that a framer may hold after this body."""
    ended = max((item.at or 0 for item in items if item.data is not None), default=0)
    unfinished = sum(map(len, pieces)) - ended
    if framing != "eventstream":  # a frame is bound by the sizes of its specification alone
        unfinished = min(unfinished, contract.limits.line_utf16 + contract.limits.event_utf16)
    last_piece = max(map(len, pieces), default=0)
    return _CONSTANT_BYTES + _BYTES_EACH * unfinished + 2 * last_piece
