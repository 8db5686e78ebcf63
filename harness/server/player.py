"""Plays a script on one connection, through the transport, and records what really went out.

The endings are those a polite server never sends, so nothing here goes through aiohttp's own
response: bytes are written as they are. A client that leaves cancels the play at once, which is
why a stall holds nobody up. What the record says was sent was given to the transport; only a reset
waits until the peer's kernel has it.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from dataclasses import dataclass, field

from aiohttp.http import StreamWriter
from aiohttp.web import BaseRequest

from .script import Script, Wait

# Bounds of waits, in seconds.
_STALL_S = 30.0
_HAND_OVER_S = 2.0
_HAND_OVER_STEP_S = 0.001


@dataclass
class Play:
    """What the server did with one request: the request as it came, and how far its play went."""

    headers: list[tuple[str, str]]
    request_body: bytes
    sent_bytes: int = 0
    end: str = "failed"  # until it is known: played, client-left
    over: asyncio.Event = field(default_factory=asyncio.Event)


async def play(script: Script, request: BaseRequest, record: Play) -> None:
    """Play the whole script, its ending included; a CancelledError means that the client left."""
    try:
        await _steps(script, request, record)
        await _ending(script.ending, request)
        record.end = "played"
    except (asyncio.CancelledError, ConnectionError):
        record.end = "client-left"
        raise
    except TimeoutError:  # the peer does not take the bytes: an error page behind them would be body
        if request.transport:
            request.transport.abort()
    finally:
        record.over.set()


async def _steps(script: Script, request: BaseRequest, record: Play) -> None:
    writer = StreamWriter(request.protocol, asyncio.get_running_loop())
    await writer.write(script.head)
    for step in script.steps:
        if isinstance(step, Wait):
            await asyncio.sleep(step.ms / 1000)
        else:
            await writer.write(step.wire)
            record.sent_bytes = step.body_bytes


async def _ending(ending: str, request: BaseRequest) -> None:
    """Bring about the ending that closing the connection would not."""
    if ending == "stall":
        await asyncio.sleep(_STALL_S)
    elif ending == "reset":
        await _reset(request)


async def _reset(request: BaseRequest) -> None:
    """Send a RST once the peer's kernel holds every byte, so that the cut is exact.

    SO_LINGER with time 0 makes close() send the RST; SIOCOUTQ counts what is not yet acknowledged.
    """
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client left before the reset")
    peer = transport.get_extra_info("socket")
    async with asyncio.timeout(_HAND_OVER_S):
        while transport.get_write_buffer_size() or _unacknowledged_bytes(peer):
            await asyncio.sleep(_HAND_OVER_STEP_S)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _unacknowledged_bytes(peer: socket.socket) -> int:
    answer = fcntl.ioctl(peer.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    size: int = struct.unpack("i", answer)[0]
    return size
