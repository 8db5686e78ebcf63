"""`show.py`: one exchange byte by byte, with its four boundaries, from a hand-made trace."""

import base64
from typing import Any

import pytest

from harness.show import show

from .test_present import TRIAL, a_session

# "data: 你" LF LF "x": nine bytes up to the character's end, where reads of 7 cut it in two.
BODY = "data: 你\n\nx".encode()


def a_trace(body: bytes = BODY, **changes: Any) -> dict[str, Any]:
    """Give an audit with a trace of a body."""
    trace: dict[str, Any] = {
        "trial": TRIAL["trial"],
        "body": base64.b64encode(body).decode(),
        "read_ends": [],
        "chunk_ends": [],
        "characters": [],
        "events": [],
        "end": {"kind": "eof", "at_byte": len(body), "outcome": "INCOMPLETE_STREAM", "why": "no terminal event"},
    }
    derived = TRIAL["derived"] | {"consumed_bytes": len(body), "transport_end": "eof", "finish_reason": None}
    trial = TRIAL | {"derived": derived, "content_type": "text/event-stream"}
    return {"trials": [trial], "trace": trace | changes}


def body_lines(found: dict[str, Any]) -> list[str]:
    """Give the lines that draw the body."""
    lines = list(show(found))
    start = lines.index("") + 1
    end = len(lines) - 1 - lines[::-1].index("")
    return [text for text in lines[start:end] if "└" not in text]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"a\n\nb", ["     0  a␊", "     2  ␊", "     3  b"]),
        (b"a\r\nb\rc\n", ["     0  a␍␊", "     3  b␍", "     5  c␊"]),
        (b"\r\r\n\n", ["     0  ␍", "     1  ␍␊", "     3  ␊"]),
        (b"no end", ["     0  no end"]),
        (b"", []),
        (b"\x00\x1b[2J\x7f\xff", ["     0  <00><1B>[2J<7F><FF>"]),
    ],
)
def test_lines(body: bytes, lines: list[str]) -> None:
    """Lines end with LF, CRLF and CR; each is shown with its offset, and control bytes as hex digits."""
    assert body_lines(a_trace(body)) == lines


def test_reads_and_chunks() -> None:
    """A bar stands where a read ends, a double bar where an HTTP chunk ends, both where both do."""
    found = a_trace(b"abcdef\n", read_ends=[2, 4, 7], chunk_ends=[4, 5])
    assert body_lines(found) == ["     0  ab│cd│║e║f␊│"]


@pytest.mark.parametrize(
    ("reads", "chunks", "shown"),
    [
        ([], [], "data: ‹你›␊"),
        ([9], [], "data: ‹你›│␊"),
        ([7], [], "data: ‹你 E4│ BD A0›␊"),
        ([8], [], "data: ‹你 E4 BD│ A0›␊"),
        ([7, 8, 9], [], "data: ‹你 E4│ BD│ A0›│␊"),
        ([], [7], "data: ‹你 E4║ BD A0›␊"),
        ([7], [7], "data: ‹你 E4│║ BD A0›␊"),
    ],
)
def test_a_character_that_is_cut(reads: list[int], chunks: list[int], shown: str) -> None:
    """A character of several bytes is one; where a read or a chunk cuts it, its bytes are shown too."""
    found = a_trace(read_ends=reads, chunk_ends=chunks, characters=[[6, 9]])
    assert body_lines(found)[0] == f"     0  {shown}"


def test_a_character_that_cannot_be_seen() -> None:
    """A character that would move the cursor is escaped."""
    body = "a\u0085\u202eb".encode()
    assert body_lines(a_trace(body, characters=[[1, 3], [3, 6]])) == ["     0  a‹\\x85›‹\\u202e›b"]


def test_bytes_that_are_no_character() -> None:
    """What the auditor took for no character is shown byte by byte."""
    assert body_lines(a_trace(b"\xc3(")) == ["     0  <C3>("]


@pytest.mark.parametrize("cap", [1, 7, 1000])
def test_a_long_line(cap: int) -> None:
    """A long line is shown by its two ends, with the number of bytes and of reads that end in between."""
    ends = [*range(cap, 1000, cap), 1000]
    (text,) = body_lines(a_trace(b"x" * 1000, read_ends=ends))
    hidden = sum(150 < end <= 850 for end in ends)
    assert f" … 700 bytes, {hidden} reads … " in text
    left, right = text[8:].split(f" … 700 bytes, {hidden} reads … ")
    assert (left.count("x"), right.count("x")) == (150, 150)
    assert left.count("│") + right.count("│") + hidden == len(ends)


def test_a_long_line_of_wide_characters() -> None:
    """The two ends of a long line are cut between characters."""
    body = b"a" + "你".encode() * 300
    (text,) = body_lines(a_trace(body, characters=[[at, at + 3] for at in range(1, 901, 3)]))
    left, right = text.split(" … ")[0], text.split(" … ")[-1]
    assert left.endswith("‹你›")
    assert right.startswith("‹你›")
    assert "<" not in text


