"""The client over real sockets: logical reads, every ending, and both time-outs."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from client import CANCEL, Answer, Conditions, ask, load
from client.reader import OnPreview
from tests.jump import run

GOOD = (Path(__file__).parents[2] / "cases" / "frozen" / "seven-byte" / "body.sse").read_bytes()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CLOSE = HEAD + b"\r\n"

Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    """Write one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def sized(size: int) -> bytes:
    """Write a response head that promises a size."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % size


def sending(*parts: bytes, reset: bool = False) -> Play:
    """Give a server that reads the request, sends parts one by one, and closes or resets."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        if reset:
            await asyncio.sleep(0)
            peer = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return play


def asking(
    play: Play,
    cap: int = 7,
    read_timeout_ms: int = 1000,
    on_preview: OnPreview | None = None,
    contract: str = "frozen-text/1",
) -> tuple[Answer, float]:
    """Ask a server that plays this; give the answer and the seconds that would have passed."""

    async def main() -> Answer:
        gone = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await play(reader, writer)
            except ConnectionError:
                pass
            finally:
                writer.close()
                gone.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            answer = await ask(
                f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token/v1",
                [],
                "question",
                contract=load(contract),
                dialect="openai-chat",
                conditions=Conditions(read_cap_bytes=cap, read_timeout_ms=read_timeout_ms),
                on_preview=on_preview,
            )
            await gone.wait()
        return answer

    return run(main)


def summary(answer: Answer) -> tuple[str, int, int, str]:
    """Give what most tests look at."""
    return answer.turn.outcome, answer.reads, answer.consumed_bytes, answer.transport_end


FRAMINGS = {
    "chunked, one chunk": (CHUNKED + chunk(GOOD) + b"0\r\n\r\n",),
    "chunked, sent byte by byte": tuple(bytes([b]) for b in CHUNKED + chunk(GOOD) + b"0\r\n\r\n"),
    "content-length": (sized(len(GOOD)) + GOOD,),
    "content-length, byte by byte": (sized(len(GOOD)), *(bytes([b]) for b in GOOD)),
    "close-delimited": (CLOSE + GOOD,),
}


@pytest.mark.parametrize(("cap", "reads"), [(1, 253), (7, 37), (10, 26), (252, 2), (253, 1), (10_000, 1)])
@pytest.mark.parametrize("parts", FRAMINGS.values(), ids=list(FRAMINGS))
def test_reads_depend_on_body_and_cap_alone(parts: tuple[bytes, ...], cap: int, reads: int) -> None:
    """The number of reads is the same in every framing, however TCP cuts the bytes."""
    answer, _ = asking(sending(*parts), cap=cap)
    assert summary(answer) == ("COMPLETE", reads, 253, "left")


def test_a_cap_above_what_is_kept_in_store() -> None:
    """A read may ask for more than the client keeps unread: it is served, and the socket is not left paused."""
    body = b":" * 600_000 + b"\n" + GOOD
    answer, _ = asking(sending(sized(len(body)) + body), cap=1_000_000, contract="strict/1")
    assert summary(answer) == ("COMPLETE", 1, len(body), "left")


def test_reads_stop_at_chunk_ends() -> None:
    """A read never crosses the end of an HTTP chunk."""
    answer, _ = asking(sending(CHUNKED + chunk(GOOD[:10]) + chunk(GOOD[10:11]) + chunk(GOOD[11:]) + b"0\r\n\r\n"))
    assert answer.reads == 2 + 1 + 35


ENDINGS = {
    "closed framing": (CHUNKED + chunk(b"abc") + b"0\r\n\r\n", 2, 3, "eof"),
    "no last chunk": (CHUNKED + chunk(b"abc"), 2, 3, "short-body"),
    "a chunk cut": (CHUNKED + b"10\r\nabc", 2, 3, "short-body"),
    "a content-length cut": (sized(10) + b"abc", 2, 3, "short-body"),
    "closed without a length": (CLOSE + b"abc", 2, 3, "eof"),
    "no chunk size": (CHUNKED + chunk(b"abc") + b"oops\r\n", 2, 3, "bad-framing"),
    "no body": (CHUNKED + b"0\r\n\r\n", 1, 0, "eof"),
    "no HTTP": (b"SSH-2.0\r\n\r\n", 0, 0, "refused"),
    "nothing at all": (b"", 0, 0, "refused"),
}


@pytest.mark.parametrize(("wire", "reads", "consumed", "end"), ENDINGS.values(), ids=list(ENDINGS))
def test_ending(wire: bytes, reads: int, consumed: int, end: str) -> None:
    """Every ending is INCOMPLETE_STREAM, with how the transport ended beside it."""
    answer, _ = asking(sending(wire))
    assert summary(answer) == ("INCOMPLETE_STREAM", reads, consumed, end)


def test_reset() -> None:
    """Bytes that arrived before a reset are read before the reset is met."""
    answer, _ = asking(sending(CHUNKED + chunk(GOOD[:100]), reset=True))
    assert summary(answer) == ("INCOMPLETE_STREAM", 16, 100, "reset")


