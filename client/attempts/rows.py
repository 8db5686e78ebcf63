"""Between a row of the attempts' table and what it means: names of columns are names of fields.

It knows no database; a row is a mapping.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from ..outcomes import Outcome
from .evidence import Evidence
from .records import Decided, Decision, Origin, Record

Row = Mapping[str, Any]

# The evidence's own columns; contract and dialect stand with the attempt.
SEEN = tuple(field.name for field in fields(Evidence) if field.name not in ("contract", "dialect"))

# Those that SQLite gives as 0 and 1.
_FLAGS = ("framing_complete", "needs_terminal", "needs_reason", "tool_args_complete", "saw_usage")


def decided_values(decided: Decided) -> dict[str, Any]:
    """Spell a decision as columns."""
    seen = asdict(decided.evidence) if decided.evidence else {}
    return {name: seen.get(name) for name in SEEN} | {
        "decision": decided.decision.value,
        "outcome": decided.outcome,
        "why": decided.why,
        "decided_at_us": decided.at_us,
        "payload_sha256": decided.payload_sha256,
        "validator": decided.validator,
    }


def record(row: Row) -> Record:
    """Read an attempt."""
    return Record(
        attempt_id=row["attempt_id"],
        task_id=row["task_id"],
        fence=row["fence"],
        origin=Origin(row["origin"]),
        replaces=row["replaces"],
        adapter=row["adapter"],
        contract=row["contract"],
        started_at_us=row["started_at_us"],
        decided=None if row["decision"] is None else _decided(row),
    )


def _decided(row: Row) -> Decided:
    return Decided(
        decision=Decision(row["decision"]),
        outcome=Outcome(row["outcome"]),
        why=row["why"],
        at_us=row["decided_at_us"],
        evidence=None if row["rule_version"] is None else _evidence(row),
        payload_sha256=row["payload_sha256"],
        validator=row["validator"],
    )


def _evidence(row: Row) -> Evidence:
    seen = {name: row[name] for name in SEEN}
    for name in _FLAGS:
        seen[name] = None if seen[name] is None else bool(seen[name])
    return Evidence(contract=row["contract"], dialect=row["adapter"].rpartition("/")[0], **seen)
