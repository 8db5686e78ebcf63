"""The picture of lanes: which part of the body it shows, and that the boundaries are where they were."""

from __future__ import annotations

import base64
import itertools
import re
import struct
from collections.abc import Callable
from typing import Any

import pytest

from plots.body import cells
from plots.evidence import RefusalError, Trace, read_trace
from plots.fonts import Fonts
from plots.lanes import draw, last_state, turn_spans
from plots.window import choose_window

Json = dict[str, Any]
Traced = Callable[[str], Json]


def texts(svg: bytes) -> list[str]:
    """What is written in an SVG, in drawing order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode("utf-8"))


def synthetic(body: bytes, cap: int, **more: Any) -> Trace:
    """A trace of any body, read to its end, without events."""
    text = body.decode("utf-8")
    ends = [len(text[:n].encode()) for n in range(len(text) + 1)]
    fields: Json = {
        "trial": "suite/long@contract/1",
        "body": base64.b64encode(body).decode(),
        "read_ends": [*range(cap, len(body), cap), len(body)],
        "chunk_ends": [len(body)],
        "characters": [[a, b] for a, b in itertools.pairwise(ends) if b - a > 1],
        "events": [],
        "end": {"kind": "eof", "at_byte": len(body), "outcome": "INCOMPLETE_STREAM", "why": "it ended"},
    }
    return read_trace({"trace": fields | more})


@pytest.mark.parametrize(
    "case",
    ["seven-byte", "one-byte", "missing-done", "oversized-line", "http-503", "read-timeout", "cancel"],
)
def test_every_kind_of_end(traced: Traced, bare: Fonts, case: str) -> None:
    """Each lane, the outcome and the auditor's reason stand in the picture, at about 1500 by 500 pixels."""
    trace = read_trace(traced(case))
    picture = draw(trace, bare)
    written = texts(picture.svg)
    assert {"reads", "characters", "events", "turn", trace.outcome} <= set(written)
    assert any(text.startswith(trace.why) for text in written)
    width, height = struct.unpack(">II", picture.png[16:24])
    assert width == 1500
    assert 490 <= height <= 570


def test_same_input_same_bytes(traced: Traced) -> None:
    """The same trace gives the same PNG and SVG to the byte."""
    trace = read_trace(traced("seven-byte"))
    assert draw(trace, Fonts()) == draw(trace, Fonts())


def test_preview_grows_where_events_end(traced: Traced) -> None:
    """The turn changes at the ends of events, never at those of reads."""
    assert turn_spans(read_trace(traced("seven-byte"))) == [
        (0, 86, "open", ""),
        (86, 172, "open", "你好，"),
        (172, 239, "open", "你好，Java 🌱"),
        (239, 253, "finished", "你好，Java 🌱"),
    ]


def test_the_end_finds_the_turn_finished(traced: Traced, bare: Fonts) -> None:
    """A body that ends right after its finish reason was finished, though that state has no width."""
    trace = read_trace(traced("missing-done"))
    assert last_state(trace) == "finished"
    assert "was finished · eof at 153" in texts(draw(trace, bare).svg)


def test_events_beyond_the_end_do_not_count(traced: Traced) -> None:
    """The state at the end is that of the events before it."""
    report = traced("seven-byte")
    report["trace"]["end"] = {"kind": "settled", "at_byte": 0, "outcome": "HTTP_503", "why": "status"}
    assert last_state(read_trace(report)) == "open"


def test_an_event_ends_after_the_line_feed_that_follows_its_end(traced: Traced) -> None:
    """An exchange that is settled by the CR of a CRLF knows the event whose LF comes a byte later."""
    report = traced("seven-byte")
    report["trace"]["end"]["at_byte"] = 252
    assert last_state(read_trace(report)) == "finished"
    assert turn_spans(read_trace(report))[-1] == (239, 252, "finished", "你好，Java 🌱")


def test_cut_characters_are_counted(traced: Traced, bare: Fonts) -> None:
    """Reads of one byte cut all four longer characters, reads of seven bytes cut one."""
    for case, cut in (("one-byte", 4), ("seven-byte", 1)):
        foot = texts(draw(read_trace(traced(case)), bare).svg)[-1]
        assert f"{cut} of 4 longer characters cut by a read" in foot


