"""One adapter for each way from bytes to an answer, and the floors below which nobody can fall.

Ours checks everything that the contract asks for. The others check nothing: they frame, parse and join
`choices[0].delta.content` until `[DONE]`. This file knows no clock.
"""

import codecs
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from client.reader import Reader

from .contract import CONTRACT, DIALECT
from .inputs import Stream
from .peers import OURS, Pieces, RefusedError, httpx_sse_events, openai_events

Read = Callable[[Pieces], str]

BASELINE = "httpx-sse + json.loads"


def endmark() -> Read:
    """Make the strict reader: framing, strict JSON, dialect, turn, every limit."""

    def read(pieces: Pieces) -> str:
        reader = Reader(CONTRACT, DIALECT)
        settled = reader.head(200, "text/event-stream")
        for piece in pieces:
            settled = reader.feed(piece)
            if settled:
                break
        settled = settled or reader.end()
        if settled.answer is None:
            raise RefusedError(f"{settled.outcome}: {settled.why}")
        return settled.answer

    return read


def lenient(make: Callable[[], Callable[[Pieces], Iterator[Any]]], loads: Callable[[str], Any]) -> Read:
    """Make the loop of a hundred tutorials, over these events and this parser."""
    events = make()

    def read(pieces: Pieces) -> str:
        parts: list[str] = []
        for event in events(pieces):
            if event.data == "[DONE]":
                break
            content = loads(event.data)["choices"][0]["delta"].get("content")
            if content:
                parts.append(content)
        return "".join(parts)

    return read


def _httpx_sse_jiter() -> Read:
    from jiter import from_json

    return lenient(httpx_sse_events, lambda data: from_json(data.encode()))


READERS: dict[str, Callable[[], Read]] = {
    OURS: endmark,
    BASELINE: lambda: lenient(httpx_sse_events, json.loads),
    "httpx-sse + jiter": _httpx_sse_jiter,
    "openai's decoder + json.loads": lambda: lenient(openai_events, json.loads),
}

# A floor is given the stream and its pieces, and gives the work to be timed.
Floor = Callable[[Stream, Pieces], Callable[[], object]]


def _split(_: Stream, pieces: Pieces) -> Callable[[], object]:
    return lambda: [piece.split(b"\n\n") for piece in pieces]


def _decode(_: Stream, pieces: Pieces) -> Callable[[], object]:
    def work() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        for piece in pieces:
            decoder.decode(piece)

    return work


def _sha256(_: Stream, pieces: Pieces) -> Callable[[], object]:
    def work() -> str:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()

    return work


def _jiter(stream: Stream, _: Pieces) -> Callable[[], object]:
    from jiter import from_json

    texts = [data.encode() for data in stream.data if data != "[DONE]"]
    return lambda: [from_json(text) for text in texts]


FRAMER_FLOORS: dict[str, Floor] = {
    "bytes.split alone": _split,
    "UTF-8 decoding alone": _decode,
    "sha256 alone": _sha256,
}
READER_FLOORS: dict[str, Floor] = {"jiter alone, the data already cut": _jiter}
