"""The event-stream cases of two public suites, rewritten as vectors, through the client's framing and the auditor's."""

import base64
import random
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from client.contract import load as load_contract
from client.events import MESSAGE, Event, Item
from client.framer import SseFramer
from client.outcomes import Fault
from client.reader import Reader
from tests.auditor import load as load_auditor
from tests.ways import CUTS, pieces

HOME = Path(__file__).resolve().parents[2]
AUDIT = load_auditor()
CONTRACT = load_contract("strict/1")
JUDGED = AUDIT.contract_of(tomllib.loads((HOME / "cases" / "contracts" / "strict-1.toml").read_text("utf-8")))

SUITES: dict[str, dict[str, Any]] = {
    name: tomllib.loads((HOME / "tests" / "vectors" / f"{name}.toml").read_text("utf-8"))
    for name in ("wpt-eventsource", "sse-contract")
}
VECTORS: list[dict[str, Any]] = [vector for suite in SUITES.values() for vector in suite["vector"]]
IDS = [f"{name}: {vector['name']}" for name, suite in SUITES.items() for vector in suite["vector"]]

WAYS = (*CUTS, "by two", "as sent")
MANY_BYTES = 1 << 20  # beyond this, cuts of a few bytes would take minutes
BLOCK_BYTES = 4096


@cache
def letters(count: int) -> str:
    """Give letters of which no two stretches are alike, so that a piece lost or swapped is seen."""
    return base64.b64encode(random.Random(1).randbytes(count)).decode()[:count]


def filled(text: str, vector: dict[str, Any]) -> str:
    """Put the letters where a vector leaves them out."""
    return text.replace("⋯", letters(vector["letters"])) if "letters" in vector else text


def chunks_of(vector: dict[str, Any]) -> list[bytes]:
    """Give the bytes of a vector as its suite sends them."""
    if "chunks_hex" in vector:
        return [bytes.fromhex(chunk) for chunk in vector["chunks_hex"]]
    return [filled(chunk, vector).encode() for chunk in vector.get("chunks") or [vector["body"]]]


def cut(vector: dict[str, Any], way: str) -> Iterator[bytes]:
    """Cut a vector's bytes in one of the ways; a big body is cut into blocks where a few bytes are asked for."""
    chunks = chunks_of(vector)
    body = b"".join(chunks)
    if way == "as sent":
        yield from (chunk for chunk in chunks if chunk)
    elif way.startswith("by") and len(body) > MANY_BYTES:
        yield from (body[start : start + BLOCK_BYTES] for start in range(0, len(body), BLOCK_BYTES))
    else:
        yield from pieces(body, way)


def as_texts(item: bytes | Event) -> list[str]:
    """Give an event's type and data as text, the one place that knows how a framing holds them."""
    kind, data = item if isinstance(item, Event) else (MESSAGE, item)
    return [kind, data.decode()]


def expected(vector: dict[str, Any]) -> list[list[str]]:
    """Give the events that a vector asks for."""
    return [[kind, filled(data, vector)] for kind, data in vector["events"]]


def framed(parts: Iterator[bytes]) -> list[list[str]]:
    """Feed the client's framer piece by piece; a fault is an event of a type that no vector has."""
    framer, found = SseFramer(CONTRACT), list[Item]()
    for part in parts:
        found += framer.feed(part)
    return [["fault", item.outcome] if isinstance(item, Fault) else as_texts(item) for item in found]


def audited(body: bytes) -> list[list[str]]:
    """Give what the auditor reads of a whole body, in the same form."""
    found = AUDIT.sse(body, JUDGED.limits, JUDGED.switch, False)
    return [["fault", item.outcome] if isinstance(item, AUDIT.Stop) else [item.type, item.data] for item in found]


def head(vector: dict[str, Any]) -> tuple[int, str]:
    """Give the status and the content type that a vector is served with."""
    return vector.get("status", 200), vector.get("content_type", "text/event-stream")


def refused_by_client(vector: dict[str, Any]) -> str | None:
    """Give the outcome by which the client refuses a head, if it does."""
    settled = Reader(CONTRACT, "openai-chat").head(*head(vector))
    return settled.outcome if settled else None


