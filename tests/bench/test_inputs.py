"""The inputs of the bench: their sizes, that they repeat, and that they hold what they claim."""

import hashlib
import json

import pytest

from bench.inputs import EVENTS, SCRIPTS, VARIANTS, cut, short_stream, stream, streams
from bench.shapes import FLOODS, Flood

# Over the first three streams, one of each script.
DIGESTS = {
    "content": "419a53f65327faccfd54fdd44c1d2655fd6250b8b1c21320ff241cce00346d29",
    "obfuscation": "5c8b71998c844cd48e08f1f6925ab59d459e0241ce7077e25d1e77b0d7570cc8",
    "logprobs": "14f188b3fe2b2c3ff58a61d3be9f0b80ba8f1e513a7700d3b6899095ab9a20f2",
    "top_logprobs": "3446583c5481bec1d15cb9441afce67b3792febae8883dd23180636680a88221",
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_streams_repeat(variant: str) -> None:
    """The same number gives the same bytes, in every process and on every machine."""
    bodies = b"".join(stream.body for stream in streams(len(SCRIPTS), variant))
    assert hashlib.sha256(bodies).hexdigest() == DIGESTS[variant]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stream_spells_its_answer(variant: str) -> None:
    """A stream has 300 events, the last is [DONE], and the contents of the others make up its answer."""
    for number in range(len(SCRIPTS)):
        made = stream(number, variant)
        assert len(made.events) == EVENTS == 300
        assert made.data[-1] == "[DONE]"
        chunks = [json.loads(data) for data in made.data[:-1]]
        assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == made.answer
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_an_event_is_about_235_bytes() -> None:
    """Thirty streams average 225 to 245 bytes an event, the envelope included."""
    size = sum(len(stream.body) for stream in streams(30))
    assert 225 < size / 30 / EVENTS < 245


@pytest.mark.parametrize(
    ("variant", "path"),
    [
        ("content", []),
        ("obfuscation", ["obfuscation"]),
        ("logprobs", ["choices", 0, "logprobs", "content", 0, "bytes"]),
        ("top_logprobs", ["choices", 0, "logprobs", "content", 0, "top_logprobs", 1, "token"]),
    ],
)
def test_what_varies(variant: str, path: list[str | int]) -> None:
    """Without the content and the variant's own field, all events but the first and the last are alike."""
    chunks = [json.loads(data) for data in stream(2, variant).data[1:-2]]
    for chunk in chunks:
        found = chunk
        for key in path:
            found = found[key]
        assert not path or found
        del chunk["choices"][0]["delta"]["content"], chunk["choices"][0]["logprobs"]
        chunk.pop("obfuscation", None)
    assert all(chunk == chunks[0] for chunk in chunks)


@pytest.mark.parametrize(
    ("number", "has_chinese", "has_emoji"), [(0, False, False), (1, True, False), (2, False, True)]
)
def test_scripts(number: int, has_chinese: bool, has_emoji: bool) -> None:
    """Streams are English, Chinese and with emoji by turns."""
    answer = stream(number).answer
    assert ("一" <= max(filter(lambda char: char < "\uff00", answer)) <= "鿿") == has_chinese
    assert (max(answer) > "\uffff") == has_emoji


def test_the_short_stream() -> None:
    """It has exactly 250 bytes, characters of three and four bytes, and four events."""
    made = short_stream()
    assert len(made.body) == 250
    assert len(made.data) == 4
    assert made.answer == "你好，Java 🌱"


@pytest.mark.parametrize("piece_bytes", [1, 7, 1024])
def test_pieces_make_up_the_body(piece_bytes: int) -> None:
    """Pieces have the size asked for, the last one at most, and lose nothing."""
    body = stream(1).body
    pieces = cut(body, piece_bytes)
    assert b"".join(pieces) == body
    assert {len(piece) for piece in pieces[:-1]} == {piece_bytes}
    assert 0 < len(pieces[-1]) <= piece_bytes


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.title)
def test_a_flood_has_its_size(flood: Flood) -> None:
    """A flood of a quarter of a megabyte is one, to a unit and its event at the end, in pieces of its size."""
    pieces = flood.pieces(0.25)
    size = sum(map(len, pieces))
    assert abs(size - 2**18) <= len(flood.unit) + 20
    assert max(map(len, pieces)) <= flood.piece_bytes
