"""`server/script.py`: the bytes on the wire of every framing and ending, however they are cut."""

from itertools import pairwise
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cases import Exchange, Step
from harness.server.script import Script, Wait, Write, script

from .support import an_exchange, sends

BODY = b"data: 1\n\n"


def wires(played: Script) -> list[bytes]:
    """Give the bytes of every write."""
    return [step.wire for step in played.steps if isinstance(step, Write)]


@pytest.mark.parametrize(
    ("changes", "wire"),
    [
        ({}, b"9\r\ndata: 1\n\n\r\n0\r\n\r\n"),
        ({"chunk_ends": (4,)}, b"4\r\ndata\r\n5\r\n: 1\n\n\r\n0\r\n\r\n"),
        ({"chunk_ends": (1, 8)}, b"1\r\nd\r\n7\r\nata: 1\n\r\n1\r\n\n\r\n0\r\n\r\n"),
        ({"ending": "fin"}, b"9\r\ndata: 1\n\n\r\n"),
        ({"ending": "reset"}, b"9\r\ndata: 1\n\n\r\n"),
        ({"ending": "stall"}, b"9\r\ndata: 1\n\n\r\n"),
        ({"ending": "bad-chunk"}, b"9\r\ndata: 1\n\n\r\nno chunk size\r\n"),
        ({"framing": "content-length"}, BODY),
        ({"framing": "content-length", "ending": "fin"}, BODY),
        ({"framing": "content-length", "ending": "short-length"}, BODY),
        ({"framing": "close"}, BODY),
        ({"framing": "close", "ending": "fin"}, BODY),
        ({"body": b""}, b"0\r\n\r\n"),
        ({"body": b"", "ending": "fin"}, b""),
        ({"body": b"x" * 0x1A2B}, b"1a2b\r\n" + b"x" * 0x1A2B + b"\r\n0\r\n\r\n"),
    ],
)
def test_wire_bytes(changes: dict[str, Any], wire: bytes) -> None:
    """Framing and ending alone determine the bytes behind the head."""
    assert b"".join(wires(script(an_exchange(**{"body": BODY} | changes)))) == wire


@pytest.mark.parametrize(
    ("changes", "head"),
    [
        ({}, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (
            {"status": 503, "content_type": "text/plain; charset=x", "framing": "content-length"},
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=x\r\nContent-Length: 9\r\n\r\n",
        ),
        (
            {"status": 529, "framing": "close"},
            b"HTTP/1.1 529 Unknown\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        ),
    ],
)
def test_head(changes: dict[str, Any], head: bytes) -> None:
    """The head is status, content type and framing, and nothing else: no Date, no Server."""
    assert script(an_exchange(BODY, **changes)).head == head


@pytest.mark.parametrize(("ending", "promised"), [("complete", 9), ("fin", 10), ("short-length", 73), ("reset", 9)])
def test_promised_length(ending: str, promised: int) -> None:
    """A Content-Length promises one byte more before a FIN, and 64 more for short-length."""
    head = script(an_exchange(BODY, framing="content-length", ending=ending)).head
    assert f"Content-Length: {promised}\r\n".encode() in head


def test_a_send_that_splits_a_chunk() -> None:
    """A chunk's size line goes out with its first byte, its CRLF with its last."""
    exchange = an_exchange(b"abcdef", chunk_ends=(4,), script=sends(2, 3, 1))
    assert wires(script(exchange)) == [b"4\r\nab", b"cd\r\n2\r\ne", b"f\r\n", b"0\r\n\r\n"]


def test_each_write_knows_what_is_out() -> None:
    """A write says how many body bytes are out after it, the last chunk included."""
    steps = script(an_exchange(b"abcdef", script=sends(2, 3, 1))).steps
    assert [step.body_bytes for step in steps if isinstance(step, Write)] == [2, 5, 6, 6]


def test_a_script_without_a_send() -> None:
    """A script that only waits sends the whole body after its last step."""
    steps = script(an_exchange(BODY, framing="close", script=(Step(wait_ms=5), Step(wait_ms=7)))).steps
    assert steps == (Wait(ms=5), Wait(ms=7), Write(wire=BODY, body_bytes=9))


def test_waits_stay_where_they_are() -> None:
    """A wait between two sends lies between their writes."""
    exchange = an_exchange(b"abcde", framing="close", script=(*sends(2), Step(wait_ms=5), *sends(3)))
    assert script(exchange).steps == (Write(wire=b"ab", body_bytes=2), Wait(ms=5), Write(wire=b"cde", body_bytes=5))


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    """A body, any chunk layout, and any way to cut it into sends."""
    body = draw(st.binary(max_size=60))
    inside = st.integers(1, max(len(body) - 1, 1))
    ends = sorted(draw(st.sets(inside))) if len(body) > 1 else []
    cuts = [0, *sorted(draw(st.sets(inside))), len(body)] if len(body) > 1 else [0, len(body)]
    sizes = [high - low for low, high in pairwise(cuts) if high > low]
    return an_exchange(body, chunk_ends=tuple(ends), script=sends(*sizes))


@settings(deadline=None)
@given(exchanges())
def test_h11_reads_back_the_body(exchange: Exchange) -> None:
    """An independent HTTP parser gets the body and its chunk ends back from any cut."""
    played = script(exchange)
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    client.send(h11.EndOfMessage())
    client.receive_data(played.head + b"".join(wires(played)))
    head = client.next_event()
    assert isinstance(head, h11.Response)
    body, ends = b"", []
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
        if event.chunk_end:
            ends.append(len(body))
    assert isinstance(event, h11.EndOfMessage)
    assert body == exchange.body
    assert ends == ([*exchange.chunk_ends, len(body)] if body else [])


@settings(deadline=None)
@given(exchanges(), st.sampled_from(["fin", "reset", "complete"]))
def test_cuts_do_not_show(exchange: Exchange, ending: str) -> None:
    """How a body is cut into sends never changes the bytes on the wire."""
    cut = an_exchange(exchange.body, chunk_ends=exchange.chunk_ends, script=exchange.script, ending=ending)
    whole = an_exchange(exchange.body, chunk_ends=exchange.chunk_ends, ending=ending)
    assert b"".join(wires(script(cut))) == b"".join(wires(script(whole)))
