"""One question over HTTP/1.1: the only file of the client that does I/O.

asyncio moves bytes, h11 takes the HTTP framing away, `_Body` hands them out in logical reads,
and the sans-IO `Reader` judges each read before the next one begins. `Exchange` does so as far as
it is asked to, `stream` and `ask` to the outcome.

A logical read returns min(cap, bytes left in the current HTTP chunk) and waits until that many
have arrived, so that the number of reads depends on the body, its chunks and the cap, and never
on how TCP cut it. Where the end or a time-out comes with bytes in hand, the read returns those
and the next one meets the end. aiohttp's client, http.client and asyncio.StreamReader each lose
bytes or hide a short body at a cut, hence `asyncio.Protocol` with h11.
"""

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from .contract import Contract
from .dialects import find
from .history import Message
from .outcomes import DEADLINE, READ_TIMEOUT, Outcome
from .reader import ContractJudge, Judge, OnPreview, Reader, Settled

# Received but not yet read body bytes beyond which the socket is not read, in bytes.
_HIGH_WATER_BYTES = 256 * 1024

_MODEL = "fixture"


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The client's own settings for one exchange."""

    read_cap_bytes: int = 64 * 1024
    connect_timeout_ms: int = 1000
    read_timeout_ms: int = 1000


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One exchange, whole: how the turn ended and what it took.

    `transport_end` is `left` (the turn was settled first), `eof`, `short-body`, `reset`,
    `bad-framing`, `timeout` or `refused` (no HTTP answer). `reads` counts logical reads,
    `consumed_bytes` what they returned.
    """

    turn: Settled
    status: int | None
    reads: int
    consumed_bytes: int
    consumed_sha256: str
    transport_end: str


class Exchange:
    """One question and its response, which is read when it is asked for and no further.

    Every fault of the network is an outcome of the judge's. `close` has to be called in the end.
    """

    def __init__(self, judge: Judge, conditions: Conditions) -> None:
        self._judge, self._conditions = judge, conditions
        self._body = _Body(conditions.read_timeout_ms / 1000)
        self._status: int | None = None

    async def open(self, base_url: str, path: str, history: Iterable[Message], question: str, deadline_ms: int) -> None:
        """Post the question at a path below the base URL, and have the response head judged.

        Raises ValueError for a URL that is not `http://host[:port]/...`.
        """
        host, port, target = _address(base_url, path)
        await self._body.connect(host, port, self._conditions.connect_timeout_ms / 1000)
        self._body.send(_request(f"{host}:{port}", target, history, question))
        head = await self._body.head()
        if head is None:
            self._end()
            return
        self._status = head.status_code
        self._judge.head(head.status_code, _header(head, b"content-type"), _header(head, b"content-encoding"))
        self._body.start_deadline(deadline_ms / 1000)

    async def read(self, until_bytes: int | None = None) -> None:
        """Make logical reads while the turn is not settled, and fewer body bytes than that were consumed."""
        while self._judge.settled is None and (until_bytes is None or self.consumed_bytes < until_bytes):
            data = await self._body.read(self._conditions.read_cap_bytes)
            if data:
                self._judge.feed(data)
            else:
                self._end()

    @property
    def reads(self) -> int:
        """The logical reads so far."""
        return self._body.reads

    @property
    def consumed_bytes(self) -> int:
        """What they returned."""
        return self._body.consumed_bytes

    def answer(self, turn: Settled) -> Answer:
        """Give the exchange as it is now, with how its turn ended."""
        return Answer(
            turn=turn,
            status=self._status,
            reads=self.reads,
            consumed_bytes=self.consumed_bytes,
            consumed_sha256=self._body.consumed_sha256.hexdigest(),
            transport_end=self._body.met_end or "left",
        )

    def close(self) -> None:
        """Close the connection; what has not been read is dropped."""
        self._body.close()

    def _end(self) -> None:
        """Judge the end of the bytes: a time-out is the client's own, the rest the transport's."""
        if self._body.timed_out:
            self._judge.stop(*self._body.timed_out)
        else:
            self._judge.end(self._body.met_end or "eof", is_framed=self._body.is_framed)


async def ask(
    base_url: str,
    history: Iterable[Message],
    question: str,
    *,
    contract: Contract,
    dialect: str,
    conditions: Conditions | None = None,
    on_preview: OnPreview | None = None,
) -> Answer:
    """Post the question below the base URL, at the dialect's path, and read the stream to its outcome.

    Every fault of the network is an outcome. Raises ValueError for a URL that is not
    `http://host[:port]/...` and ContractError for a dialect that the contract does not have.
    A cancelled task closes the connection.
    """
    return await stream(Reader(contract, dialect, on_preview), base_url, history, question, conditions)


async def stream(
    judge: ContractJudge,
    base_url: str,
    history: Iterable[Message],
    question: str,
    conditions: Conditions | None = None,
) -> Answer:
    """Post the question as `ask` does, and feed the response to a judge of the caller's, for instance an attempt."""
    exchange = Exchange(judge, conditions or Conditions())
    deadline_ms = judge.contract.limits.deadline_ms
    try:
        await exchange.open(base_url, find(judge.dialect).path, history, question, deadline_ms)
        await exchange.read()
        assert judge.settled
        return exchange.answer(judge.settled)
    finally:
        exchange.close()


