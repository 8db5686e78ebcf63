"""One line about each attempt, for whoever has to say later why an answer was accepted: schema `attempt/1`.

    for record in coordinator.attempts("task-1"):
        append_record(path, evidence_record(record, readings[record.attempt_id]))

A record is flat, has always the same columns, is bounded, and holds no text of an answer unless it is asked to.
Names with dots are OpenTelemetry's; docs/records.md has the table and the rules that such a file is held to.
This file writes lines; it stores nothing else and decides nothing.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from ..strict_json import Json, canonical
from . import payload
from .evidence import RULE_VERSION, Evidence, evidence
from .reading import Reading
from .records import Decided, Decision, Record

SCHEMA = "attempt/1"
RECORDER = "endmark/1"

# The most code points of a column; what is longer is cut, and ends in a mark.
ID_CHARACTERS = 200
WHY_CHARACTERS = 300
TEXT_CHARACTERS = 16384

# Of a cut text's hash, in its mark, so that two texts that differ still do.
_MARK_DIGITS = 16

# The client's words for how a transport ended that the schema has as well; a client that left first saw none.
_TRANSPORT_ENDS = {"eof": "eof", "short-body": "eof", "reset": "reset", "timeout": "timeout"}

# The classes of an ending that is no error: the provider said how it ended, or the caller ended it.
_SAID = frozenset({"complete", "length", "filtered", "refused", "paused", "cancelled"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class About:
    """What only the caller knows of an attempt; None where nobody does.

    `first_display_at_us` is when any of its text was first on a screen, in microseconds since 1970, UTC;
    `history_before` and `history_after` count the entries of the conversation.
    """

    first_display_at_us: int | None = None
    turn_index: int | None = None
    trace_id: str | None = None
    span_id: str | None = None
    provider_name: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    server_address: str | None = None
    server_port: int | None = None
    history_before: int | None = None
    history_after: int | None = None


NOTHING = About()


def evidence_record(
    record: Record, attempt: Reading, about: About = NOTHING, *, include_text: bool = False
) -> dict[str, Json]:
    """Put the record of a decided attempt together; `record` is the store's, `attempt` what read the response.

    Raises ValueError for an attempt that is not decided or another one than the record's, and for an accepted
    answer whose bytes are not those that were hashed when it was accepted.
    """
    if record.attempt_id != attempt.id:
        raise ValueError(f"the record is of attempt {record.attempt_id}, the reading of {attempt.id}")
    decided = record.decided
    if decided is None:
        raise ValueError(f"attempt {attempt.id} is not decided; record it after commit, cancel, supersede or clear")
    seen = decided.evidence or _late(attempt)
    return (
        _identity(record, about)
        | _generation(seen, about)
        | _seen(seen, decided, attempt)
        | _decision(decided, about)
        | _payload(decided, attempt)
        | {
            "started_at": _time(record.started_at_us),
            "first_display_at": None if about.first_display_at_us is None else _time(about.first_display_at_us),
            "decided_at": _time(decided.at_us),
            "recorder": RECORDER,
            "source_sha256": _source_sha256(),
            "schema": SCHEMA,
            "text": _cut(attempt.shown["content"], TEXT_CHARACTERS) if include_text else None,
        }
    )


def append_record(path: Path, record: Mapping[str, Json], *, durable: bool = False) -> None:
    """Append a record as one canonical line, in one write; `durable` waits until it is on the disk.

    Any number of processes may append to one file on a local disk. Raises OSError where the line could not
    be written whole.
    """
    line = canonical(dict(record)).encode("ascii") + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        written = os.write(descriptor, line)
        if written != len(line):
            raise OSError(f"{path}: {written} of {len(line)} bytes of a record written; the last line is no record")
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- the columns, group by group


def _identity(record: Record, about: About) -> dict[str, Json]:
    return {
        "attempt_id": _cut(record.attempt_id),
        "task_id": _cut(record.task_id),
        "fence": record.fence,
        "turn_index": about.turn_index,
        "origin": record.origin.value,
        "replaces": _cut(record.replaces),
        "trace_id": about.trace_id,
        "span_id": about.span_id,
        "adapter": _cut(record.adapter),
        "contract": _cut(record.contract),
    }


def _generation(seen: Evidence | None, about: About) -> dict[str, Json]:
    """The columns whose names and meanings are OpenTelemetry's (semantic conventions for generative AI)."""
    reason = seen.finish_reason if seen else None
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _cut(about.provider_name),
        "gen_ai.request.model": _cut(about.request_model),
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": None if reason is None else [_cut(reason)],
        "gen_ai.response.id": _cut(about.response_id),
        "gen_ai.response.model": _cut(about.response_model),
        "server.address": _cut(about.server_address),
        "server.port": about.server_port,
    }


