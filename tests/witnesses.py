"""Two witnesses of the same bytes: the client, which reads piece by piece, and the auditor, which reads them whole.

They share no code; tests and fuzzing compare what the two say. This file knows how each of them is asked,
and not what is right. What hangs on how the client represents things stands in one function each:
`items_by_client` (what a framer gives) and `json_by_client`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from client import CANCEL, Contract, Reader
from client.events import MESSAGE, Event, Framer
from client.events import Item as EventOrFault
from client.eventstream import EventStreamFramer
from client.framer import SseFramer
from client.ndjson import NdjsonFramer
from client.outcomes import Fault
from client.reader import Control, Settled
from client.strict_json import parse
from client.units import utf16_units
from tests.auditor import load as load_auditor

AUDIT = load_auditor()

FRAMERS: dict[str, Callable[[Contract], Framer]] = {
    "sse": SseFramer,
    "ndjson": NdjsonFramer,
    "eventstream": EventStreamFramer,
}


class Found(NamedTuple):
    """What both witnesses say of a body."""

    outcome: str
    preview: str
    finish_reason: str | None
    settled_at: int | None
    reason_class: str | None
    unknown_events: int
    calls: list[tuple[str | None, str | None, str]]


class Item(NamedTuple):
    """What both witnesses say of one event, or of the fault that ends a body (then its data is None)."""

    name: str  # the type of an event, the outcome of a fault
    data: bytes | None
    at: int | None  # the offset that proves it; for the client the end of the piece that gave it; None at the end


# -- a turn


def read_in_pieces(
    pieces: Iterable[bytes],
    contract: Contract,
    cancel_after_utf16: int | None,
    dialect: str = "openai-chat",
    framing: str = "chunked",
    end: str = "eof",
) -> Found:
    """Read a body in these pieces; `settled_at` is the end of the piece that settles the turn."""
    shown = 0

    def show(piece: str) -> Control | None:
        nonlocal shown
        shown += utf16_units(piece)
        return CANCEL if cancel_after_utf16 is not None and shown >= cancel_after_utf16 else None

    reader = Reader(contract, dialect, show)
    at: int | None = None
    read = 0
    for piece in pieces:
        read += len(piece)
        if reader.feed(piece):
            at = read
            break
    return _found(reader.settled or reader.end(end, is_framed=framing != "close"), at)


def _found(turn: Settled, at: int | None) -> Found:
    calls = [(call.id, call.name, call.arguments) for call in turn.calls]
    return Found(turn.outcome, turn.preview, turn.finish_reason, at, turn.reason_class, turn.unknown_events, calls)


def by_client(
    body: bytes,
    contract: Contract,
    cancel_after_utf16: int | None,
    dialect: str = "openai-chat",
    framing: str = "chunked",
    end: str = "eof",
) -> Found:
    """Read byte by byte, so that the byte that settles the turn is known."""
    return read_in_pieces(each_byte(body), contract, cancel_after_utf16, dialect, framing, end)


def by_auditor(
    body: bytes,
    contract: Contract,
    cancel_after_utf16: int | None,
    dialect: str = "openai-chat",
    framing: str = "chunked",
    end: str = "eof",
) -> Found:
    """Judge the whole body at once."""
    rules = {
        name: AUDIT.Rules(r.media_type, r.framing, r.terminal, sorted(r.results), dict(r.reasons))
        for name, r in contract.dialects.items()
    }
    switch = AUDIT.Switch(**contract.switches)
    judged = AUDIT.Contract(_limits(contract), switch, dict(contract.history), rules)
    reading = AUDIT.judge(body, dialect, judged, cancel_after_utf16, end, framing)
    turn = reading.turn
    calls = [
        (call.id, call.name, turn.arguments(call)) for (candidate, _), call in turn.calls.items() if candidate == 0
    ]
    text = "".join(turn.texts)
    return Found(reading.outcome, text, turn.reason, reading.settled_at, turn.ending, turn.unknown_events, calls)


def _limits(contract: Contract) -> Mapping[str, int]:
    limits: Mapping[str, int] = AUDIT.Limits(**{name: getattr(contract.limits, name) for name in AUDIT.Limits._fields})
    return limits


# -- a framing


def each_byte(body: bytes) -> list[bytes]:
    """Cut a body into its bytes."""
    return [body[at : at + 1] for at in range(len(body))]


def items_by_client(framer: Framer, pieces: Iterable[bytes], flushes: bool) -> list[Item]:
    """Feed a framer and flush it where the end dispatches; stop at a fault, as a reader does."""
    found: list[Item] = []
    read = 0
    for piece in pieces:
        read += len(piece)
        found += [_item(item, read) for item in framer.feed(piece)]
        if found and found[-1].data is None:
            return found
    return found + [_item(item, None) for item in framer.flush()] if flushes else found


def _item(item: EventOrFault, at: int | None) -> Item:
    if isinstance(item, Fault):
        return Item(item.outcome, None, at)
    event = item if isinstance(item, Event) else Event(MESSAGE, item)
    return Item(event.type, event.data, at)


def items_by_auditor(framing: str, body: bytes, contract: Contract) -> list[Item]:
    """Frame the whole body; the auditor counts events where it judges them, so they are counted here."""
    found: list[Item] = []
    switch = AUDIT.Switch(**contract.switches)
    flushes = contract.switches["last_event"] == "dispatch"
    for item in AUDIT.EVENT_FRAMINGS[framing](body, _limits(contract), switch, flushes):
        if isinstance(item, AUDIT.Stop):
            found.append(Item(item.outcome, None, _inside(item.at, body)))
            break
        if len(found) == contract.limits.events:
            found.append(Item("LIMIT", None, _inside(item.dispatch, body)))
            break
        found.append(Item(item.type, item.data.encode(), _inside(item.dispatch, body)))
    return found


def _inside(at: int, body: bytes) -> int | None:
    return at if at <= len(body) else None


# -- JSON


def json_by_client(text: str, depth: int) -> str | None:
    """Spell the value that the client reads; None where it refuses the text."""
    value = parse(text.encode(errors="surrogatepass"), depth)
    return None if isinstance(value, Fault) else _spelt(value)


def json_by_auditor(text: str, depth: int) -> str | None:
    """Spell the value that the auditor reads; None where it refuses the text."""
    try:
        return _spelt(AUDIT.strict_json(text, depth))
    except AUDIT.NotStrictError:
        return None


def _spelt(value: object) -> str:
    """Spell a value so that 1, 1.0 and true differ, and so do 0.0 and -0.0; names in their order."""
    return json.dumps(value)
