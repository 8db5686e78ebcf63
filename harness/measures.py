"""What a file of attempt records says: waits, ends, retries, and accepted answers without evidence.

One pass over the records counts and fills a table in a database that is gone afterwards; the rules are
`measures.sql` and run there as they would in a warehouse. Percentiles are by nearest rank: the smallest value
that at least so many percent of the values do not exceed. docs/records.md says what each measure counts. This
file knows no client and judges no stream.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from .names import UsageError
from .record_file import Record, columns, records

SCHEMA = "endmark.measures/1"
RULES = Path(__file__).with_name("measures.sql")

# How an attempt ended, in the order of the table; every attempt is counted in one of these.
ENDS = (
    "accepted",
    "truncated",
    "stopped",
    "interrupted",
    "failed",
    "malformed",
    "rejected",
    "superseded",
    "cancelled",
)
# By its class, where the evidence or the validator said no.
_REFUSED = {
    "complete": "rejected",
    "length": "truncated",
    "filtered": "stopped",
    "refused": "stopped",
    "paused": "stopped",
    "truncated": "interrupted",
    "error": "failed",
}

# The rules that say that an answer was accepted without evidence, or against it.
_EVIDENCE = frozenset({"R1", "R7"})
# Asks for the product's own store, which is not at hand here.
_OUTSIDE = "R5"
_RULE = re.compile(r"^-- (R\d): (.*(?:\n-- .*)*)\n([^;]+);", re.MULTILINE)

_REASONS = "gen_ai.response.finish_reasons"

_BATCH = 1000
_MS = timedelta(milliseconds=1)


@dataclass(slots=True)
class _Task:
    """The moments of one task, as they are written; None until there is one."""

    began: str
    displayed: str | None = None
    accepted: str | None = None


@dataclass
class _Tally:
    """What one pass over the records collects."""

    retries: int = 0
    stale_drops: int = 0
    first: str = "9"  # before any moment was seen, later and earlier than all
    last: str = "0"
    ends: Counter[str] = field(default_factory=Counter)
    tasks: dict[str, _Task] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Count one record."""
        ended = end(record)
        self.ends[ended] += 1
        self.retries += record["origin"] == "retry"
        self.stale_drops += ended == "superseded" and record["terminal_class"] == "complete"
        began, displayed, decided = record["started_at"], record["first_display_at"], record["decided_at"]
        self.first, self.last = min(self.first, began), max(self.last, decided)
        task = self.tasks.setdefault(record["task_id"], _Task(began))
        task.began = min(task.began, began)
        if displayed is not None:
            task.displayed = min(task.displayed or displayed, displayed)
        if ended == "accepted":
            task.accepted = min(task.accepted or decided, decided)


def measure(path: Path) -> dict[str, Any]:
    """Give the report on a file; raise UsageError for a line that is no record, and for a file without one."""
    tally = _Tally()
    with closing(sqlite3.connect("")) as database:  # on disk where it grows, and gone when it is closed
        _fill(database, _counted(records(path), tally))
        if not tally.tasks:
            raise UsageError(f"{path}: holds no record, and what is not there proves nothing")
        findings = list(_findings(database))
    return _report(path, tally, findings)


def end(record: Record) -> str:
    """Say how an attempt ended, in one of the words of ENDS."""
    decision: str = record["decision"]
    if decision in ("accepted", "superseded", "cancelled"):
        return decision
    return _REFUSED.get(record["terminal_class"] or "", "failed" if decision == "failed" else "malformed")


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Give a percentile of values in ascending order, by nearest rank; the least of them for 0."""
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


def rules() -> dict[str, tuple[str, str]]:
    """Read the rules: name → what breaks it in words, and the statement that finds that."""
    text = RULES.read_text(encoding="utf-8")
    return {name: (words.partition("\n")[0], statement) for name, words, statement in _RULE.findall(text)}


# -- the rules, run


def _fill(database: sqlite3.Connection, rows: Iterator[Record]) -> None:
    """Make the table `attempt` with the columns that the rules name."""
    sql = RULES.read_text(encoding="utf-8")
    names = [name for name in columns() if name in sql and name != _REASONS]
    pick = itemgetter(*names)
    quoted = ", ".join(f'"{name}"' for name in [*names, _REASONS])
    database.execute(f"CREATE TABLE attempt ({quoted})")
    insert = f"INSERT INTO attempt VALUES ({', '.join('?' * (len(names) + 1))})"
    while batch := list(islice(rows, _BATCH)):
        database.executemany(insert, [(*pick(row), _spelt(row[_REASONS])) for row in batch])
    database.execute("CREATE INDEX by_task ON attempt (task_id, fence)")


def _spelt(reasons: list[str] | None) -> str | None:
    """Spell the one column that is a list as text, since SQLite has no lists."""
    return None if reasons is None else json.dumps(reasons)


def _counted(rows: Iterable[Record], tally: _Tally) -> Iterator[Record]:
    for row in rows:
        tally.add(row)
        yield row


def _findings(database: sqlite3.Connection) -> Iterator[dict[str, str]]:
    for name, (words, statement) in rules().items():
        if name != _OUTSIDE:
            for (attempt_id,) in sorted(database.execute(statement)):
                yield {"rule": name, "attempt_id": attempt_id, "text": words}


# -- the report


def _report(path: Path, tally: _Tally, findings: list[dict[str, str]]) -> dict[str, Any]:
    accepted = tally.ends["accepted"]
    tasks = tally.tasks.values()
    waits_ms = {
        "first_display": [_ms(task.began, task.displayed) for task in tasks if task.displayed is not None],
        "accepted_completion": [_ms(task.began, task.accepted) for task in tasks if task.accepted is not None],
    }
    return {
        "schema": SCHEMA,
        "file": str(path),
        "attempts": tally.ends.total(),
        "tasks": len(tally.tasks),
        "from": tally.first,
        "to": tally.last,
        "ends": {name: tally.ends[name] for name in ENDS},
        "waits": {name: _wait(found) for name, found in waits_ms.items()},
        "backwards": sum(ms < 0 for found in waits_ms.values() for ms in found),
        "retries": tally.retries,
        "retries_per_accepted": round(tally.retries / accepted, 3) if accepted else None,
        "stale_drops": tally.stale_drops,
        "accepted_without_evidence": len({found["attempt_id"] for found in findings if found["rule"] in _EVIDENCE}),
        "findings": findings,
    }


def _wait(found_ms: list[float]) -> dict[str, Any]:
    """Sum up a kind of wait; a clock that went backwards has measured none."""
    ordered = sorted(ms for ms in found_ms if ms >= 0)
    quantiles_ms = [percentile(ordered, percent) for percent in range(101)] if ordered else []
    return {
        "tasks": len(ordered),
        "p50_ms": quantiles_ms[50] if ordered else None,
        "p95_ms": quantiles_ms[95] if ordered else None,
        "quantiles_ms": quantiles_ms,
    }


def _ms(start: str, stop: str) -> float:
    return (datetime.fromisoformat(stop) - datetime.fromisoformat(start)) / _MS
