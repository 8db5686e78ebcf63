"""The stencil against the dialects that it speaks for: whatever differs, it says what they would say."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client import Reader, load
from client.decoder import Decoder
from client.dialects import find, names
from client.events import MESSAGE, Event
from client.outcomes import Fault
from client.reader import FRAMERS
from client.signals import Kind, text
from client.stencil import Hole, Stencil, holes
from client.strict_json import parse
from tests.ways import pieces

STRICT = load("strict/1")
CASES = Path(__file__).parents[2] / "cases"

CHUNK = (
    b'{"id":"c1","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":%s,"finish_reason":null}],"obfuscation":%s}'
)
FIRST = CHUNK % (b"a", b"null", b'"x"')
OTHER = CHUNK % (b"b", b'{"content":[]}', b'"yz"')

# What may stand in a hole, or break out of it.
ANY = [
    b'"a"',
    b'""',
    b'"\\u4f60\\n"',
    b'"\xe4\xbd\xa0"',
    b'"\\ud800"',
    b'"a\tb"',
    b'"a","x":"b"',
    b'"a"},"logprobs":null,"finish_reason":"stop"}],"obfuscation":"x"}',
    b"null",
    b"1e999",
    b"[" * 70 + b"]" * 70,
    b'{"a":1,"a":2}',
    b'{"a":{"b":[1,2.5,true]}}',
    b"",
    b" 1 ",
    b"1 2",
]
VALUE = st.sampled_from(ANY) | st.text(max_size=6).map(lambda value: json.dumps(value, ensure_ascii=False).encode())


def both(decoder: Decoder, data: bytes) -> None:
    """Ask the stencil and the dialect about one event; where the stencil answers, it has to be the same."""
    repeated = decoder.repeated(MESSAGE, data)
    if repeated is not None:
        written, candidate, block = repeated
        assert decoder.signals(MESSAGE, data) == text(written, candidate=candidate, block=block)


def learnt(*events: bytes) -> Decoder:
    """Give a decoder that has read these events."""
    decoder = Decoder(find("openai-chat"), 64)
    for data in events:
        decoder.signals(MESSAGE, data)
    return decoder


@settings(max_examples=400, deadline=None)
@given(VALUE, VALUE, VALUE)
@example(b'"a"', b"null", b'"z"')
def test_any_values_in_the_holes(content: bytes, logprobs: bytes, padding: bytes) -> None:
    """Whatever stands in the holes, an answer of the stencil is the answer of the dialect."""
    data = (CHUNK.replace(b'"%s"', b"%s", 1)) % (content, logprobs, padding)
    both(learnt(FIRST), data)
    both(learnt(FIRST, OTHER), data)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=3), st.integers(0, 200), st.integers(0, 4))
def test_any_scratch(scratch: bytes, at: int, dropped: int) -> None:
    """However an event is scratched, an answer of the stencil is the answer of the dialect."""
    both(learnt(FIRST, OTHER), OTHER[:at] + scratch + OTHER[at + dropped :])


def test_it_answers() -> None:
    """Events that differ in their text alone, and in what is not looked at, are answered by the stencil."""
    assert learnt(FIRST).repeated(MESSAGE, CHUNK % (b"x", b"null", b'"x"')) == ("x", 0, None)
    assert learnt(FIRST).repeated(MESSAGE, OTHER) is None
    assert learnt(FIRST, OTHER).repeated(MESSAGE, CHUNK % (b"x", b"[1]", b"{}")) == ("x", 0, None)


def test_a_hole_taken_for_what_is_none_is_noticed() -> None:
    """The control: a stencil that is cut in the wrong place gives another answer than the dialect."""
    start = FIRST.index(b'"c1"')
    wrong = Stencil(FIRST, Hole(start, start + 4, 1), [], 64)
    assert wrong.text(FIRST.replace(b'"c1"', b'"c2"')) == "c2"
    assert find("openai-chat").signals(MESSAGE, FIRST, 64) == text("a")


def test_holes_are_where_the_places_are() -> None:
    """Names may be spelt with escapes, and a bracket in a string is none."""
    data = b' {"x" : ["]", {"\\u0061" :"}"} ], "y":{}}'
    found = holes(data, frozenset({("x", 1, "a"), ("y",), ("z",)}))
    assert {place: data[hole.start : hole.end] for place, hole in found.items()} == {
        ("x", 1, "a"): b'"}"',
        ("y",): b"{}",
    }
    assert found["x", 1, "a"].depth == 3


def events(dialect: str) -> list[tuple[str, bytes]]:
    """Give every event of a dialect's cases that holds JSON."""
    found: dict[tuple[str, bytes], None] = {}
    for path in sorted((CASES / dialect).glob("*/body.*")):
        items = FRAMERS[STRICT.dialects[dialect].framing](STRICT).feed(path.read_bytes()[:60_000])
        for item in items:
            event = item if isinstance(item, Event) else Event(MESSAGE, item) if isinstance(item, bytes) else None
            if event and not isinstance(parse(event.data, 64), Fault):
                found[event.type, event.data] = None
    return list(found)


@pytest.mark.parametrize("dialect", names())
def test_what_a_dialect_does_not_read(dialect: str) -> None:
    """In every text of its cases, a member said to be unread may hold anything and changes no signal."""
    reads = find(dialect)
    for kind, data in events(dialect):
        before = reads.signals(kind, data, 64)
        if isinstance(before, Fault) or [signal.kind for signal in before] != [Kind.TEXT]:
            continue
        for hole in holes(data, reads.unread).values():
            for value in (b"null", b'"a"', b"1.5", b'{"error":{"x":1}}', b"[[]]"):
                assert reads.signals(kind, data[: hole.start] + value + data[hole.end :], 64) == before


@pytest.mark.parametrize("dialect", names())
def test_where_a_dialect_has_its_text(dialect: str) -> None:
    """In every event that is nothing but a text, another text in its place changes that text alone."""
    reads, seen = find(dialect), 0
    for kind, data in events(dialect):
        found = reads.signals(kind, data, 64)
        hole = holes(data, frozenset({reads.text_at})).get(reads.text_at)
        if isinstance(found, Fault) or [signal.kind for signal in found] != [Kind.TEXT] or hole is None:
            continue
        seen += 1
        for value in ("error", "[DONE]", "stop", " \n", "你"):
            spelt = json.dumps(value).encode()
            other = reads.signals(kind, data[: hole.start] + spelt + data[hole.end :], 64)
            assert other == [found[0]._replace(value=value)]
    assert seen


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*/*/body.*")), ids=lambda path: f"{path.parents[1].name}-{path.parent.name}"
)
def test_off_changes_no_outcome(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any stencil every case settles as it does with them, at the same byte."""
    found = re.search(r'^dialect = "(.+)"$', (path.parent / "case.toml").read_text("utf-8"), re.MULTILINE)
    assert found
    if path.stat().st_size > 200_000:
        return settled_alike(path, found[1], "whole", monkeypatch)
    return settled_alike(path, found[1], "by three", monkeypatch)


def settled_alike(path: Path, dialect: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a body with stencils and without."""
    with_them = settle(path.read_bytes(), dialect, cut)
    monkeypatch.setattr("client.decoder.STENCILS", 0)
    assert settle(path.read_bytes(), dialect, cut) == with_them


def settle(body: bytes, dialect: str, cut: str) -> tuple[object, ...]:
    """Give how a body settles, and after which piece."""
    reader = Reader(STRICT, dialect)
    for number, piece in enumerate(pieces(body, cut)):
        if reader.feed(piece):
            return number, reader.settled
    return None, reader.end()
