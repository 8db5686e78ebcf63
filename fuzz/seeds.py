"""What fuzzing begins with: every body of every case, the vectors, and the words that they are made of.

Each seed gets one of a few heads, so that cut, limited and mended readings are there from the beginning.
Read from `cases/` and `tests/vectors/`; nothing here is an expectation.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from client import load
from tests.provider_streams import provider_streams
from tests.witnesses import Item, items_by_auditor

from . import archives, framings, turns
from .frames import spell

HOME = Path(__file__).resolve().parents[1]
VECTORS = HOME / "tests" / "vectors"

# A longer body takes longer to read byte by byte and says nothing more.
MOST_BYTES = 3000

_CONTRACT = load("strict/1")


class Body(NamedTuple):
    """One body and the dialect that it is in."""

    dialect: str
    body: bytes

    @property
    def framing(self) -> str:
        return _CONTRACT.dialects[self.dialect].framing

    def events(self) -> list[Item]:
        """Give its events, as the auditor reads them."""
        return [item for item in items_by_auditor(self.framing, self.body, _CONTRACT) if item.data is not None]


@cache
def bodies() -> list[Body]:
    """Give every body that is not too long, of cases and of vectors, each once."""
    found: dict[Body, None] = {}
    for case in sorted((HOME / "cases").glob("*/*/case.toml")):
        dialect = tomllib.loads(case.read_text(encoding="utf-8"))["dialect"]
        for path in sorted(case.parent.glob("body.*")):
            found[Body(dialect, path.read_bytes())] = None
    for path, dialect in provider_streams().items():
        found[Body(dialect, path.read_bytes())] = None
    return [body for body in found if len(body.body) <= MOST_BYTES]


def _headed(heads: tuple[bytes, ...], inputs: Iterable[bytes]) -> Iterator[bytes]:
    """Put a head before each input, one after another."""
    yield from (head + data for head, data in zip(cycle(heads), inputs, strict=False))


def found_before(target: str) -> list[bytes]:
    """Give what fuzzing has found of a target and is kept as a vector."""
    return [path.read_bytes() for path in sorted((VECTORS / "fuzz" / target).glob("*"))]


def of_framing(framing: str) -> Iterator[bytes]:
    """Give the seeds of a framing: its bodies, and the vectors of text framings."""
    tables = tomllib.loads((VECTORS / "framing.toml").read_text(encoding="utf-8"))["vector"]
    vectors = [bytes.fromhex(t["body_hex"]) if "body_hex" in t else t["body"].encode() for t in tables]
    own = [body.body for body in bodies() if body.framing == framing]
    # Plain; in pieces of one byte and three, replacing, dispatching at the end; limits that are felt; mended.
    plain, strange = bytes(framings.HEAD_BYTES), bytes([0xFF, 0xFF, 0, 0, 0, 0, 1, 3, 0])
    tight, mended = bytes([0, 0, 60, 60, 200, 3, 7, 0, 0]), bytes([0, 0, 0, 0, 0, 0, 2, 1, 1])
    texts = vectors if framing != "eventstream" else []
    yield from _headed((plain, strange, tight, mended), own + texts)


def of_json() -> Iterator[bytes]:
    """Give the seeds of `json`: the spelling vectors, and one event's data of each shape that occurs."""
    spelling = json.loads((VECTORS / "json-spelling-53.json").read_text(encoding="utf-8"))
    for row in (*spelling["refused"], *spelling["accepted"]):
        yield b"\0" + row["text"].encode("utf-8", "surrogatepass")
    shapes = {re.sub(rb"[0-9A-Za-z ]+", b"a", data): data for data in payloads()}
    yield from _headed((b"\0", b"\x03"), shapes.values())


@cache
def payloads() -> list[bytes]:
    """Give the data of every event of every body, each once."""
    return list({item.data or b"": None for body in bodies() for item in body.events()})


def of_turn() -> Iterator[bytes]:
    """Give the seeds of `turn`: every body in its dialect, binary ones also as the lines they are built of."""
    for number, body in enumerate(bodies()):
        dialect = turns.DIALECTS.index(body.dialect)
        switches, cuts = ((0, 0), (0xFF, 0xFF), (0x55, 0x05))[number % 3], ((0, 0), (7, 0), (1, 30))[number % 3]
        head = bytes([dialect, *switches, 0, number % 8 // 5, 0, number % 2, *[0] * 6, number % 7 // 6, *cuts])
        yield head + body.body
        if body.framing == "eventstream":
            lines = spell([(item.name, item.data or b"") for item in body.events()])
            yield head[:6] + b"\x02" + head[7:] + lines


def of_archive() -> Iterator[bytes]:
    """Give the seeds of `archive`: the good one, and each kind of edit in each file, mended or not."""
    yield b""
    for number, name in enumerate(archives.small().names):
        yield bytes([archives.MENDS, number, 0, 0, number, 2]) + b"ab"
        yield bytes([archives.MENDS | archives.TRACES, number, 1, 0, number, 3])
        yield bytes([0, number, 2, 0, number, 1])
        if not name.startswith("data/blobs/"):
            yield from (bytes([archives.MENDS, number, 3, 0, at, at * 3 + 1]) for at in range(6))


_TEXT = re.compile(rb'"[A-Za-z0-9_.:/-]{1,24}"')


def tokens() -> list[bytes]:
    """Give the words that mutations are made of: JSON and field syntax, and what strings the bodies hold."""
    syntax = [
        b"data: ", b"data:", b"event: ", b"id: ", b"retry: ", b": ", b"\n\n", b"\r\n", b"\r\r", b"\r", b"\n", b"[DONE]",
        b"data: [DONE]\n\n", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x8c\xb1", b"\xe2\x80\xa8", b"\xc2\x85",
        b"null", b"true", b"false", b"NaN", b"-Infinity", b"1e400", b"-0.0", b"1E5", b"\\ud800", b"\\udc00", b"\\u0000",
        b"\\/", b"{}", b"[]", b'""', b'{"a":1,"a":2}', b",", b":", b"18446744073709551616", b"9" * 60,
        b"event/", b"exception/", b"error/",
    ]  # fmt: skip
    reasons = [reason.encode() for rules in _CONTRACT.dialects.values() for reason in rules.reasons]
    words = {word for data in payloads() for word in _TEXT.findall(data)}
    return list(dict.fromkeys([*syntax, *reasons, *sorted(words)]))


def dictionary() -> str:
    """Spell the words as a dictionary of libFuzzer, one a line, every byte as hex."""
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in token) + '"\n' for token in tokens())