def refused_by_auditor(vector: dict[str, Any]) -> str | None:
    """Give the outcome by which the auditor refuses a head, if it does."""
    status, content_type = head(vector)
    case = AUDIT.Case(
        title="",
        dialect="openai-chat",
        read_cap=1,
        read_timeout_ms=1000,
        cancel_after=None,
        status=status,
        content_type=content_type,
        framing="chunked",
        chunk_ends=[],
        body=b"",
        script=[],
        ending="complete",
    )
    refusal = AUDIT.refusal(case, JUDGED.dialects["openai-chat"], JUDGED.switch)
    return str(refusal[0]) if refusal else None


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_head(vector: dict[str, Any]) -> None:
    """Client and auditor refuse before the body what a vector says is refused there, and nothing else."""
    assert refused_by_client(vector) == refused_by_auditor(vector) == vector.get("refused")


FRAMED = [(vector, name) for vector, name in zip(VECTORS, IDS, strict=True) if "refused" not in vector]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("vector", [vector for vector, _ in FRAMED], ids=[name for _, name in FRAMED])
def test_events(vector: dict[str, Any], way: str) -> None:
    """Client and auditor read the events of every vector, however its bytes are cut."""
    parts = list(cut(vector, way))
    assert framed(iter(parts)) == expected(vector)
    assert audited(b"".join(parts)) == expected(vector)


def missing(suite: dict[str, Any]) -> list[str]:
    """Name the tests of a suite that neither a vector nor a reason accounts for, and those that two account for."""
    sources = [vector["from"] for vector in suite["vector"]]
    sources += [test for group in suite["left_out"] for test in group["tests"]]
    return [test for test in suite["tests"] if sum(test == s or test.startswith(f"{s}/") for s in sources) != 1]


@pytest.mark.parametrize("name", SUITES)
def test_every_original_test_is_accounted_for(name: str) -> None:
    """Each test of a suite is a vector or is left out for a reason, once, and no vector comes from elsewhere."""
    suite = SUITES[name]
    assert missing(suite) == []
    assert len(set(suite["tests"])) == len(suite["tests"])
    for source in [vector["from"] for vector in suite["vector"]]:
        assert any(test == source or test.startswith(f"{source}/") for test in suite["tests"]), source
    assert all(set(group["tests"]) <= set(suite["tests"]) for group in suite["left_out"])


@pytest.mark.parametrize("name", SUITES)
def test_names(name: str) -> None:
    """Every vector has a name of its own, and says what it leaves aside where it has an id or a retry."""
    vectors = SUITES[name]["vector"]
    assert len({vector["name"] for vector in vectors}) == len(vectors)
    for vector in vectors:
        lines = b"".join(chunks_of(vector)).replace(b"\r", b"\n").split(b"\n")
        if any(line.partition(b":")[0] in (b"id", b"retry") for line in lines):
            assert "no effect" in vector["note"], vector["name"]


@pytest.mark.parametrize("name", SUITES)
def test_control(name: str) -> None:
    """A suite shows a naive reader: one that knows LF alone, and a piece as a whole, gets some of it wrong."""

    def naive(parts: Iterator[bytes]) -> list[list[str]]:
        blocks = [block for part in parts for block in part.decode("utf-8", "replace").split("\n\n")]
        return [["message", block.removeprefix("data: ")] for block in blocks if block.startswith("data:")]

    vectors = [vector for vector in SUITES[name]["vector"] if "refused" not in vector and "letters" not in vector]
    wrong = {vector["name"] for vector in vectors if naive(cut(vector, "as sent")) != expected(vector)}
    assert len(wrong) > len(vectors) // 2
    assert len(wrong) < len(vectors)


def test_a_test_that_nobody_accounts_for_is_found() -> None:
    """A test without vector and reason is named, and so is one that is claimed twice."""
    suite = SUITES["sse-contract"]
    assert missing({**suite, "tests": [*suite["tests"], "comments/another"]}) == ["comments/another"]
    twice = {**suite, "vector": [*suite["vector"], {"from": "comments/single comment"}]}
    assert missing(twice) == ["comments/single comment"]