def test_short_body_is_whole(traced: Traced, bare: Fonts) -> None:
    """A body of 253 bytes is shown whole, and the picture says so."""
    trace = read_trace(traced("seven-byte"))
    window = choose_window(trace, None, None)
    assert (window.first, window.last) == (0, 253)
    assert texts(draw(trace, bare).svg)[-1].endswith("shown: the whole body, 253 bytes")


def test_long_body_shows_the_end(traced: Traced, bare: Fonts) -> None:
    """Of a long body the bytes around the end are shown, and the picture says which and how to choose."""
    trace = read_trace(traced("oversized-line"))
    window = choose_window(trace, None, None)
    assert (window.first, window.last) == (8096, 8208)
    assert "bytes 8,096 to 8,208 of 8,208 (--from, --to)" in texts(draw(trace, bare).svg)[-1]


def test_http_chunks_only_where_there_are_several(traced: Traced, bare: Fonts) -> None:
    """The lane of HTTP chunks is there for a body in two chunks and not for one in one."""
    assert "HTTP chunks" in texts(draw(read_trace(traced("oversized-line")), bare).svg)
    assert "HTTP chunks" not in texts(draw(read_trace(traced("seven-byte")), bare).svg)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(40, 100, (40, 100)), (200, None, (200, 253)), (None, 100, (0, 100)), (40, 9999, (40, 253))],
)
def test_chosen_window(traced: Traced, first: int | None, last: int | None, expected: tuple[int, int]) -> None:
    """`--from` and `--to` choose the window; what is beyond the body is left out."""
    window = choose_window(read_trace(traced("seven-byte")), first, last)
    assert (window.first, window.last) == expected


@pytest.mark.parametrize(("first", "last"), [(100, 100), (-1, 50), (300, None), (90, 20), (None, -5)])
def test_impossible_window(traced: Traced, first: int | None, last: int | None) -> None:
    """A window that holds no byte of the body is refused."""
    with pytest.raises(RefusalError, match="no window"):
        choose_window(read_trace(traced("seven-byte")), first, last)


def test_bytes_stand_below_where_there_is_room(traced: Traced, bare: Fonts) -> None:
    """Sixty bytes have a cell each; LF has a sign of its own, and its meaning is written down."""
    written = texts(draw(read_trace(traced("seven-byte")), bare, 190, 250).svg)
    assert {"[", "D", "O", "N", "E"} <= set(written)
    assert "↵ is LF" in written


def test_everything_of_a_long_body(bare: Fonts) -> None:
    """A long body read byte by byte is drawn whole in one block for each lane that would be too fine."""
    trace = synthetic("日本語".encode() * 3000, 1)
    written = texts(draw(trace, bare, 0, 27000).svg)
    assert "27,000 reads" in written
    assert "9,000 characters of 2 bytes or more" in written
    assert any("no room for the text" in text for text in written)


def test_cells_of_any_bytes() -> None:
    """Characters keep their spans, and bytes that are no text stand in hexadecimal, each once."""
    assert cells("a好\r\n".encode()) == [(0, 1, "a"), (1, 4, "好"), (4, 5, "←"), (5, 6, "↵")]
    assert cells(b"a\xff\xe5\xa5") == [(0, 1, "a"), (1, 2, "FF"), (2, 3, "E5"), (3, 4, "A5")]
    assert cells(b"\xc3(") == [(0, 1, "C3"), (1, 2, "(")]
    assert [cell[0] for cell in cells(bytes(range(256)))] == list(range(256))


def test_cells_agree_with_the_decoder() -> None:
    """Every character of every length is one cell with exactly its bytes."""
    text = "".join(map(chr, [*range(33, 0x300), *range(0x4E00, 0x4E80), *range(0x1F600, 0x1F640)]))
    found = cells(text.encode())
    assert [text.encode()[start:end].decode() for start, end, _ in found] == list(text)


def test_character_without_a_font_stands_in_bytes(traced: Traced, bare: Fonts) -> None:
    """Where a character's number has no room in its cell its bytes stand there in hexadecimal."""
    assert {"E4", "BD", "A0"} <= set(texts(draw(read_trace(traced("seven-byte")), bare, 30, 120).svg))


def test_invalid_bytes_are_drawn(traced: Traced, bare: Fonts) -> None:
    """A body that is no UTF-8 has a picture with its bytes in hexadecimal."""
    report = traced("read-timeout")
    report["trace"] |= {"body": base64.b64encode(b"\xff\n").decode(), "read_ends": [2], "chunk_ends": [2]}
    assert "FF" in texts(draw(read_trace(report), bare).svg)
