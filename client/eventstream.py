"""`eventstream`: the binary frames of AWS, both CRCs checked, as incremental as the text framings.

    https://smithy.io/2.0/aws/amazon-eventstream.html
        message  = total_length(4) headers_length(4) prelude_crc(4) *header payload message_crc(4)
        header   = name_length(1) name value_type(1) value

All integers are big-endian and both checksums are CRC-32. A frame is judged in two steps: its
prelude as soon as it is whole, so that a wrong length is never waited for, and the rest with its
last byte. What it keeps between two pieces is the unfinished frame.
"""

import zlib
from struct import Struct

from .contract import Contract
from .events import Event, FaultedError, Item
from .outcomes import INVALID_UTF8, LIMIT, PROTOCOL, Fault
from .units import utf16_units

_PRELUDE = Struct(">III")
_CRC = Struct(">I")
_OVERHEAD_BYTES = _PRELUDE.size + _CRC.size

# The bounds of the specification, in bytes.
_HEADERS_BYTES = 128 * 1024
_PAYLOAD_BYTES = 24 * 1024 * 1024

_BYTES, _TEXT = 6, 7
# Header value types of a fixed size: true, false, int8, int16, int32, int64, timestamp, UUID.
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}

Headers = dict[str, object]


class EventStreamFramer:
    """Cuts one body into frames."""

    def __init__(self, contract: Contract) -> None:
        self._limits = contract.limits
        self._buffer = bytearray()
        self._frame_bytes: int | None = None  # of the frame whose prelude has been judged
        self._input_bytes = 0
        self.events = 0
        self._faulted = False

    def feed(self, data: bytes) -> list[Item]:
        """Give the events that these bytes complete, and last the fault that they hold, if any."""
        if self._faulted:
            raise FaultedError
        room = self._limits.input_utf16 - self._input_bytes
        self._input_bytes += len(data)
        self._buffer += data[:room]
        out: list[Item] = []
        fault = self._frames(out)
        if fault is None and len(data) > room:
            fault = Fault(outcome=LIMIT, why=f"input over {self._limits.input_utf16} bytes")
        if fault:
            self._faulted = True
            out.append(fault)
        return out

    def flush(self) -> list[Item]:
        """Give nothing: a frame without its checksum is no frame."""
        return []

    def _frames(self, out: list[Item]) -> Fault | None:
        while True:
            if self._frame_bytes is None:
                if len(self._buffer) < _PRELUDE.size:
                    return None
                fault = self._prelude()
                if fault:
                    return fault
            if self._frame_bytes is None or len(self._buffer) < self._frame_bytes:
                return None
            frame = bytes(self._buffer[: self._frame_bytes])
            del self._buffer[: self._frame_bytes]
            self._frame_bytes = None
            event = self._event(frame)
            if isinstance(event, Fault):
                return event
            out.append(event)

    def _prelude(self) -> Fault | None:
        total, headers, crc = _PRELUDE.unpack_from(self._buffer)
        if zlib.crc32(self._buffer[:8]) != crc:
            return _protocol("the prelude's checksum is wrong")
        payload = total - headers - _OVERHEAD_BYTES
        if total < _OVERHEAD_BYTES or payload < 0:
            return _protocol("lengths that do not fit into one another")
        if headers > _HEADERS_BYTES or payload > _PAYLOAD_BYTES:
            return Fault(outcome=LIMIT, why="a frame beyond the sizes of the specification")
        self._frame_bytes = total
        return None

    def _event(self, frame: bytes) -> Event | Fault:
        if zlib.crc32(frame[: -_CRC.size]) != _CRC.unpack_from(frame, len(frame) - _CRC.size)[0]:
            return _protocol("the message's checksum is wrong")
        headers_end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
        headers = _headers(frame[_PRELUDE.size : headers_end])
        if headers is None:
            return _protocol("malformed headers")
        payload = frame[headers_end : -_CRC.size]
        try:
            text = payload.decode()
        except UnicodeDecodeError as error:
            return Fault(outcome=INVALID_UTF8, why=f"payload: {error.reason}")
        if utf16_units(text) > self._limits.event_utf16:
            return Fault(outcome=LIMIT, why=f"event over {self._limits.event_utf16} UTF-16 units")
        kind = _type(headers)
        if kind is None:
            return _protocol("no message type that is known")
        if self.events == self._limits.events:
            return Fault(outcome=LIMIT, why=f"more than {self._limits.events} events")
        self.events += 1
        return Event(kind, payload)


def _headers(block: bytes) -> Headers | None:
    """Read the headers of a frame; None where they are malformed or a name occurs twice."""
    found: Headers = {}
    at = 0
    while at < len(block):
        name_end = at + 1 + block[at]
        name, kind = block[at + 1 : name_end], block[name_end : name_end + 1]
        if not name or not kind:
            return None
        value_at, size = name_end + 1, _FIXED.get(kind[0])
        if size is None:
            if kind[0] not in (_BYTES, _TEXT) or value_at + 2 > len(block):
                return None
            size = int.from_bytes(block[value_at : value_at + 2], "big")
            value_at += 2
        value = block[value_at : value_at + size]
        at = value_at + size
        try:
            key = name.decode()
            known = value.decode() if kind[0] == _TEXT else value
        except UnicodeDecodeError:
            return None
        if len(value) < size or key in found:
            return None
        found[key] = known
    return found


def _type(headers: Headers) -> str | None:
    """Name an event by its headers: `event/messageStop`, `exception/...`, `error/...`."""
    kind = headers.get(":message-type")
    if kind == "error":
        code = headers.get(":error-code", "")
        return f"error/{code if isinstance(code, str) else ''}"
    if kind not in ("event", "exception"):
        return None
    name = headers.get(f":{kind}-type")
    return f"{kind}/{name}" if isinstance(name, str) else None


def _protocol(why: str) -> Fault:
    return Fault(outcome=PROTOCOL, why=why)