@pytest.mark.parametrize("body", [b"\x80" * 1000, b"\x80" * 1000 + b"\n", b"a" * 200 + b"\xbf" * 800])
def test_a_long_line_of_broken_bytes(body: bytes) -> None:
    """A long line that is no text at all is shown all the same."""
    (text,) = body_lines(a_trace(body))
    assert " bytes, 0 reads … " in text


EVENT = {
    "start": 0,
    "end": 11,
    "data": "你",
    "signals": ["text", "finish"],
    "before": "open",
    "after": "finished",
    "preview": "你\x1b",
    "note": "",
}


def test_an_event() -> None:
    """Under the line that dispatches an event stands what it did to the turn."""
    lines = list(show(a_trace(events=[EVENT], characters=[[6, 9]])))
    at = next(i for i, text in enumerate(lines) if text.startswith("    10  "))
    assert lines[at + 1] == "        └ event, bytes 0 to 11: text, finish; turn open → finished; preview “你\\x1b”"
    assert lines[at + 2] == "    11  x"


def test_an_event_without_a_signal_and_with_a_note() -> None:
    """An event that did nothing says so, and a note is shown escaped."""
    event = EVENT | {"signals": [], "note": "no JSON\n", "after": "INVALID_JSON", "preview": "x" * 100}
    (text,) = (line for line in show(a_trace(events=[event])) if "└" in line)
    assert "no signal (no JSON\\n); turn open → INVALID_JSON" in text
    assert text.endswith(f"“{'x' * 60}”")


def test_every_event_is_shown() -> None:
    """An event that no line of the body ends is shown at the end: a bug of the trace hides nothing."""
    events = [EVENT, EVENT | {"start": 11, "end": 999}]
    assert sum("└" in text for text in show(a_trace(events=events))) == 2


def test_heading_and_end() -> None:
    """The first lines say what was played and claimed, the last why it ended as it did."""
    lines = list(show(a_trace()))
    assert lines[0] == "frozen/seven-byte@frozen-text/1  GOOD"
    assert "HTTP 200 text/event-stream, 253 body bytes; cap 7, 37 reads returned 12 bytes" in lines[1]
    assert "verdict AGREE (right)" in lines[2]
    assert lines[-2] == "INCOMPLETE_STREAM at byte 12 (eof): no terminal event"
    assert lines[-1] == "transport eof, finish reason None; question and answer appended"


def test_no_word_of_the_archive_moves_the_cursor() -> None:
    """Title, content type, claim, reason and note reach the terminal escaped."""
    evil = "\x1b[2J\n\u202e"
    found = a_trace(events=[EVENT | {"note": evil, "signals": [evil], "preview": evil}])
    found["trace"]["end"]["why"] = evil
    trial = found["trials"][0]
    trial |= {"title": evil, "content_type": evil, "claim": {"outcome": evil, "history_size": 2}}
    trial["derived"] |= {"finish_reason": evil}
    lines = list(show(found))
    assert all(text.isprintable() for text in lines)
    assert "".join(lines).count("\\x1b[2J\\n\\u202e") == 8


def test_no_claim() -> None:
    """A trial without a claim is shown as such."""
    found = a_trace()
    found["trials"][0]["claim"] = None
    assert "subject: no outcome claimed, history of - entries" in list(show(found))[2]


def a_session_trace() -> dict[str, Any]:
    """Give an audit with a trace of a session of two attempts."""
    end = {"kind": "left", "at_byte": 1, "outcome": None, "why": "nobody read on"}
    exchanges = [
        a_trace(characters=[[6, 9]])["trace"] | {"attempt": "a"},
        a_trace(b"x")["trace"] | {"attempt": "b", "end": end},
    ]
    return {"trials": a_session()["trials"], "trace": {"trial": TRIAL["trial"], "exchanges": exchanges}}


def test_a_session() -> None:
    """A session is shown with what it came to, and then each attempt's body with how it ended."""
    lines = list(show(a_session_trace()))
    assert lines[1] == "attempts: a refused (INCOMPLETE_STREAM), b accepted; verdict AGREE (right)"
    assert lines[2] == "history: “new”, 1 written; screen accepted “new”"
    assert lines[3].startswith("│ a read ends")
    assert lines[4:] == [
        "",
        "attempt a:",
        "     0  data: ‹你›␊",
        "    10  ␊",
        "    11  x",
        "INCOMPLETE_STREAM at byte 12 (eof): no terminal event",
        "",
        "attempt b:",
        "     0  x",
        "no outcome at byte 1 (left): nobody read on",
    ]


def test_a_session_without_a_claim() -> None:
    """Without a claim the bodies are shown all the same."""
    found = a_session_trace()
    found["trials"][0] |= {"claim": None, "verdict": "NO_CLAIM"}
    assert list(show(found))[1] == "attempts: -; verdict NO_CLAIM (no claim)"
    assert len(list(show(found))) == len(list(show(a_session_trace()))) - 1
