"""The framer against its vectors and its limits, whatever the cuts."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.contract import Contract, Limits, load
from client.events import MESSAGE, Event, Item
from client.framer import SseFramer
from client.outcomes import LIMIT, Fault
from tests.ways import CUTS, pieces

VECTORS = tomllib.loads((Path(__file__).parents[1] / "vectors" / "framing.toml").read_text("utf-8"))["vector"]


def limits(**changed: int) -> Contract:
    """Give a contract of roomy limits, with some of them changed."""
    roomy = dict.fromkeys(("line_utf16", "event_utf16", "input_utf16", "output_utf16", "events"), 10**8)
    return replace(load("strict/1"), limits=Limits(**(roomy | {"json_depth": 16, "deadline_ms": 2000} | changed)))


def frame(body: bytes, cut: str, rules: Contract) -> list[Item]:
    """Feed a body cut in one way; stop at the first fault, as a reader does."""
    framer, found = SseFramer(rules), list[Item]()
    for piece in pieces(body, cut):
        found += framer.feed(piece)
        if found and isinstance(found[-1], Fault):
            break
    return found


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vector(vector: dict[str, Any], cut: str) -> None:
    """Every vector gives its events and its fault, however its bytes are cut."""
    body = bytes.fromhex(vector["body_hex"]) if "body_hex" in vector else vector["body"].encode()
    if cut == "with trailing bytes" and "body_hex" in vector and "fault" not in vector:
        cut = "whole"  # the vector is about a character that nothing follows
    found = frame(body, cut, limits())
    events = [
        item if isinstance(item, Event) else Event(MESSAGE, item) for item in found if not isinstance(item, Fault)
    ]
    assert [[kind, data.decode()] for kind, data in events] == vector["events"]
    assert [f.outcome for f in found if isinstance(f, Fault)] == ([vector["fault"]] if "fault" in vector else [])


LIMIT_CASES = [
    ("line_utf16", "data: aaaa\n\n", "data: aaaaa\n\n", 10),
    ("line_utf16", ": aaaaaaaa\n", ": aaaaaaaaa\n", 10),
    ("line_utf16", "data: a🌱🌱", "data: a🌱🌱a", 11),
    ("line_utf16", "\ufeffdata: aaaa\n\n", "\ufeffdata: aaaaa\n\n", 10),
    ("event_utf16", "data: 🌱\ndata: a\n\n", "data: 🌱\ndata: aa\n\n", 4),
    ("event_utf16", "data:\ndata:\n\n", "data:\ndata:\ndata:\n\n", 1),
    ("input_utf16", "\ufeff: \r\n", "\ufeff: \r\na", 5),
    ("input_utf16", "🌱🌱", "🌱🌱🌱", 5),
    ("events", "data\n\ndata\n\n", "data\n\ndata\n\ndata\n\n", 2),
]


@pytest.mark.parametrize("cut", CUTS[:3])
@pytest.mark.parametrize(("name", "within", "beyond", "limit"), LIMIT_CASES)
def test_limit(name: str, within: str, beyond: str, limit: int, cut: str) -> None:
    """Exactly the limit passes and one unit more is LIMIT, however the bytes are cut."""
    rules = limits(**{name: limit})
    assert not [item for item in frame(within.encode(), cut, rules) if isinstance(item, Fault)]
    last = frame(beyond.encode(), cut, rules)[-1]
    assert isinstance(last, Fault)
    assert last.outcome == LIMIT


@pytest.mark.parametrize("cut", CUTS[:3])
def test_events_before_a_fault_are_given(cut: str) -> None:
    """The event that stands before a limit is dispatched, whatever lies in the same piece."""
    found = frame(b"data: a\n\ndata: bbbbbbbbbbbb\n\n", cut, limits(line_utf16=10))
    assert found[0] == b"a"
    assert isinstance(found[1], Fault)


def test_first_offence_wins() -> None:
    """A line limit before a bad byte is LIMIT, a bad byte before it INVALID_UTF8."""
    rules = limits(line_utf16=4)
    early = frame(b":aaaa\xff", "whole", rules)[-1]
    late = frame(b":aa\xffaaaa", "whole", rules)[-1]
    assert [item.outcome for item in (early, late) if isinstance(item, Fault)] == ["LIMIT", "INVALID_UTF8"]


def test_fed_after_a_fault() -> None:
    """A framer that is fed after a fault says that this is the caller's mistake."""
    framer = SseFramer(limits())
    framer.feed(b"\xff")
    with pytest.raises(RuntimeError, match="after a fault"):
        framer.feed(b"a")
