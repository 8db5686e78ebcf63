"""What is recorded of an attempt: the evidence, bounded, without text, one whole line each."""

import hashlib
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from client import Settled, load
from client.attempts import Attempt, Coordinator, MemoryStore
from client.attempts.evidence_record import (
    ID_CHARACTERS,
    TEXT_CHARACTERS,
    WHY_CHARACTERS,
    About,
    append_record,
    evidence_record,
)
from client.outcomes import READ_TIMEOUT
from client.strict_json import Json
from client.validators import Validator

from .bodies import ERROR, HEAD, call, event, whole

HOME = Path(__file__).parents[3]
ANSWER = "你好"
BODY = whole(ANSWER)


def no(_: Settled) -> str:
    """Refuse every answer."""
    return "not wanted"


class Chat:
    """A coordinator whose clock ticks once a question, from 1 January 1970 on, and one attempt."""

    def __init__(self, validate: Validator | None = None) -> None:
        ticks, ids = count(1), count(1)
        self.coordinator = Coordinator(
            MemoryStore(),
            load("strict/1"),
            "openai-chat",
            validate=validate,
            clock=lambda: next(ticks),
            new_id=lambda: f"attempt-{next(ids)}",
        )
        self.attempt = self.coordinator.begin("task", "question")
        self.attempt.head(*HEAD)

    def record(self, attempt: Attempt | None = None, about: About | None = None, **more: Any) -> dict[str, Json]:
        """Give the record of an attempt."""
        attempt = attempt or self.attempt
        (record,) = (known for known in self.coordinator.attempts("task") if known.attempt_id == attempt.id)
        return evidence_record(record, attempt, about or About(), **more)


def ended(body: bytes, end: str | None = None, validate: Validator | None = None) -> dict[str, Json]:
    """Give the record of an attempt that read a body and was asked to publish."""
    chat = Chat(validate)
    if body:
        chat.attempt.feed(body)
    if end:
        chat.attempt.end(end)
    chat.attempt.commit()
    return chat.record()


def test_an_accepted_answer() -> None:
    """The record of an accepted answer, whole: OpenTelemetry's names, the raw reason, hashes, times of the clock."""
    chat = Chat()
    chat.attempt.feed(BODY)
    chat.attempt.commit()
    payload = b'{"content":"\\u4f60\\u597d","role":"assistant"}'
    record = chat.record(about=About(first_display_at_us=1_500_000, request_model="m", turn_index=3))
    source = record.pop("source_sha256")
    assert isinstance(source, str)
    assert len(source) == 64
    assert record == {
        "schema": "attempt/1",
        "attempt_id": "attempt-1",
        "task_id": "task",
        "fence": 1,
        "turn_index": 3,
        "origin": "begin",
        "replaces": None,
        "trace_id": None,
        "span_id": None,
        "adapter": "openai-chat/1",
        "contract": "strict/1",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": None,
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.id": None,
        "gen_ai.response.model": None,
        "server.address": None,
        "server.port": None,
        "error.type": None,
        "http_status": 200,
        "transport_end": "unknown",
        "framing_complete": True,
        "terminal_event": "[DONE]",
        "needs_terminal": True,
        "terminal_reason_source": "provider",
        "needs_reason": True,
        "terminal_class": "complete",
        "rule_version": "evidence/1",
        "tool_args_complete": None,
        "unknown_events": 0,
        "saw_usage": False,
        "wire_sha256": hashlib.sha256(BODY).hexdigest(),
        "wire_bytes": len(BODY),
        "decision": "accepted",
        "outcome": "COMPLETE",
        "why": "every required piece of evidence arrived",
        "validator": None,
        "history_before": None,
        "history_after": None,
        "payload_sha256": hashlib.sha256(payload).hexdigest(),
        "payload_bytes": len(payload),
        "started_at": "1970-01-01T00:00:00.000001Z",
        "first_display_at": "1970-01-01T00:00:01.500000Z",
        "decided_at": "1970-01-01T00:00:00.000002Z",
        "recorder": "endmark/1",
        "text": None,
    }


