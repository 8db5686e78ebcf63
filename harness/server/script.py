"""From a case's exchange to the bytes on the wire: pure, and the same on every machine.

The response head is constant (no Date, no Server), so that it can be hashed. Every write knows
how many body bytes are out once it is, which is what "delivered" is measured by.

    https://www.rfc-editor.org/rfc/rfc9112#section-7.1
        chunked-body = *chunk last-chunk trailer-section CRLF
        chunk        = chunk-size [ chunk-ext ] CRLF chunk-data CRLF
"""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from ..cases import Exchange, Step

# What `short-length` promises and never sends.
_MISSING_BYTES = 64


@dataclass(frozen=True, kw_only=True)
class Write:
    """Bytes to write, and how many bytes of the body are out after them."""

    wire: bytes
    body_bytes: int


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Silence, in milliseconds."""

    ms: int


@dataclass(frozen=True, kw_only=True)
class Script:
    """One exchange as the server plays it: the head, the steps, and the ending."""

    head: bytes
    steps: tuple[Write | Wait, ...]
    ending: str


def script(exchange: Exchange) -> Script:
    """Work out the wire bytes of an exchange."""
    return Script(head=_head(exchange), steps=tuple(_steps(exchange)), ending=exchange.ending)


def _head(exchange: Exchange) -> bytes:
    try:
        phrase = HTTPStatus(exchange.status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {exchange.status} {phrase}", f"Content-Type: {exchange.content_type}", _framing(exchange)]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii")


def _framing(exchange: Exchange) -> str:
    if exchange.framing == "chunked":
        return "Transfer-Encoding: chunked"
    if exchange.framing == "close":
        return "Connection: close"
    promised = {"short-length": _MISSING_BYTES, "fin": 1}.get(exchange.ending, 0)
    return f"Content-Length: {len(exchange.body) + promised}"


def _steps(exchange: Exchange) -> Iterator[Write | Wait]:
    body_bytes = 0
    sends = exchange.script
    if not any(step.send_bytes for step in sends):
        sends = (*sends, Step(send_bytes=len(exchange.body)))
    for step in sends:
        if step.wait_ms is not None:
            yield Wait(ms=step.wait_ms)
        elif step.send_bytes:
            end = body_bytes + step.send_bytes
            yield Write(wire=_wire(exchange, body_bytes, end), body_bytes=end)
            body_bytes = end
    last = _last(exchange)
    if last:
        yield Write(wire=last, body_bytes=body_bytes)


def _wire(exchange: Exchange, start: int, end: int) -> bytes:
    """Give the wire bytes that carry body[start:end]."""
    if exchange.framing != "chunked":
        return exchange.body[start:end]
    wire = bytearray()
    chunk_start = 0
    for chunk_end in (*exchange.chunk_ends, len(exchange.body)):
        low, high = max(start, chunk_start), min(end, chunk_end)
        if low < high:
            if low == chunk_start:
                wire += b"%x\r\n" % (chunk_end - chunk_start)
            wire += exchange.body[low:high]
            if high == chunk_end:
                wire += b"\r\n"
        chunk_start = chunk_end
    return bytes(wire)


def _last(exchange: Exchange) -> bytes:
    """Give the bytes behind the body: a last chunk, or one that is none."""
    if exchange.ending == "complete" and exchange.framing == "chunked":
        return b"0\r\n\r\n"
    return b"no chunk size\r\n" if exchange.ending == "bad-chunk" else b""
