"""The client's records are what the laboratory measures, from real streams to the product's own store."""

import json
import sqlite3
from pathlib import Path

import pytest

from client import load
from client.attempts import Attempt, Coordinator
from client.attempts.evidence_record import About, append_record, evidence_record
from client.attempts.sql import open_store
from harness.measures import measure, rules
from harness.record_file import columns, records
from tests.client.attempts.bodies import HEAD, event, whole
from tests.harness.support import run_py

# Cases of the frozen suite, and what their one attempt is counted as.
WATCHED = {
    "seven-byte": "accepted",
    "missing-done": "interrupted",
    "read-timeout": "interrupted",
    "length-finish": "truncated",
    "provider-error": "failed",
    "http-503": "failed",
    "after-finish": "malformed",
    "oversized-line": "malformed",
    "cancel": "cancelled",
}


def test_watched_cases_are_measured(tmp_path: Path) -> None:
    """Real streams, watched and recorded, are counted as what they were, with nothing accepted without evidence."""
    path = tmp_path / "records.jsonl"
    for case in WATCHED:
        assert run_py("watch", case, "--record", path).stderr == ""
    report = measure(path)
    wanted = list(WATCHED.values())
    assert report["ends"] == {name: wanted.count(name) for name in report["ends"]}
    assert (report["accepted_without_evidence"], report["retries"], report["findings"]) == (0, 0, [])
    (first, *_) = records(path)
    assert list(first) == sorted(columns())
    assert (first["history_before"], first["history_after"], first["text"]) == (2, 4, None)
    assert first["started_at"] < first["first_display_at"] < first["decided_at"]


class Product:
    """A product: a coordinator over SQLite, and a file of records."""

    def __init__(self, folder: Path) -> None:
        self.database, self.path = folder / "chat.db", folder / "records.jsonl"
        self.store = open_store(f"sqlite:///{self.database}")
        self.coordinator = Coordinator(self.store, load("strict/1"), "openai-chat")
        self.attempts: dict[str, Attempt] = {}

    def keep(self, attempt: Attempt, body: bytes = b"") -> Attempt:
        """Let an attempt read a body."""
        self.attempts[attempt.id] = attempt
        attempt.head(*HEAD)
        if body:
            attempt.feed(body)
        return attempt

    def record(self, task_id: str) -> None:
        """Record every attempt of a task."""
        for record in self.coordinator.attempts(task_id):
            append_record(self.path, evidence_record(record, self.attempts[record.attempt_id], About()))


@pytest.fixture
def product(tmp_path: Path) -> Product:
    """A product in which one task was retried, and another one's first attempt came too late."""
    product = Product(tmp_path)
    owner = product.coordinator
    cut = product.keep(owner.begin("retried", "question"), event({"content": "hal"}))
    cut.end("short-body")
    cut.commit()
    product.keep(owner.retry(cut), whole("whole")).commit()
    late = product.keep(owner.begin("raced", "question"))
    product.keep(owner.supersede(late), whole("newer")).commit()
    late.feed(whole("older"))
    late.commit()
    for task in ("retried", "raced"):
        product.record(task)
    product.store.close()
    return product


def test_a_task_with_several_attempts(product: Product) -> None:
    """Retries, stale drops and decisions are those of the coordinator, and break no rule."""
    report = measure(product.path)
    assert {name: count for name, count in report["ends"].items() if count} == {
        "accepted": 2,
        "interrupted": 1,
        "superseded": 1,
    }
    assert (report["retries_per_accepted"], report["stale_drops"], report["findings"]) == (0.5, 1, [])


def unrecorded(product: Product) -> list[str]:
    """Ask R5 of the product's store and its records."""
    with sqlite3.connect(product.database) as database:
        database.execute("CREATE TEMP TABLE attempt (attempt_id, decision, payload_sha256)")
        database.execute("CREATE TEMP VIEW answer AS SELECT attempt_id, payload_sha256 FROM endmark_accepted")
        rows = [(row["attempt_id"], row["decision"], row["payload_sha256"]) for row in records(product.path)]
        database.executemany("INSERT INTO attempt VALUES (?, ?, ?)", rows)
        found = [attempt_id for (attempt_id,) in database.execute(rules()["R5"][1])]
    database.close()
    return found


def test_every_stored_answer_has_its_record(product: Product) -> None:
    """R5 joins the product's own table of answers to the records, and finds the one whose record is gone."""
    assert unrecorded(product) == []
    lines = product.path.read_bytes().splitlines(keepends=True)
    (gone, *kept) = sorted(lines, key=lambda line: json.loads(line)["decision"] != "accepted")
    product.path.write_bytes(b"".join(kept))
    assert unrecorded(product) == [json.loads(gone)["attempt_id"]]
