"""Makes binary frames whose checksums hold: chance alone never gets past two of them.

    https://smithy.io/2.0/aws/amazon-eventstream.html

`mend` leaves the bytes where they are and writes both checksums anew; `build` writes frames from lines of
`event/messageStart {"role":"assistant"}`, and `spell` gives such lines for frames.
"""

import zlib

_PRELUDE_BYTES = 12
_FRAME_BYTES = 16  # without headers and payload
_STRING = 7


def mend(body: bytes) -> bytes:
    """Write the checksums of every frame anew; a length that cannot be is left as it stands."""
    mended = bytearray(body)
    at = 0
    while len(body) - at >= _PRELUDE_BYTES:
        mended[at + 8 : at + 12] = _crc(mended[at : at + 8])
        end = at + int.from_bytes(body[at : at + 4], "big")
        if not at + _FRAME_BYTES <= end <= len(body):
            break
        mended[end - 4 : end] = _crc(mended[at : end - 4])
        at = end
    return bytes(mended)


def build(lines: bytes) -> bytes:
    """Make one frame of each line: kind, `/`, name, one space, payload."""
    return b"".join(_frame(line) for line in lines.split(b"\n") if line)


def _frame(line: bytes) -> bytes:
    kind, _, payload = line.partition(b" ")
    kind, _, name = kind.partition(b"/")
    named_by = b":error-code" if kind == b"error" else b":%s-type" % kind[:100]
    headers = _header(b":message-type", kind) + _header(named_by, name)
    prelude = (_FRAME_BYTES + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    frame = prelude + _crc(prelude) + headers + payload
    return frame + _crc(frame)


def _header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([_STRING]) + len(value).to_bytes(2, "big") + value


def _crc(data: bytes | bytearray) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")


def spell(events: list[tuple[str, bytes]]) -> bytes:
    """Spell events as the lines that `build` reads; a payload's line ends are white space of its JSON."""
    return b"\n".join(name.encode() + b" " + data.replace(b"\n", b" ") for name, data in events)
