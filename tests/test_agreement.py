"""Two witnesses: the incremental client and the auditor's whole-body reading agree on any bytes.

They share no code. Where they differ, one of them reads the rules of docs/formats.md wrongly.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from client import Contract, Reader, load
from client.contract import SWITCHES as SWITCH_VALUES
from tests.provider_streams import provider_streams
from tests.witnesses import by_auditor, by_client, json_by_auditor, json_by_client

FROZEN = load("frozen-text/1")
BODIES = sorted((Path(__file__).parents[1] / "cases" / "frozen").glob("*/body.sse"))

# Pieces of streams, good and bad, from which most soups get past the first event.
PIECES = [
    b'data: {"choices":[{"index":0,"delta":{"content":"\xe4\xbd\xa0"},"finish_reason":null}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"\xf0\x9f\x8c\xb1x"}}]}\r\n\r\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\r\r',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"new"}]}\n\n',
    b'data: {"choices":[],"usage":{}}\n\n',
    b'data: {"error":{"message":"x"}}\n\n',
    b"data: [DONE]\n\n",
    b"data: [DONE]",
    b'data: {"choices":[\n',
    b"data: ]}\n\n",
    b"data: {\n",
    b'data: "a\n',
    b"data\n\n",
    b"event: x\n",
    b": comment\n",
    b"id: 5\n\n",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\r\n",
    b"\xc3",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f",
    b" ",
    b":",
    b"x",
]

SOUP = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=14).map(b"".join)
TIGHT = st.fixed_dictionaries(
    {
        "line_utf16": st.integers(1, 120),
        "event_utf16": st.integers(1, 120),
        "input_utf16": st.integers(1, 400),
        "output_utf16": st.integers(1, 8),
        "events": st.integers(1, 6),
        "json_depth": st.integers(1, 6),
    }
)


def agree(body: bytes, contract: Contract, cancel_after_utf16: int | None = None) -> None:
    """Compare the two witnesses on one body."""
    assert by_client(body, contract, cancel_after_utf16) == by_auditor(body, contract, cancel_after_utf16)


@pytest.mark.parametrize("path", BODIES, ids=[path.parent.name for path in BODIES])
def test_frozen_bodies(path: Path) -> None:
    """They agree on every frozen body, down to the byte that settles it."""
    agree(path.read_bytes(), FROZEN)


@settings(max_examples=300, deadline=None)
@given(SOUP)
@example(b"\xef\xbb\xbf\xef\xbb\xbfdata: [DONE]\n\n")
@example(b"data: {\r\n\ndata: }\r\r\n")
def test_any_stream(body: bytes) -> None:
    """They agree on any soup of stream pieces and bytes."""
    agree(body, FROZEN)


@settings(max_examples=300, deadline=None)
@given(SOUP, TIGHT, st.none() | st.integers(1, 5))
def test_any_limits(body: bytes, tight: dict[str, int], cancel_after_utf16: int | None) -> None:
    """They agree under any limits, and on where a cancel takes effect."""
    agree(body, replace(FROZEN, limits=replace(FROZEN.limits, **tight)), cancel_after_utf16)


DIALECTS = sorted(load("strict/1").dialects)
CONTRACTS = {name: load(name) for name in ("strict/1", "compat/1")}
SUITES = Path(__file__).parents[1] / "cases"


def bodies(dialect: str) -> list[bytes]:
    """Give the short bodies of a dialect's suite."""
    found = {path.read_bytes() for path in (SUITES / dialect).glob("*/body.*")}
    return sorted(body for body in found if len(body) < 6000)


