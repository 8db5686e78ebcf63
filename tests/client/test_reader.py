"""The reader on whole bodies: the frozen cases, the dialect's shapes, cancellation, splits."""

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import CANCEL, History, Reader, load
from client.contract import ContractError
from client.outcomes import COMPLETE, INCOMPLETE_STREAM, LIMIT, PROTOCOL
from client.reader import Control, Settled
from tests.ways import CUTS, pieces

CONTRACT = load("frozen-text/1")
FROZEN = Path(__file__).parents[2] / "cases" / "frozen"
GOOD = (FROZEN / "seven-byte" / "body.sse").read_bytes()
BY_BODY = sorted(
    path.parent.name for path in FROZEN.glob("*/body.sse") if path.parent.name not in ("cancel", "read-timeout")
)


def read(body: bytes, cut: str = "whole") -> Settled:
    """Read a body to its end, or to the outcome."""
    reader = Reader(CONTRACT, "openai-chat")
    for piece in pieces(body, cut):
        settled = reader.feed(piece)
        if settled:
            return settled
    return reader.end()


def event(data: str) -> bytes:
    """Write one event."""
    return f"data: {data}\n\n".encode()


def delta(members: str, reason: str = "null") -> bytes:
    """Write one chunk with the members of its delta."""
    return event(f'{{"choices":[{{"index":0,"delta":{{{members}}},"finish_reason":{reason}}}]}}')


STOP, DONE = delta("", '"stop"'), event("[DONE]")

SHAPES = {
    "a scalar": (event("1"), PROTOCOL),
    "an array": (event("[]"), PROTOCOL),
    "no choices": (event("{}"), PROTOCOL),
    "choices null": (event('{"choices":null}'), PROTOCOL),
    "two choices": (event('{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{}}]}'), PROTOCOL),
    "a choice that is a string": (event('{"choices":["x"]}'), PROTOCOL),
    "index 1": (event('{"choices":[{"index":1,"delta":{}}]}'), PROTOCOL),
    "index 0.0": (event('{"choices":[{"index":0.0,"delta":{}}]}'), PROTOCOL),
    "index false": (event('{"choices":[{"index":false,"delta":{}}]}'), PROTOCOL),
    "no index": (event('{"choices":[{"delta":{}}]}'), PROTOCOL),
    "a reason that is a number": (delta("", "1"), PROTOCOL),
    "another role": (delta('"role":"user"'), PROTOCOL),
    "content that is a list": (delta('"content":[]'), PROTOCOL),
    "a function call": (delta('"function_call":{}'), PROTOCOL),
    "a refusal": (delta('"refusal":"no"'), PROTOCOL),
    "a tool call beside text leaves no text": (delta('"content":"x","tool_calls":[{}]'), PROTOCOL),
    "an error beside choices": (event('{"choices":[],"error":"x"}'), "PROVIDER_ERROR"),
    "[DONE] with a space": (event("[DONE] "), "INVALID_JSON"),
}