def test_reset_after_the_evidence() -> None:
    """A reset after the terminal event does not unmake a COMPLETE."""
    answer, _ = asking(sending(CHUNKED + chunk(GOOD), reset=True))
    assert answer.turn.outcome == "COMPLETE"


def test_nobody_listens() -> None:
    """A refused connection is an outcome, not an exception."""

    async def main() -> Answer:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
            return await ask(url, [], "q", contract=load("frozen-text/1"), dialect="openai-chat")

    answer, _ = run(main)
    assert summary(answer) == ("INCOMPLETE_STREAM", 0, 0, "refused")
    assert answer.status is None


def silent_after(*parts: bytes) -> Play:
    """Give a server that sends parts and then stays silent until its client has gone."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"".join(parts))
        while await reader.read(1000):
            pass

    return play


def test_read_timeout() -> None:
    """Silence ends a blocked read after the read time-out, and that read counts."""
    answer, seconds = asking(silent_after(CHUNKED), read_timeout_ms=100)
    assert summary(answer) == ("READ_TIMEOUT", 1, 0, "timeout")
    assert 0.1 <= seconds < 0.4


def test_read_timeout_with_bytes_in_hand() -> None:
    """Bytes that arrived are judged before the time-out is met by the next read."""
    answer, _ = asking(silent_after(CHUNKED, b"ff\r\n", GOOD[:10]), read_timeout_ms=100)
    assert summary(answer) == ("READ_TIMEOUT", 3, 10, "timeout")


def test_a_terminal_event_before_the_silence_is_enough() -> None:
    """A whole answer is COMPLETE although its HTTP chunk never ends."""
    answer, _ = asking(silent_after(CHUNKED, b"fff\r\n", GOOD), cap=300, read_timeout_ms=100)
    assert summary(answer) == ("COMPLETE", 1, 253, "left")


def test_deadline_ends_a_blocked_read() -> None:
    """The processing deadline of two seconds ends a read that a longer time-out would not."""
    answer, seconds = asking(silent_after(CHUNKED), read_timeout_ms=60_000)
    assert summary(answer) == ("DEADLINE", 1, 0, "timeout")
    assert 2.0 <= seconds < 2.5


def test_deadline_ends_a_drip() -> None:
    """A server that sends a byte every half second cannot hold a client beyond the deadline."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CLOSE)
        for _ in range(100):
            writer.write(b":")
            await writer.drain()
            await asyncio.sleep(0.5)

    answer, seconds = asking(drip, cap=1)
    assert answer.turn.outcome == "DEADLINE"
    assert answer.reads == 5
    assert seconds < 60


def test_silence_before_the_head() -> None:
    """A server that never answers is a READ_TIMEOUT without a read and without a status."""
    answer, _ = asking(silent_after(), read_timeout_ms=100)
    assert (*summary(answer), answer.status) == ("READ_TIMEOUT", 0, 0, "timeout", None)


def test_head_refusals_read_nothing() -> None:
    """Status and content type are judged before the first read."""
    wire = b"HTTP/1.1 503 No\r\nContent-Type: text/event-stream\r\nContent-Length: 3\r\n\r\nabc"
    assert summary(asking(sending(wire))[0]) == ("HTTP_503", 0, 0, "left")
    wire = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc"
    assert summary(asking(sending(wire))[0]) == ("CONTENT_TYPE", 0, 0, "left")


def test_informational_responses_are_skipped() -> None:
    """A 103 before the response is no response."""
    answer, _ = asking(sending(b"HTTP/1.1 103 Early Hints\r\n\r\n" + CHUNKED + chunk(GOOD)))
    assert answer.turn.outcome == "COMPLETE"


def test_cancel() -> None:
    """A cancel from the preview callback ends the exchange in the read that showed the text."""
    answer, _ = asking(sending(CHUNKED + chunk(GOOD) + b"0\r\n\r\n"), on_preview=lambda _: CANCEL)
    assert summary(answer) == ("CANCELLED", 13, 91, "left")


def test_a_cancelled_task_closes_the_connection() -> None:
    """Cancelling the task that asks closes the connection, so the server sees its client go."""

    async def main() -> bool:
        here, gone = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            here.set()
            try:
                while await reader.read(1000):
                    pass
            except ConnectionError:
                pass
            writer.close()
            gone.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            task = asyncio.create_task(ask(url, [], "q", contract=load("frozen-text/1"), dialect="openai-chat"))
            await here.wait()
            task.cancel()
            await gone.wait()
            return task.cancelled() or (await asyncio.wait([task]))[0].pop().cancelled()

    assert run(main)[0]


@pytest.mark.parametrize("url", ["https://127.0.0.1/v1", "127.0.0.1:80", "http:///v1"])
def test_wrong_url(url: str) -> None:
    """A base URL that is not plain HTTP is the caller's mistake."""
    with pytest.raises(ValueError, match="needs http://"):
        run(lambda: ask(url, [], "q", contract=load("frozen-text/1"), dialect="openai-chat"))
