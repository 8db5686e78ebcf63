"""Records for the tests of measures: one that is right, what can be wrong with it, and any number of them."""

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]

EVIDENCE: Record = {
    "framing_complete": True,
    "terminal_class": "complete",
    "terminal_event": "[DONE]",
    "terminal_reason_source": "provider",
    "payload_sha256": "ab" * 32,
    "payload_bytes": 40,
}

# What may be missing or wrong with an accepted answer's evidence: each alone breaks R1.
LACKS: dict[str, Record] = {
    "framing is open": {"framing_complete": False},
    "framing is not known": {"framing_complete": None},
    "cut": {"terminal_class": "truncated"},
    "class is not known": {"terminal_class": None},
    "no terminal event": {"terminal_event": None},
    "no terminal event, and nobody says that none is needed": {"terminal_event": None, "needs_terminal": None},
    "reason is not the provider's": {"terminal_reason_source": "instrumentation"},
    "no reason": {"terminal_reason_source": "none"},
    "no reason, and nobody says that none is needed": {"terminal_reason_source": "none", "needs_reason": None},
    "source of the reason is not known": {"terminal_reason_source": None},
    "arguments of a tool are cut": {"tool_args_complete": False},
    "no hash": {"payload_sha256": None},
    "no length": {"payload_bytes": None},
}


def at(us: int) -> str:
    """Give a moment, in microseconds since noon of a day."""
    seconds, rest = divmod(us, 1_000_000)
    return f"2026-12-01T{12 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}Z"


def a_record(number: int = 1, **changes: Any) -> Record:
    """Give the record of an accepted answer, the only attempt of its task, but for the changes."""
    record: Record = EVIDENCE | {
        "schema": "attempt/1",
        "attempt_id": f"attempt-{number}",
        "task_id": f"task-{number}",
        "fence": 1,
        "turn_index": None,
        "origin": "begin",
        "replaces": None,
        "trace_id": None,
        "span_id": None,
        "adapter": "openai-chat/1",
        "contract": "strict/1",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": None,
        "gen_ai.request.model": None,
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.id": None,
        "gen_ai.response.model": None,
        "server.address": None,
        "server.port": None,
        "error.type": None,
        "http_status": 200,
        "transport_end": "unknown",
        "needs_terminal": True,
        "needs_reason": True,
        "tool_args_complete": None,
        "rule_version": "evidence/1",
        "unknown_events": 0,
        "saw_usage": False,
        "decision": "accepted",
        "outcome": "COMPLETE",
        "why": "every required piece of evidence arrived",
        "validator": None,
        "history_before": 2,
        "history_after": 4,
        "wire_sha256": "cd" * 32,
        "wire_bytes": 253,
        "started_at": at(number * 1000),
        "first_display_at": at(number * 1000 + 200),
        "decided_at": at(number * 1000 + 900),
        "recorder": "endmark/1",
        "source_sha256": "ef" * 32,
        "text": None,
    }
    assert changes.keys() <= record.keys()
    return record | changes


def refused(number: int = 1, **changes: Any) -> Record:
    """Give the record of an answer that was cut, but for the changes."""
    nothing = {"payload_sha256": None, "payload_bytes": None, "framing_complete": False, "terminal_event": None}
    ended = {"decision": "refused", "outcome": "INCOMPLETE_STREAM", "terminal_class": "truncated"}
    return a_record(number, **nothing | ended | {"error.type": "INCOMPLETE_STREAM"} | changes)


def line(record: object) -> bytes:
    """Spell a record as a line."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def write(path: Path, *records: object) -> Path:
    """Write a file of records."""
    path.write_bytes(b"".join(map(line, records)))
    return path