TOLERATED = {
    "role and empty content": delta('"role":"assistant","content":""'),
    "nulls": delta('"role":null,"content":null,"tool_calls":null,"refusal":null'),
    "an empty refusal": delta('"refusal":""'),
    "an error that is null": event('{"error":null,"choices":[]}'),
    "unknown members": event('{"id":"x","choices":[{"index":0,"delta":{"z":[1]},"logprobs":null}],"obfuscation":"q"}'),
    "a usage frame": event('{"choices":[],"usage":{"total_tokens":3}}'),
    "an event type": b"event: chunk\n" + delta(""),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("case", BY_BODY)
def test_frozen_body(case: str, cut: str) -> None:
    """Every frozen body gives the outcome and preview of its label, however it is cut."""
    label = tomllib.loads((FROZEN / case / "label.toml").read_text("utf-8"))["contract"]["frozen-text/1"]
    if label["outcome"].startswith(("HTTP_", "CONTENT_TYPE")):
        label = {"outcome": "COMPLETE", "preview": "你好，Java 🌱"}
    settled = read((FROZEN / case / "body.sse").read_bytes(), cut)
    assert (settled.outcome, settled.preview) == (label["outcome"], label["preview"])


@pytest.mark.parametrize(("body", "outcome"), SHAPES.values(), ids=list(SHAPES))
def test_shape_refused(body: bytes, outcome: str) -> None:
    """A chunk of another shape is refused, and leaves no text behind."""
    settled = read(body)
    assert (settled.outcome, settled.preview) == (outcome, "")


@pytest.mark.parametrize("extra", TOLERATED.values(), ids=list(TOLERATED))
def test_shape_tolerated(extra: bytes) -> None:
    """A harmless addition changes nothing, before the finish and after it."""
    settled = read(extra + delta('"content":"x"') + extra + STOP + extra + DONE)
    assert (settled.outcome, settled.answer) == (COMPLETE, "x")


def test_text_and_finish_in_one_event() -> None:
    """Text and finish reason of one event count in this order."""
    settled = read(delta('"content":"x"', '"stop"') + DONE)
    assert (settled.outcome, settled.answer) == (COMPLETE, "x")


def test_what_follows_the_outcome_is_not_looked_at() -> None:
    """A bad byte behind the terminal event does not unmake a COMPLETE, even in the same read."""
    assert read(GOOD + b"\xff").outcome == COMPLETE


def test_an_offence_before_the_terminal_event_wins() -> None:
    """A bad byte in a comment before the terminal event is INVALID_UTF8."""
    assert read(delta('"content":"x"') + STOP + b":\xff\n" + DONE).outcome == "INVALID_UTF8"


def test_the_257th_event() -> None:
    """256 events pass, of whatever kind, and the next is LIMIT."""
    meta = event('{"choices":[]}')
    head = delta('"content":"x"') + STOP
    assert read(head + meta * 253 + DONE).outcome == COMPLETE
    assert read(head + meta * 254 + DONE).outcome == LIMIT


def test_fed_after_the_outcome() -> None:
    """Reading on after the outcome is the caller's mistake, and is said so."""
    reader = Reader(CONTRACT, "openai-chat")
    reader.feed(GOOD)
    with pytest.raises(RuntimeError, match="COMPLETE"):
        reader.feed(b"x")


def test_the_first_outcome_stands() -> None:
    """A turn that is settled cannot be settled again."""
    reader = Reader(CONTRACT, "openai-chat")
    reader.feed(GOOD)
    assert reader.end().outcome == COMPLETE


def test_a_dialect_without_rules() -> None:
    """A contract without rules for the dialect is refused before anything is read."""
    with pytest.raises(ContractError, match="no rules for dialect"):
        Reader(CONTRACT, "morse")


HEADS = [
    (200, "text/event-stream", None, None),
    (200, "Text/Event-Stream ; charset=latin-1", "identity", None),
    (200, "text/event-stream-x", None, "CONTENT_TYPE"),
    (200, "application/json; text/event-stream", None, "CONTENT_TYPE"),
    (200, None, None, "CONTENT_TYPE"),
    (200, "text/event-stream", "gzip", "CONTENT_TYPE"),
    (503, "application/json", None, "HTTP_503"),
    (204, "text/event-stream", None, "HTTP_204"),
]


@pytest.mark.parametrize(("status", "content_type", "encoding", "outcome"), HEADS)
def test_head(status: int, content_type: str | None, encoding: str | None, outcome: str | None) -> None:
    """The head is judged by status, then by the content type's essence, then by the encoding."""
    settled = Reader(CONTRACT, "openai-chat").head(status, content_type, encoding)
    assert (settled.outcome if settled else None) == outcome


def test_cancel_from_the_preview_callback() -> None:
    """A cancel takes effect at the piece of text it answers, before the finish of the same event."""

    def stop(piece: str) -> Control | None:
        return CANCEL if piece == "b" else None

    reader = Reader(CONTRACT, "openai-chat", stop)
    settled = reader.feed(delta('"content":"a"') + delta('"content":"b"', '"stop"') + DONE)
    assert settled
    assert (settled.outcome, settled.preview, settled.finish_reason) == ("CANCELLED", "ab", None)


@given(st.lists(st.integers(0, len(GOOD)), max_size=8))
def test_any_split_of_a_good_body(cuts: list[int]) -> None:
    """Any split of a good body gives the same answer."""
    edges = [0, *sorted(cuts), len(GOOD)]
    reader = Reader(CONTRACT, "openai-chat")
    found = [reader.feed(GOOD[a:b]) for a, b in pairwise(edges) if a < b]
    assert found[-1]
    assert found[-1].answer == "你好，Java 🌱"


@given(st.integers(0, len(GOOD) - 1))
def test_no_prefix_commits(size: int) -> None:
    """No prefix that ends before the terminal event is dispatched is an answer."""
    settled = read(GOOD[:size])
    assert settled.outcome == INCOMPLETE_STREAM
    assert settled.answer is None


def test_history_takes_a_complete_turn_once() -> None:
    """Question and answer enter together, and one turn enters once."""
    history, settled = History(), read(GOOD)
    assert history.accept("q", settled)
    assert not history.accept("q", settled)
    assert [m["content"] for m in history.messages] == ["q", "你好，Java 🌱"]


def test_history_takes_two_equal_turns() -> None:
    """Two turns with the same words are two turns: nothing is told apart by text."""
    history = History()
    assert history.accept("q", read(GOOD))
    assert history.accept("q", read(GOOD))
    assert len(history.messages) == 4


def test_history_withholds_the_rest() -> None:
    """A turn that is not COMPLETE changes nothing."""
    history = History()
    assert not history.accept("q", read(GOOD[:100]))
    assert history.messages == []


def test_history_cannot_be_changed_from_outside() -> None:
    """The entries that are handed out are copies."""
    history = History([{"role": "user", "content": "a"}])
    history.messages[0]["content"] = "b"
    assert history.messages == [{"role": "user", "content": "a"}]