def units(dialect: str, body: bytes) -> list[bytes]:
    """Cut a body into its events, lines or frames."""
    if dialect == "ollama":
        return body.splitlines(keepends=True)
    if dialect != "bedrock":
        return [unit for unit in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", body) if unit]
    frames = []
    while len(body) >= 16:
        size = max(int.from_bytes(body[:4], "big"), 16)
        frames.append(body[:size])
        body = body[size:]
    return [*frames, body] if body else frames


POOL = {dialect: [units(dialect, body) for body in bodies(dialect)] for dialect in DIALECTS}


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, bytes]:
    """Give a dialect, and units of its cases shuffled, repeated, left out and scratched."""
    dialect = draw(st.sampled_from(DIALECTS))
    base = list(draw(st.sampled_from(POOL[dialect])))
    for _ in range(draw(st.integers(0, 4))):
        other = draw(st.sampled_from(POOL[dialect]))
        at = draw(st.integers(0, len(base)))
        what = draw(st.sampled_from(["drop", "insert", "repeat"]))
        if what == "insert" and other:
            base.insert(at, draw(st.sampled_from(other)))
        elif what == "drop" and at < len(base):
            del base[at]
        elif at < len(base):
            base.insert(at, base[at])
    body = b"".join(base)
    if draw(st.integers(0, 3)) == 0 and body:
        at = draw(st.integers(0, len(body) - 1))
        scratch = draw(st.sampled_from([b"", b"\xff", b'"', b"{", b"\r", b"0", b"\xed\xa0\x80", b"null"]))
        body = body[:at] + scratch + body[at + draw(st.integers(0, 3)) :]
    return dialect, body


@pytest.mark.parametrize(
    ("path", "dialect"), provider_streams().items(), ids=lambda value: getattr(value, "name", value)
)
def test_provider_streams(path: Path, dialect: str) -> None:
    """They agree on every provider stream; what its outcome has to be is in tests/audit/test_dialects.py."""
    for contract in CONTRACTS.values():
        ours, theirs = (read(path.read_bytes(), contract, None, dialect) for read in (by_client, by_auditor))
        assert ours == theirs


SWITCHES = st.fixed_dictionaries({name: st.sampled_from(sorted(values)) for name, values in SWITCH_VALUES.items()})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_case(dialect: str, contract: str) -> None:
    """They agree on every body of every suite, down to the byte that settles it."""
    for body in bodies(dialect):
        ours, theirs = (read(body, CONTRACTS[contract], None, dialect) for read in (by_client, by_auditor))
        assert ours == theirs


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(streams(), SWITCHES, TIGHT | st.none(), st.none() | st.integers(1, 5), st.sampled_from(["chunked", "close"]))
def test_any_dialect(
    stream: tuple[str, bytes],
    switches: dict[str, str],
    tight: dict[str, int] | None,
    cancel_after_utf16: int | None,
    framing: str,
) -> None:
    """They agree on shuffled and scratched streams of every dialect, under any switches and limits."""
    dialect, body = stream
    contract = replace(CONTRACTS["strict/1"], switches=switches)
    if tight:
        scaled = {name: value * 8 if name.endswith("utf16") else value for name, value in tight.items()}
        contract = replace(contract, limits=replace(contract.limits, **scaled))
    ours, theirs = (read(body, contract, cancel_after_utf16, dialect, framing) for read in (by_client, by_auditor))
    assert ours == theirs


@settings(max_examples=200, deadline=None)
@given(SOUP, st.lists(st.integers(1, 40), min_size=1, max_size=20), TIGHT)
def test_any_split(body: bytes, sizes: list[int], tight: dict[str, int]) -> None:
    """Outcome and preview do not depend on how the bytes were cut, whatever the limits."""
    contract = replace(FROZEN, limits=replace(FROZEN.limits, **tight))
    reader, at, settled = Reader(contract, "openai-chat"), 0, None
    for number in range(len(body)):
        size = sizes[number % len(sizes)]
        settled = settled or (reader.feed(body[at : at + size]) if body[at : at + size] else None)
        at += size
    settled = settled or reader.end()
    whole = by_client(body, contract, None)
    assert (settled.outcome, settled.preview) == (whole.outcome, whole.preview)


JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def same_json(text: str, depth: int) -> None:
    """Compare the two readers of JSON on one text."""
    assert json_by_client(text, depth) == json_by_auditor(text, depth), text


@settings(max_examples=300, deadline=None)
@given(JSON_TEXT, st.integers(1, 6), st.booleans(), st.data())
def test_any_json(value: object, depth: int, ascii_only: bool, data: st.DataObject) -> None:
    """They accept and refuse the same JSON texts, those with one character changed included."""
    import json

    text = json.dumps(value, ensure_ascii=ascii_only)
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(st.sampled_from(["", '"', "\\", "{", "]", ",", "0", "e9", "\\ud800", "\x00", " ", "NaN", "\u2028"]))
    same_json(text, depth)
    same_json(text[:at] + put + text[at:], depth)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_any_text_as_json(text: str) -> None:
    """They agree on arbitrary text."""
    same_json(text, 3)
