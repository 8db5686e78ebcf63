"""`server/` over real sockets: every byte that a client gets, and how its connection ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from harness.cases import Case, Exchange, Step
from harness.server import app
from harness.server.app import FixtureServer, Trial
from harness.server.script import Write, script

from .support import BOUND_S, Connection, a_case, an_exchange, ask, post, run_async, sends

BODY = b'data: {"a":"\xe4\xbd\xa0"}\n\ndata: [DONE]\n\n'
MEGABYTE = bytes(range(256)) * 4096

ENDED = {"complete": "fin", "fin": "fin", "reset": "reset", "short-length": "fin", "bad-chunk": "fin"}
PAIRS = [
    *(
        (framing, ending)
        for framing in ("chunked", "content-length", "close")
        for ending in ("complete", "fin", "reset")
    ),
    ("content-length", "short-length"),
    ("chunked", "bad-chunk"),
]


@contextlib.asynccontextmanager
async def serving(*exchanges: Exchange) -> AsyncIterator[tuple[FixtureServer, Trial]]:
    """A server with one open trial."""
    case: Case = a_case(*exchanges)
    async with FixtureServer() as server:
        yield server, server.open(case)


def wire(exchange: Exchange) -> bytes:
    """All the bytes that an exchange puts on the wire."""
    played = script(exchange)
    return played.head + b"".join(step.wire for step in played.steps if isinstance(step, Write))


async def played(exchange: Exchange) -> tuple[bytes, str, Trial]:
    """Ask once; give what came, how it ended, and what the server recorded."""
    async with serving(exchange) as (server, trial):
        data, end = await ask(server.port, post(server.port, f"{trial.path}/chat/completions"))
        await trial.plays[-1].over.wait()
    return data, end, trial


@pytest.mark.parametrize(("framing", "ending"), PAIRS)
@pytest.mark.parametrize("step_bytes", [None, 1, 5])
def test_ending(framing: str, ending: str, step_bytes: int | None) -> None:
    """Every ending delivers exactly its bytes and then its FIN or RST, however the body is sent."""
    sizes = [len(BODY[i : i + step_bytes]) for i in range(0, len(BODY), step_bytes)] if step_bytes else []
    ends = (3, 14) if framing == "chunked" else ()
    exchange = an_exchange(BODY, framing=framing, ending=ending, chunk_ends=ends, script=sends(*sizes))
    data, end, trial = run_async(played(exchange))
    assert (data, end) == (wire(exchange), ENDED[ending])
    assert (trial.plays[-1].end, trial.plays[-1].sent_bytes) == ("played", len(BODY))


@pytest.mark.parametrize("ending", ["complete", "fin", "reset"])
@pytest.mark.parametrize("framing", ["chunked", "content-length", "close"])
def test_a_megabyte(framing: str, ending: str) -> None:
    """A body larger than any buffer is delivered whole before its ending, a reset included."""
    exchange = an_exchange(MEGABYTE, framing=framing, ending=ending)
    data, end, trial = run_async(played(exchange))
    assert data == wire(exchange)
    assert (end, trial.plays[-1].end, trial.plays[-1].sent_bytes) == (ENDED[ending], "played", len(MEGABYTE))


def test_reset_behind_thousands_of_small_sends() -> None:
    """A reset loses nothing where the body went out in 4,000 sends of one byte."""
    exchange = an_exchange(b"x" * 4000, framing="close", ending="reset", script=sends(*[1] * 4000))
    data, end, _ = run_async(played(exchange))
    assert (data, end) == (wire(exchange), "reset")


@pytest.mark.parametrize(
    ("exchange", "sent"),
    [
        (an_exchange(BODY, ending="stall"), len(BODY)),
        (an_exchange(BODY, script=(Step(wait_ms=10_000),)), 0),
        (an_exchange(BODY, script=(*sends(7), Step(wait_ms=10_000), *sends(len(BODY) - 7))), 7),
        (an_exchange(BODY, framing="content-length", ending="stall", script=sends(7, len(BODY) - 7)), len(BODY)),
    ],
    ids=["stall", "wait-first", "wait-between", "stall-after-sends"],
)
def test_silence_ends_when_the_client_goes(exchange: Exchange, sent: int) -> None:
    """A stall or a wait of 10 s holds nobody up once the client has gone, and is recorded as client-left."""

    async def scene() -> Trial:
        async with serving(exchange) as (server, trial):
            async with Connection(server.port) as connection:
                await connection.send(post(server.port, f"{trial.path}/chat/completions"))
                steps = script(exchange)
                out = [step.wire for step in steps.steps if isinstance(step, Write) and step.body_bytes <= sent]
                assert await connection.exactly(len(steps.head + b"".join(out))) == steps.head + b"".join(out)
                assert not trial.plays[-1].over.is_set()
            async with asyncio.timeout(5):
                await trial.plays[-1].over.wait()
        return trial

    trial = run_async(scene())
    assert (trial.plays[-1].end, trial.plays[-1].sent_bytes) == ("client-left", sent)


def test_a_stall_sends_nothing_more() -> None:
    """Behind a stall nothing comes until the client's FIN, and then the connection is closed."""
    exchange = an_exchange(BODY, ending="stall")

    async def scene() -> tuple[bytes, str]:
        async with serving(exchange) as (server, trial), Connection(server.port) as connection:
            await connection.send(post(server.port, f"{trial.path}/chat/completions"))
            assert await connection.exactly(len(wire(exchange))) == wire(exchange)
            connection.end_of_sending()
            return await connection.rest()

    assert run_async(scene()) == (b"", "fin")


