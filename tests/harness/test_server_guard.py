"""`server/guard.py`: what no subject would send is refused before any trial is looked up."""

import asyncio
import re
import socket
import zlib
from collections.abc import Callable

import pytest

from harness.server.app import FixtureServer, Trial
from harness.server.guard import BODY_BYTES, HEAD_LINE_BYTES, HEADERS

from .support import Connection, a_case, an_exchange, ask, post, run_async

# Gives a request for a port and a path that a trial has.
Request = Callable[[int, str], bytes]


def head(*lines: str) -> Request:
    """A request of these lines; {port} and {path} are filled in."""

    def spell(port: int, path: str) -> bytes:
        return "".join(f"{line}\r\n".format(port=port, path=path) for line in [*lines, ""]).encode()

    return spell


HOST = "Host: 127.0.0.1:{port}"
POST = "POST {path}/chat/completions HTTP/1.1"
EMPTY = "Content-Length: 0"

REFUSED: dict[str, tuple[Request, set[int]]] = {
    "foreign host": (head(POST, "Host: evil.example", EMPTY), {421}),
    "foreign host, our port": (head(POST, "Host: evil.example:{port}", EMPTY), {421}),
    "our address, no port": (head(POST, "Host: 127.0.0.1", EMPTY), {421}),
    "our address, another port": (head(POST, "Host: 127.0.0.1:1", EMPTY), {421}),
    "a suffix of our host": (head(POST, "Host: 127.0.0.1:{port}.evil.example", EMPTY), {421}),
    "user information": (head(POST, "Host: evil@127.0.0.1:{port}", EMPTY), {421, 400}),
    "every address": (head(POST, "Host: 0.0.0.0:{port}", EMPTY), {421}),
    "no host": (head(POST, EMPTY), {400, 421}),
    "empty host": (head(POST, "Host:", EMPTY), {400, 421}),
    "two hosts": (head(POST, HOST, HOST, EMPTY), {400, 421}),
    "two hosts, ours first": (head(POST, HOST, "Host: evil.example", EMPTY), {400, 421}),
    "HTTP/1.0 without host": (head("POST {path}/x HTTP/1.0", EMPTY), {400, 421}),
    "origin": (head(POST, HOST, "Origin: http://127.0.0.1:{port}", EMPTY), {403}),
    "null origin": (head(POST, HOST, "Origin: null", EMPTY), {403}),
    "sec-fetch-site": (head(POST, HOST, "Sec-Fetch-Site: same-origin", EMPTY), {403}),
    "absolute form": (head("POST http://127.0.0.1:{port}{path}/x HTTP/1.1", HOST, EMPTY), {400}),
    "absolute form, foreign": (head("POST http://evil.example{path}/x HTTP/1.1", HOST, EMPTY), {400}),
    "connect": (head("CONNECT evil.example:443 HTTP/1.1", HOST), {400, 405}),
    "connect to us": (head("CONNECT 127.0.0.1:{port} HTTP/1.1", HOST), {400, 405}),
    "options of the server": (head("OPTIONS * HTTP/1.1", HOST), {400, 405}),
    "GET": (head("GET {path}/chat/completions HTTP/1.1", HOST), {405}),
    "PUT": (head("PUT {path}/chat/completions HTTP/1.1", HOST, EMPTY), {405}),
    "preflight": (head("OPTIONS {path}/x HTTP/1.1", HOST, "Access-Control-Request-Method: POST"), {405}),
    "a header line too long": (head(POST, HOST, f"X-Long: {'x' * (HEAD_LINE_BYTES + 1)}", EMPTY), {400}),
    "a target too long": (head(f"POST {{path}}/{'x' * (HEAD_LINE_BYTES + 1)} HTTP/1.1", HOST, EMPTY), {400, 414}),
    "too many headers": (head(POST, HOST, *[f"X-{i}: x" for i in range(HEADERS + 1)], EMPTY), {400}),
    "a length too large": (head(POST, HOST, f"Content-Length: {BODY_BYTES + 1}"), {413}),
    "a length that is none": (head(POST, HOST, "Content-Length: -1"), {400}),
    "two lengths": (head(POST, HOST, "Content-Length: 0", "Content-Length: 5"), {400}),
    "length and chunked": (head(POST, HOST, EMPTY, "Transfer-Encoding: chunked"), {400}),
    "no HTTP": (lambda *_: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400}),
}

PATHS = [
    "/",
    "//",
    "/v1/chat/completions",
    "/..%2f..%2f..%2fetc/passwd",
    "/..%2f{token}/v1/x",
    "/../../etc/passwd",
    "/..\\..\\x",
    "/C:/x",
    "/%00",
    "/frozen/seven-byte/case.toml",
    "/{token}",
    "/{token}/v1",
    "/{token}/v2/chat/completions",
    "/{token}/v1x/chat/completions",
    "/{token}%2fv1/chat/completions",
    "//{token}/v1/chat/completions",
    "/x/{token}/v1/chat/completions",
    "/?/{token}/v1/x",
]


