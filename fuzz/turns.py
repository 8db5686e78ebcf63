"""The target `turn`: a whole body in any dialect, under any switches and limits, to its outcome.

An input is a head of 16 bytes (dialect, two of switches, results, the end, framing, how binary frames are made,
six limits, cancel, two cuts) and a body. Both witnesses say the same, down to the byte that settles the turn,
and the cuts move that byte to the end of its piece and change nothing else.
"""

from dataclasses import replace

from client import Contract, load
from tests.witnesses import Found, by_auditor, read_in_pieces

from . import frames
from .choices import Choices, Ends, cut, cut_around, limited, sizes_of, switched

HEAD_BYTES = 16

_CONTRACT = load("strict/1")
DIALECTS = sorted(_CONTRACT.dialects)
_UNITS = {"line_utf16": 8, "event_utf16": 8, "input_utf16": 16, "output_utf16": 1, "events": 1, "json_depth": 1}
_BODIES = (bytes, frames.mend, frames.build)


def deviation(data: bytes) -> str | None:
    """Say how the witnesses, or two ways to cut, differ on an input; None where nothing does."""
    choices = Choices(data)
    dialect = choices.one_of(*DIALECTS)
    contract = switched(_CONTRACT, choices)
    if choices.byte() % 2:
        contract = _answers_only(contract, dialect)
    end = choices.one_of("eof", "reset", "short-body", "bad-framing")
    framing = choices.one_of("chunked", "content-length", "close")
    make_body = _BODIES[choices.byte() % len(_BODIES)]
    contract = limited(contract, choices, **_UNITS)
    cancel_after_utf16 = choices.byte() or None
    sizes = Choices(choices.take(2))
    body = choices.rest()
    if contract.dialects[dialect].framing == "eventstream":
        body = make_body(body)

    theirs = by_auditor(body, contract, cancel_after_utf16, dialect, framing, end)
    for pieces in (cut_around(body, [theirs.settled_at]), cut(body, sizes)):
        ours = read_in_pieces(pieces, contract, cancel_after_utf16, dialect, framing, end)
        expected = theirs._replace(settled_at=Ends(pieces).of(theirs.settled_at))
        if ours != expected:
            said = [
                f"{name} {a!r}, not {b!r}" for name, a, b in zip(Found._fields, ours, expected, strict=True) if a != b
            ]
            return f"{dialect} in pieces of {sizes_of(pieces)}: the client has {'; '.join(said)} as the auditor"
    return None


def _answers_only(contract: Contract, dialect: str) -> Contract:
    rules = replace(contract.dialects[dialect], results=frozenset({"answer"}))
    return replace(contract, dialects={**contract.dialects, dialect: rules})