def test_closing_the_server_ends_a_stall() -> None:
    """A server that is closed does not wait for a stalled client."""

    async def scene() -> Trial:
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(BOUND_S / 2), serving(an_exchange(BODY, ending="stall")) as (server, trial):
                connection = await stack.enter_async_context(Connection(server.port))
                await connection.send(post(server.port, f"{trial.path}/chat/completions"))
                await connection.exactly(10)
            return trial

    assert run_async(scene()).plays[-1].end == "client-left"


def test_a_client_that_leaves_a_large_body() -> None:
    """Of a body that no buffer holds, a client that leaves early is recorded to have left."""

    async def scene() -> Trial:
        large = MEGABYTE * 16
        async with serving(an_exchange(large, framing="close", script=sends(len(large) - 1, 1))) as (server, trial):
            async with Connection(server.port) as connection:
                await connection.send(post(server.port, f"{trial.path}/chat/completions"))
                await connection.exactly(100)
            await trial.plays[-1].over.wait()
        return trial

    play = run_async(scene()).plays[-1]
    assert (play.end, play.sent_bytes) == ("client-left", 0)


def test_requests_of_one_trial() -> None:
    """Every request of a trial is kept, and the last exchange answers all that come behind it."""

    async def scene() -> tuple[list[bytes], Trial]:
        async with serving(an_exchange(b"one"), an_exchange(b"two")) as (server, trial):
            requests = [post(server.port, f"{trial.path}/x", body) for body in (b"1", b"22", b"333")]
            answers = [(await ask(server.port, request))[0] for request in requests]
        return answers, trial

    answers, trial = run_async(scene())
    assert answers == [wire(an_exchange(b"one")), wire(an_exchange(b"two")), wire(an_exchange(b"two"))]
    assert [play.request_body for play in trial.plays] == [b"1", b"22", b"333"]


def test_too_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial answers a bounded number of requests, and says so."""
    monkeypatch.setattr(app, "_REQUESTS", 2)

    async def scene() -> tuple[bytes, Trial]:
        async with serving(an_exchange(b"x")) as (server, trial):
            for _ in range(3):
                last, _end = await ask(server.port, post(server.port, f"{trial.path}/x"))
        return last, trial

    last, trial = run_async(scene())
    assert last.startswith(b"HTTP/1.1 429 ")
    assert len(trial.plays) == 2


def test_a_request_that_never_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose body does not come is ended within a bound, and is not recorded."""
    monkeypatch.setattr(app, "_REQUEST_S", 0.05)

    async def scene() -> tuple[bytes, Trial]:
        async with serving(an_exchange(BODY)) as (server, trial):
            request = post(server.port, f"{trial.path}/x", b"whole")
            return (await ask(server.port, request[:-1]))[0], trial

    data, trial = run_async(scene())
    assert data.startswith(b"HTTP/1.1 408 ")
    assert BODY not in data
    assert trial.plays == []


def test_two_trials_at_once() -> None:
    """Trials that are open together are told apart by their paths alone."""

    async def scene() -> list[bytes]:
        async with FixtureServer() as server:
            open_ = [server.open(a_case(an_exchange(body))) for body in (b"one", b"two", b"three")]
            asked = [ask(server.port, post(server.port, f"{trial.path}/x")) for trial in open_]
            return [data for data, _ in await asyncio.gather(*asked)]

    assert run_async(scene()) == [wire(an_exchange(body)) for body in (b"one", b"two", b"three")]


def test_a_body_chunked_by_the_client_is_kept() -> None:
    """A request body in chunks is recorded without its framing."""

    async def scene() -> Trial:
        async with serving(an_exchange(BODY)) as (server, trial):
            whole = post(server.port, f"{trial.path}/x", b"")
            head = whole.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
            await ask(server.port, head + b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")
        return trial

    assert [play.request_body for play in run_async(scene()).plays] == [b"abcde"]


def test_a_reset_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the client does not take the bytes the reset is given up: recorded as failed, and nothing else is sent."""
    monkeypatch.setattr("harness.server.player._HAND_OVER_S", 0.1)
    exchange = an_exchange(b"x" * 50_000, framing="close", ending="reset")

    async def scene() -> tuple[bytes, Trial]:
        async with (
            serving(exchange) as (server, trial),
            Connection(server.port, receive_buffer_bytes=2048) as connection,
        ):
            await connection.send(post(server.port, f"{trial.path}/x"))
            await connection.exactly(1)
            await trial.plays[-1].over.wait()
            return (await connection.rest())[0], trial

    data, trial = run_async(scene())
    assert trial.plays[-1].end == "failed"
    assert wire(exchange).endswith(data)


def test_two_requests_of_one_trial_at_once() -> None:
    """Requests of one trial that are open together are each answered by their own exchange, and end on their own."""

    async def scene() -> tuple[bytes, bytes, Trial]:
        first, second = an_exchange(b"one", ending="stall"), an_exchange(b"two", ending="reset")
        async with serving(first, second) as (server, trial), Connection(server.port) as old:
            await old.send(post(server.port, f"{trial.path}/x", b"1"))
            held = await old.exactly(len(wire(first)))
            data, end = await ask(server.port, post(server.port, f"{trial.path}/x", b"2"))
            assert end == "reset"
            assert [play.over.is_set() for play in trial.plays] == [False, True]
            old.end_of_sending()
            await trial.plays[0].over.wait()
        return held, data, trial

    held, data, trial = run_async(scene())
    assert (held, data) == (wire(an_exchange(b"one", ending="stall")), wire(an_exchange(b"two", ending="reset")))
    assert [(play.end, play.sent_bytes, play.request_body) for play in trial.plays] == [
        ("client-left", 3, b"1"),
        ("played", 3, b"2"),
    ]