def _seen(seen: Evidence | None, decided: Decided, attempt: Reading) -> dict[str, Json]:
    wire = attempt.wire
    left = "cancelled" if decided.decision is Decision.CANCELLED else "unknown"
    return {
        "http_status": wire.http_status,
        "transport_end": _TRANSPORT_ENDS.get(wire.transport_end, left),
        "framing_complete": seen is not None and seen.framing_complete,
        "terminal_event": _cut(seen.terminal_event) if seen else None,
        "needs_terminal": seen.needs_terminal if seen else None,
        "terminal_reason_source": seen.terminal_reason_source if seen else "none",
        "needs_reason": seen.needs_reason if seen else None,
        "terminal_class": seen.terminal_class if seen else "unknown",
        "rule_version": seen.rule_version if seen else RULE_VERSION,
        "tool_args_complete": seen.tool_args_complete if seen else None,
        "unknown_events": seen.unknown_events if seen else None,
        "saw_usage": seen.saw_usage if seen else None,
        "wire_sha256": wire.wire_sha256,
        "wire_bytes": wire.wire_bytes,
        "error.type": decided.outcome if _is_error(seen, decided) else None,
    }


def _decision(decided: Decided, about: About) -> dict[str, Json]:
    return {
        "decision": decided.decision.value,
        "outcome": decided.outcome,
        "why": _cut(decided.why, WHY_CHARACTERS),
        "validator": _cut(decided.validator),
        "history_before": about.history_before,
        "history_after": about.history_after,
    }


def _payload(decided: Decided, attempt: Reading) -> dict[str, Json]:
    """The accepted bytes' hash and length, worked out again; null where nothing was accepted."""
    if decided.decision is not Decision.ACCEPTED:
        return {"payload_sha256": None, "payload_bytes": None}
    spelt = payload.spell(attempt.shown)
    if payload.sha256(spelt) != decided.payload_sha256:
        raise ValueError(f"attempt {attempt.id}: what was read is not what was accepted, by its sha256")
    return {"payload_sha256": decided.payload_sha256, "payload_bytes": len(spelt)}


# -- what they share


def _late(attempt: Reading) -> Evidence | None:
    """The evidence of an attempt that was decided from outside, as far as it was read all the same."""
    turn = attempt.settled
    return None if turn is None else evidence(turn, attempt.wire, attempt.contract, attempt.dialect)


def _is_error(seen: Evidence | None, decided: Decided) -> bool:
    is_ours = decided.decision in (Decision.REFUSED, Decision.FAILED)
    return is_ours and seen is not None and seen.terminal_class not in _SAID


def _time(us: int) -> str:
    """Spell microseconds since 1970 as RFC 3339, in UTC and always in as many digits, so that texts sort by time."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _cut(text: str | None, characters: int = ID_CHARACTERS) -> str | None:
    """Bound a text; a cut one ends in an ellipsis and the beginning of its sha256."""
    if text is None or len(text) <= characters:
        return text
    mark = "…" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_DIGITS]
    return text[: characters - len(mark)] + mark


@cache
def _source_sha256() -> str:
    """Hash the two files by which a record is made, so that a later change of a rule can be told."""
    sources = [Path(__file__), Path(__file__).with_name("evidence.py")]
    return hashlib.sha256(b"".join(path.read_bytes().replace(b"\r\n", b"\n") for path in sources)).hexdigest()
