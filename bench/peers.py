"""One adapter for each framer that is compared: pieces of bytes in, the data of every event out.

A peer without an interface for bytes is driven through the object that it reads from, and that object does
no more than it must: what is timed is the peer. Each is made by a factory, which imports it, so that this
file can be read where no peer is installed. It knows no clock and no answer.
"""

import asyncio
import codecs
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from client.framer import SseFramer
from client.outcomes import Fault

from .contract import CONTRACT

Pieces = Sequence[bytes]
# The data of events: as text, and from our own framer as the UTF-8 that it has checked.
Data = list[str] | list[bytes]
Frame = Callable[[Pieces], Data]


def texts(data: Data) -> list[str]:
    """Give the data of events as text, to be compared outside of any timing."""
    return [part if isinstance(part, str) else part.decode() for part in data]


OURS = "endmark"
BASELINE = "httpx-sse"

_EVENT_STREAM = "text/event-stream"
_URL = "http://127.0.0.1/"


class RefusedError(Exception):
    """Our own framer or reader refused what it was fed."""


class _EndedError(Exception):
    """Raised from a peer's own callback, where it would wait and connect again."""


def _end() -> NoReturn:
    raise _EndedError


def endmark() -> Frame:
    """Make the framer of this repository, all of its limits and checks included."""

    def frame(pieces: Pieces) -> list[bytes]:
        framer = SseFramer(CONTRACT)
        data: list[bytes] = []
        for piece in pieces:
            for item in framer.feed(piece):
                if isinstance(item, Fault):
                    raise RefusedError(item.why)
                data.append(item if isinstance(item, bytes) else item.data)
        return data

    return frame


class _TextResponse:
    """What httpx-sse reads from: headers, and text decoded in pieces as httpx decodes it."""

    headers = {"content-type": _EVENT_STREAM}  # noqa: RUF012 - read only

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def iter_text(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for piece in self._pieces:
            text = decoder.decode(piece)
            if text:
                yield text
        text = decoder.decode(b"", True)
        if text:
            yield text


def httpx_sse_events() -> Callable[[Pieces], Iterator[Any]]:
    """Make what gives httpx-sse's events one by one."""
    from httpx_sse import EventSource

    def events(pieces: Pieces) -> Iterator[Any]:
        source: Any = EventSource(_TextResponse(pieces))
        return iter(source.iter_sse())

    return events


def openai_events() -> Callable[[Pieces], Iterator[Any]]:
    """Make what gives the events of the openai SDK's decoder one by one."""
    from openai._streaming import SSEDecoder

    return lambda pieces: iter(SSEDecoder().iter_bytes(iter(pieces)))


def anthropic_events() -> Callable[[Pieces], Iterator[Any]]:
    """Make what gives the events of the anthropic SDK's decoder one by one."""
    from anthropic._streaming import SSEDecoder

    return lambda pieces: iter(SSEDecoder().iter_bytes(iter(pieces)))


def sseclient_events() -> Callable[[Pieces], Iterator[Any]]:
    """Make what gives sseclient-py's events one by one."""
    from sseclient import SSEClient

    return lambda pieces: iter(SSEClient(pieces).events())


def from_events(make: Callable[[], Callable[[Pieces], Iterator[Any]]]) -> Callable[[], Frame]:
    """Turn what gives events one by one into what gives their data."""

    def factory() -> Frame:
        events = make()
        return lambda pieces: [event.data for event in events(pieces)]

    return factory


class _Raw:
    """What a requests.Response reads from: pieces as they come, whatever size it asks for."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def stream(self, amount: int, decode_content: bool) -> Iterator[bytes]:  # noqa: ARG002 - urllib3's signature
        return iter(self._pieces)

    def close(self) -> None:
        """There is nothing to close."""


def requests_sse() -> Frame:
    """Make requests-sse, over a real requests.Response; its own callback ends it at the end of the body."""
    from requests import Response
    from requests_sse import EventSource

    class Session:
        def __init__(self, pieces: Pieces) -> None:
            self._pieces = pieces

        def request(self, **_: object) -> Response:
            response: Any = Response()
            response.status_code, response.url, response.raw = 200, _URL, _Raw(self._pieces)
            response.headers["Content-Type"] = _EVENT_STREAM
            return response

    def frame(pieces: Pieces) -> list[str]:
        data: list[str] = []
        session: Any = Session(pieces)
        source = EventSource(_URL, session=session, on_error=_end)
        source.connect()
        try:
            data.extend(event.data for event in source)
        except _EndedError:
            return data
        raise AssertionError("requests-sse ended without its callback")

    return frame


def aiohttp_sse_client2() -> Frame:
    """Make aiohttp-sse-client2, over a real aiohttp.StreamReader that holds all pieces from the start."""
    from aiohttp import StreamReader
    from aiohttp.base_protocol import BaseProtocol
    from aiohttp_sse_client2.client import EventSource
    from yarl import URL

    loop = asyncio.new_event_loop()
    url = URL(_URL)

    class Protocol(BaseProtocol):
        """Nothing is paused: there is no transport, and all bytes are there."""

        def pause_reading(self) -> None:
            """Go on."""

        def resume_reading(self, *_: object, **__: object) -> None:
            """Go on."""

    class Session:
        """Session and response in one."""

        status, content_type, real_url = 200, _EVENT_STREAM, url

        def __init__(self, pieces: Pieces) -> None:
            self.content = StreamReader(Protocol(loop), 2**18, loop=loop)  # the limit of aiohttp's client
            for piece in pieces:
                self.content.feed_data(piece)
            self.content.feed_eof()

        async def request(self, *_: object, **__: object) -> "Session":
            return self

    async def read(pieces: Pieces, data: list[str]) -> None:
        session: Any = Session(pieces)
        source = EventSource(_URL, session=session, on_error=_end)
        await source.connect()
        async for event in source:
            data.append(event.data)  # noqa: PERF401 - what came before the end has to be kept

    def frame(pieces: Pieces) -> list[str]:
        data: list[str] = []
        try:
            loop.run_until_complete(read(pieces, data))
        except _EndedError:
            return data
        raise AssertionError("aiohttp-sse-client2 ended without its callback")

    return frame


FRAMERS: dict[str, Callable[[], Frame]] = {
    OURS: endmark,
    BASELINE: from_events(httpx_sse_events),
    "openai": from_events(openai_events),
    "anthropic": from_events(anthropic_events),
    "sseclient-py": from_events(sseclient_events),
    "aiohttp-sse-client2": aiohttp_sse_client2,
    "requests-sse": requests_sse,
}