def _address(base_url: str, path: str) -> tuple[str, int, str]:
    url = urlsplit(base_url)
    if url.scheme != "http" or not url.hostname:
        raise ValueError(f"base URL {base_url!r}: needs http://host[:port]/path")
    return url.hostname, url.port or 80, f"{url.path.rstrip('/')}{path}"


def _request(host: str, target: str, history: Iterable[Message], question: str) -> list[h11.Event]:
    messages = [*history, Message(role="user", content=question)]
    content = json.dumps({"model": _MODEL, "stream": True, "messages": messages}).encode()
    headers = {
        "Host": host,
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
    }
    request = h11.Request(method="POST", target=target, headers=list(headers.items()))
    return [request, h11.Data(data=content), h11.EndOfMessage()]


def _header(head: h11.Response, name: bytes) -> str | None:
    values = [value.decode("latin-1") for key, value in head.headers if key == name]
    return ", ".join(values) if values else None


class _Body(asyncio.Protocol):
    """One connection: what has arrived, in order, and how it ended."""

    def __init__(self, read_timeout_s: float) -> None:
        self._http = h11.Connection(our_role=h11.CLIENT)
        self._read_timeout_s = read_timeout_s
        self._deadline: float | None = None
        self._transport: asyncio.Transport | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._paused = False
        self._head: h11.Response | None = None
        self._buffer = bytearray()
        self._arrived_bytes = 0
        self._chunk_ends: deque[int] = deque()  # offsets in the body, not yet read past
        self._end: str | None = None  # how the bytes ended, known once the last one is here
        self.timed_out: tuple[Outcome, str] | None = None
        self.met_end: str | None = None  # the end, once a read has met it
        self.reads = 0
        self.consumed_bytes = 0
        self.consumed_sha256 = hashlib.sha256()

    # -- what the exchange asks for

    async def connect(self, host: str, port: int, timeout_s: float) -> None:
        """Open the connection; a failure is recorded as the end `refused`."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.get_running_loop().create_connection(lambda: self, host, port)
        except (OSError, TimeoutError):
            self._end = "refused"

    def send(self, events: list[h11.Event]) -> None:
        """Send the request, if there is a connection to send it on."""
        if self._transport and self._end is None:
            for event in events:
                self._transport.write(self._http.send(event) or b"")

    async def head(self) -> h11.Response | None:
        """Wait for the response head; None where none came."""
        while self._head is None and self._end is None:
            await self._wait()
        if self._head is None:
            self.met_end = "timeout" if self.timed_out else "refused"
        return self._head

    def start_deadline(self, deadline_s: float) -> None:
        """Let every wait from here on end at the deadline."""
        self._deadline = asyncio.get_running_loop().time() + deadline_s

    async def read(self, cap_bytes: int) -> bytes:
        """Make one logical read; empty where it met the end or ran out of time."""
        self.reads += 1
        while not self._is_late():
            size = self._ready(cap_bytes)
            if size:
                return self._take(size)
            if self._end is not None:
                break
            await self._wait()
        self.met_end = self._end
        return b""

    @property
    def is_framed(self) -> bool:
        """Say whether HTTP itself delimits the body, and not the closing of the connection.

        RFC 9112 section 6.3: by chunks or a length.
        """
        names = {name for name, _ in self._head.headers} if self._head else set()
        return bool(names & {b"transfer-encoding", b"content-length"})

    def close(self) -> None:
        """Close the connection; what has not been read is dropped."""
        if self._transport:
            self._transport.abort()

    # -- logical reads

    def _ready(self, cap_bytes: int) -> int:
        """Give the size of the read that can be served now, 0 if it has to wait."""
        have = len(self._buffer)
        if self._chunk_ends:
            return min(cap_bytes, self._chunk_ends[0] - self.consumed_bytes)
        if have >= cap_bytes:
            return cap_bytes
        return have if self._end is not None else 0

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self.consumed_bytes += size
        self.consumed_sha256.update(data)
        if self._chunk_ends and self._chunk_ends[0] == self.consumed_bytes:
            self._chunk_ends.popleft()
        if len(self._buffer) <= _HIGH_WATER_BYTES // 2:
            self._resume()
        return data

    def _resume(self) -> None:
        if self._paused and self._transport:
            self._paused = False
            self._transport.resume_reading()

    # -- waiting

    def _is_late(self) -> bool:
        """Say whether the deadline passed before this read began, and end if so."""
        if self._deadline is None or self._end == "timeout":
            return False
        late = asyncio.get_running_loop().time() >= self._deadline
        if late:
            self._buffer.clear()
            self._chunk_ends.clear()
            self._end, self.timed_out = "timeout", (DEADLINE, "the processing deadline passed")
        return late

    async def _wait(self) -> None:
        """Wait for anything to arrive, at most for the read time-out and the deadline."""
        self._resume()  # a cap above the high-water mark needs more than is kept in store
        loop = asyncio.get_running_loop()
        silence_ends = loop.time() + self._read_timeout_s
        self._arrival = loop.create_future()
        until = silence_ends if self._deadline is None else min(silence_ends, self._deadline)
        try:
            async with asyncio.timeout_at(until):
                await self._arrival
        except TimeoutError:
            why = f"no byte for {self._read_timeout_s * 1000:.0f} ms"
            self._end, self.timed_out = "timeout", (READ_TIMEOUT, why)
            if until != silence_ends:
                self.timed_out = (DEADLINE, "the processing deadline passed")
        finally:
            self._arrival = None

    def _wake(self) -> None:
        if self._arrival and not self._arrival.done():
            self._arrival.set_result(None)

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._receive(data)
        if len(self._buffer) > _HIGH_WATER_BYTES and self._transport and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._receive(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish("reset" if isinstance(exc, OSError) else "short-body")

    def _receive(self, data: bytes) -> None:
        """Take the HTTP framing away; an empty read is the FIN."""
        if self._end is None:
            try:
                self._http.receive_data(data)
                self._pump()
            except h11.RemoteProtocolError:
                self._finish("bad-framing" if data else "short-body")
        self._wake()

    def _pump(self) -> None:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Response):
                self._head = event
            elif isinstance(event, h11.Data):
                self._buffer += event.data
                self._arrived_bytes += len(event.data)
                if event.chunk_end:
                    self._chunk_ends.append(self._arrived_bytes)
            elif isinstance(event, h11.EndOfMessage):
                self._finish("eof")
                return
            elif not isinstance(event, h11.InformationalResponse):
                return

    def _finish(self, end: str) -> None:
        if self._end is None:
            self._end = end
        self._wake()