CUT, LENGTH = BODY[: len(BODY) // 2], whole(ANSWER, "length")
REJECTS = Validator(name="tickets", version="2", check=no)
ENDS: list[tuple[str, Callable[[], dict[str, Json]], dict[str, Json]]] = [
    (
        "cut",
        lambda: ended(CUT, "eof"),
        {
            "decision": "refused",
            "terminal_class": "truncated",
            "transport_end": "eof",
            "error.type": "INCOMPLETE_STREAM",
        },
    ),
    ("short", lambda: ended(CUT, "short-body"), {"transport_end": "eof", "framing_complete": False}),
    ("reset", lambda: ended(CUT, "reset"), {"transport_end": "reset", "outcome": "INCOMPLETE_STREAM"}),
    ("bad framing", lambda: ended(CUT, "bad-framing"), {"transport_end": "unknown"}),
    (
        "length",
        lambda: ended(LENGTH),
        {
            "terminal_class": "length",
            "gen_ai.response.finish_reasons": ["length"],
            "error.type": None,
            "payload_sha256": None,
            "payload_bytes": None,
        },
    ),
    ("filtered", lambda: ended(whole(ANSWER, "content_filter")), {"terminal_class": "filtered", "error.type": None}),
    (
        "provider error",
        lambda: ended(ERROR),
        {"decision": "failed", "terminal_class": "error", "error.type": "PROVIDER_ERROR"},
    ),
    (
        "unlisted reason",
        lambda: ended(whole(ANSWER, "because")),
        {
            "terminal_class": "unknown",
            "error.type": "UNSUPPORTED_OUTCOME",
            "gen_ai.response.finish_reasons": ["because"],
        },
    ),
    (
        "rejected",
        lambda: ended(BODY, validate=REJECTS),
        {"decision": "refused", "outcome": "REJECTED", "terminal_class": "complete", "validator": "tickets 2"},
    ),
    ("a call", lambda: ended(call("{}")), {"decision": "accepted", "tool_args_complete": True}),
    (
        "not settled",
        lambda: ended(b""),
        {"outcome": "INCOMPLETE_STREAM", "gen_ai.response.finish_reasons": None, "terminal_reason_source": "none"},
    ),
]


@pytest.mark.parametrize(("made", "expected"), [end[1:] for end in ENDS], ids=[end[0] for end in ENDS])
def test_ends(made: Callable[[], dict[str, Json]], expected: dict[str, Json]) -> None:
    """Every kind of end has its own decision, class, transport and error."""
    record = made()
    assert {name: record[name] for name in expected} == expected


def test_a_time_out() -> None:
    """A time-out is a failure of the transport, and is told from a cut."""
    chat = Chat()
    chat.attempt.stop(READ_TIMEOUT, "no byte for 100 ms")
    chat.attempt.commit()
    record = chat.record()
    assert [record[name] for name in ("decision", "transport_end", "error.type", "terminal_class")] == [
        *("failed", "timeout", "READ_TIMEOUT", "truncated")
    ]


def test_an_http_error() -> None:
    """A status other than 200 is recorded as it came, and nothing of a body."""
    chat = Chat()
    attempt = chat.coordinator.supersede(chat.attempt)
    attempt.head(503, "text/plain")
    attempt.commit()
    record = chat.record(attempt)
    assert [record[name] for name in ("http_status", "decision", "error.type", "wire_bytes")] == [
        *(503, "failed", "HTTP_503", 0)
    ]


def test_a_cancelled_attempt() -> None:
    """A cancelled attempt is no error, and its transport was left by its own client."""
    chat = Chat()
    chat.attempt.feed(event({"content": ANSWER}))
    chat.attempt.cancel()
    record = chat.record()
    assert [record[name] for name in ("decision", "outcome", "transport_end", "terminal_class", "error.type")] == [
        *("cancelled", "CANCELLED", "cancelled", "cancelled", None)
    ]


def test_a_stale_answer() -> None:
    """A superseded attempt that read on is recorded with all that it saw: complete, and superseded."""
    chat = Chat()
    newer = chat.coordinator.supersede(chat.attempt)
    chat.attempt.feed(BODY)
    chat.attempt.commit()
    record = chat.record()
    assert [record[name] for name in ("decision", "terminal_class", "framing_complete", "payload_sha256")] == [
        *("superseded", "complete", True, None)
    ]
    assert newer.replaces == record["attempt_id"]
    newer.commit()
    assert [chat.record(newer)[name] for name in ("origin", "replaces", "fence")] == ["supersede", "attempt-1", 2]


def test_an_attempt_that_nobody_read() -> None:
    """A superseded attempt without a turn has no evidence, and says so in every column."""
    chat = Chat()
    chat.coordinator.supersede(chat.attempt)
    record = chat.record()
    assert [record[name] for name in ("framing_complete", "terminal_class", "terminal_reason_source")] == [
        *(False, "unknown", "none")
    ]
    assert [record[name] for name in ("terminal_event", "needs_terminal", "unknown_events")] == [None, None, None]


def test_no_text_unless_asked() -> None:
    """Nothing of an answer is in its record, and its beginning where that is asked for."""
    chat = Chat()
    chat.attempt.feed(whole("secret " * 5000))
    chat.attempt.commit()
    assert "secret" not in json.dumps(chat.record())
    text = chat.record(include_text=True)["text"]
    assert isinstance(text, str)
    assert text.startswith("secret secret ")
    assert len(text) == TEXT_CHARACTERS


def test_texts_are_bounded_and_still_differ() -> None:
    """A long text is cut to its bound, and two that differ behind it have two marks."""
    chat = Chat(Validator(name="v", version="1", check=lambda _: "x" * 1000))
    chat.attempt.feed(BODY)
    chat.attempt.commit()
    one, other = (chat.record(about=About(response_id="r" * 300 + end)) for end in "ab")
    assert len(str(one["why"])) == WHY_CHARACTERS
    assert len(str(one["gen_ai.response.id"])) == ID_CHARACTERS
    assert one["gen_ai.response.id"] != other["gen_ai.response.id"]
    digest = hashlib.sha256(("r" * 300 + "a").encode()).hexdigest()
    assert one["gen_ai.response.id"] == "r" * (ID_CHARACTERS - 17) + "…" + digest[:16]


def test_wrong_callers() -> None:
    """An attempt that is not decided, or not the record's, cannot be recorded."""
    chat = Chat()
    (record,) = chat.coordinator.attempts("task")
    with pytest.raises(ValueError, match="attempt-1 is not decided; record it after commit"):
        evidence_record(record, chat.attempt)
    with pytest.raises(ValueError, match="the record is of attempt attempt-1, the reading of"):
        evidence_record(record, Chat().coordinator.supersede("attempt-1"))


def test_another_reading_than_what_was_accepted() -> None:
    """What is recorded as accepted is hashed again, and has to be what was accepted."""
    chat, other = Chat(), Chat()
    for of, body in ((chat, BODY), (other, whole("other"))):
        of.attempt.feed(body)
        of.attempt.commit()
    (record,) = chat.coordinator.attempts("task")
    with pytest.raises(ValueError, match="attempt-1: what was read is not what was accepted"):
        evidence_record(record, other.attempt)


def test_one_canonical_line(tmp_path: Path) -> None:
    """A record is appended as one line of canonical JSON, behind those that are there."""
    path = tmp_path / "records.jsonl"
    record = ended(BODY)
    append_record(path, record)
    append_record(path, record, durable=True)
    line = json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"
    assert path.read_bytes() == line.encode("ascii") * 2


WRITER = """
import sys
from pathlib import Path
from client.attempts.evidence_record import append_record
for number in range(200):
    append_record(Path(sys.argv[1]), {"writer": sys.argv[2], "number": number, "long": "x" * 5000})
"""


def test_many_writers(tmp_path: Path) -> None:
    """Four processes append to one file, and every line is whole."""
    path = tmp_path / "records.jsonl"
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], cwd=HOME) for name in ("a", "b", "c", "d")
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert sorted((line["writer"], line["number"]) for line in found) == [
        (name, number) for name in "abcd" for number in range(200)
    ]


def small_files() -> None:
    """Let files grow to 100 bytes, and let the write say so."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_a_line_that_does_not_fit(tmp_path: Path) -> None:
    """A line of which only a part could be written is an error that says so."""
    path = tmp_path / "records.jsonl"
    command = [sys.executable, "-c", WRITER, str(path), "a"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False, preexec_fn=small_files)
    assert "records.jsonl: 100 of 50" in done.stderr
    assert "the last line is no record" in done.stderr