async def one_request(request: Request) -> tuple[bytes, Trial]:
    """Send one request to a server with an open trial."""
    async with FixtureServer() as server:
        trial = server.open(a_case(an_exchange(b"BODY")))
        data, _ = await ask(server.port, request(server.port, trial.path))
    return data, trial


def status(data: bytes) -> int:
    """Read the status of a response, and assert that it is nothing but a refusal."""
    assert b"BODY" not in data
    assert b"access-control" not in data.lower()
    found = re.match(rb"HTTP/1\.[01] (\d{3}) ", data)
    assert found, data
    return int(found[1])


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """A request that no subject sends is refused, though its path is a trial's, and leaves no record."""
    request, wanted = REFUSED[name]
    data, trial = run_async(one_request(request))
    assert status(data) in wanted
    assert trial.plays == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_does_not_depend_on_the_path(name: str) -> None:
    """Guarding comes before the look-up: the answer tells no path that exists from one that does not."""
    request, _ = REFUSED[name]
    first, _trial = run_async(one_request(request))
    second, _trial = run_async(one_request(lambda port, path: request(port, f"/{'x' * len(path[1:-3])}/v1")))
    assert status(first) == status(second)


@pytest.mark.parametrize("path", PATHS)
def test_unknown_path(path: str) -> None:
    """A path that is no open trial's is 404, whatever it looks like, and leaves no record."""

    def request(port: int, own: str) -> bytes:
        return post(port, path.replace("{token}", own.split("/")[1]))

    data, trial = run_async(one_request(request))
    assert status(data) in (400, 404)
    assert trial.plays == []


def test_a_closed_trial() -> None:
    """The path of a trial that was closed is gone."""

    async def scene() -> tuple[bytes, Trial]:
        async with FixtureServer() as server:
            trial = server.open(a_case(an_exchange(b"BODY")))
            server.close(trial)
            return (await ask(server.port, post(server.port, f"{trial.path}/x")))[0], trial

    data, trial = run_async(scene())
    assert status(data) == 404
    assert trial.plays == []


def chunked(data: bytes) -> bytes:
    """Frame data as one chunk."""
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


@pytest.mark.parametrize("name", ["plain", "gzip bomb"])
def test_a_body_too_large_without_a_length(name: str) -> None:
    """A body whose length was not given is bounded where it is read, also one that unpacks to more."""
    data = b"x" * (BODY_BYTES + 1) if name == "plain" else zlib.compress(bytes(64 << 20), wbits=31)
    packed = ["Content-Encoding: gzip"] if name == "gzip bomb" else []
    spell = head(POST, HOST, "Transfer-Encoding: chunked", *packed)

    async def scene() -> Trial:
        async with FixtureServer() as server:
            trial = server.open(a_case(an_exchange(b"BODY")))
            async with Connection(server.port) as connection:
                try:
                    await connection.send(spell(server.port, trial.path) + chunked(data))
                    answer, _ = await connection.rest()
                    assert status(answer or b"HTTP/1.1 413 ") == 413
                except ConnectionError:  # refused before all of it was taken
                    pass
        return trial

    assert run_async(scene()).plays == []


def test_the_largest_body_is_served() -> None:
    """A body of exactly the limit is a subject's right."""
    data, trial = run_async(one_request(lambda port, path: post(port, f"{path}/x", b"x" * BODY_BYTES)))
    assert b"BODY" in data
    assert [len(play.request_body) for play in trial.plays] == [BODY_BYTES]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_our_own_names_are_served(host: str) -> None:
    """The loopback address and its name, with our port, are ours."""
    data, trial = run_async(one_request(lambda port, path: post(port, f"{path}/x", host=f"{host}:{port}")))
    assert b"BODY" in data
    assert trial.plays[-1].end == "played"


def test_bound_to_loopback_alone() -> None:
    """The socket is bound to 127.0.0.1: no other address of this machine reaches it, not even 127.0.0.2."""

    async def scene() -> list[str]:
        async with FixtureServer() as server:
            assert server._listener
            names = [item.getsockname() for item in server._listener.sockets]
            assert names == [("127.0.0.1", server.port)]
            reached = []
            for address in ("127.0.0.2", "::1"):
                try:
                    _, writer = await asyncio.open_connection(address, server.port)
                except OSError:
                    continue
                writer.close()
                reached.append(address)
            return reached

    assert run_async(scene()) == []


def test_a_path_cannot_be_guessed() -> None:
    """Every trial has a path of its own with 24 random bytes in it, which says nothing about the case."""

    async def scene() -> list[str]:
        async with FixtureServer() as server:
            return [server.open(a_case(an_exchange(b""))).path for _ in range(100)]

    paths = run_async(scene())
    assert len(set(paths)) == 100
    assert all(re.fullmatch(r"/[A-Za-z0-9_-]{32}/v1", path) for path in paths)


def test_the_socket_is_closed_behind_the_server() -> None:
    """A server that was left listens no more."""

    async def scene() -> int:
        async with FixtureServer() as server:
            return server.port

    port = run_async(scene())
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
