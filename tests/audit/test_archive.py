"""A whole archive of all dialects under two contracts, made here from nothing and audited."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import audit

from .test_dialects import BODIES, CONTRACTS, DIALECTS, EXAMPLES, ROOT, STRICT, dialect_of

NAMES = {name: name.partition(".")[0].replace("_", "-") for name in EXAMPLES}
CONTRACT_NAMES = ("compat/1", "strict/1")
HISTORY = [{"role": "user", "content": "earlier"}]
ASKED = {"role": "user", "content": "question"}

CASE = """\
title = "example"
dialect = "{dialect}"
reference = "docs/judging.md"

[client]
read_cap_bytes = 7

[[exchange]]
content_type = "{content_type}"
body = "{body}"
"""
SUITE = """\
name = "mini"
version = "1"
licence = "CC0-1.0"
contracts = ["strict/1", "compat/1"]
changelog = []

[conversation]
history = [{ role = "user", content = "earlier" }]
question = "question"
"""


def sha256(raw: bytes) -> str:
    """A digest as manifests write it."""
    return hashlib.sha256(raw).hexdigest()


def manifest(folder: Path, below: str = "") -> None:
    """List everything in a folder, or below one of its folders."""
    own = folder / "manifest-sha256.txt"
    own.unlink(missing_ok=True)
    paths = sorted(path.relative_to(folder).as_posix() for path in (folder / below).rglob("*") if path.is_file())
    own.write_text("".join(f"{sha256((folder / path).read_bytes())}  {path}\n" for path in paths))


def write_case(folder: Path, name: str, changed: dict[str, Any]) -> None:
    """A case with the labels that the auditor would give, but for what is changed."""
    body, dialect = (BODIES / name).read_bytes(), dialect_of(name)
    folder.mkdir(parents=True)
    (folder / name.replace("_", "-")).write_bytes(body)
    content_type = STRICT.dialects[dialect].media_type
    text = CASE.format(dialect=dialect, content_type=content_type, body=name.replace("_", "-"))
    (folder / "case.toml").write_text(text)
    label = 'why = "example"\nauthority = "provider-doc"\nurl = "x"\ndate = 2026-11-30\n'
    for contract in CONTRACT_NAMES:
        outcome, preview, ending, _, _ = EXAMPLES[name]
        stated = {"outcome": outcome, "preview": preview, "committed": outcome == "COMPLETE", **changed}
        stated |= {"class": ending} if ending and "class" not in changed else {}
        label += f'\n[contract."{contract}"]\n'
        label += "".join(f"{key} = {json.dumps(value)}\n" for key, value in stated.items() if value is not None)
    (folder / "label.toml").write_text(label)


class Writer:
    """An archive while it is written."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        for name in ("records", "volatile", "blobs"):
            (self.data / name).mkdir(parents=True)

    def blob(self, raw: bytes) -> dict[str, Any]:
        (self.data / "blobs" / sha256(raw)).write_bytes(raw)
        return {"bytes": len(raw), "sha256": sha256(raw)}

    def document(self, path: str, value: object) -> None:
        (self.data / path).write_bytes(audit.canonical(value) + b"\n")


def record(writer: Writer, name: str, contract: str, claimed: dict[str, Any]) -> dict[str, Any]:
    """What a subject that does everything right would have left behind."""
    body, dialect = (BODIES / name).read_bytes(), dialect_of(name)
    turn = audit.Case(
        title="", dialect=dialect, read_cap=7, read_timeout_ms=1000, cancel_after=None, status=200,
        content_type=STRICT.dialects[dialect].media_type, framing="chunked", chunk_ends=[], body=body,
        script=[("send_bytes", len(body))], ending="complete",
    )  # fmt: skip
    derived = audit.derive(turn, CONTRACTS[contract])
    history: list[dict[str, Any]] = list(HISTORY)
    if derived.committed:
        calls = {"tool_calls": derived.proposals} if derived.ending == "tools" else {}
        history += [ASKED, {"role": "assistant", "content": derived.preview, **calls}]
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {turn.content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    asked = audit.canonical({"messages": [*HISTORY, ASKED], "model": "m", "stream": True})
    consumed = body[: derived.consumed_bytes]
    claim = {
        "history": writer.blob(audit.canonical(history)),
        "preview": writer.blob(derived.preview.encode()),
        "outcome": derived.outcome,
        "finish_reason": derived.finish_reason,
        "class": derived.ending,
        "dispatched": 0,
        "transport_end": derived.transport_end,
        "status": 200,
        "reads": derived.reads,
        "consumed_bytes": len(consumed),
        "consumed_sha256": sha256(consumed),
        "raised": None,
    }
    return {
        "schema": "endmark.trial/1",
        "trial": f"mini/{NAMES[name]}@{contract}",
        "suite": "mini",
        "case": NAMES[name],
        "contract": contract,
        "requests": [writer.blob(b"POST {path} HTTP/1.1\nhost: {host}\n\n" + asked)],
        "status": 200,
        "response_head": writer.blob(head.encode()),
        "body": writer.blob(consumed),
        "delivered": True,
        "claim": {**claim, **claimed},
        "no_claim": None,
    }


def build(
    folder: Path, claimed: dict[str, Any] | None = None, labelled: dict[str, Any] | None = None, aware: bool = True
) -> None:
    """A sealed archive of every example under both contracts."""
    writer = Writer(folder)
    suites = writer.data / "suite"
    for name in EXAMPLES:
        write_case(suites / "mini" / NAMES[name], name, labelled or {})
    (suites / "mini" / "suite.toml").write_text(SUITE)
    manifest(suites / "mini")
    (suites / "contracts").mkdir()
    for contract in CONTRACT_NAMES:
        shutil.copy(ROOT / "cases/contracts" / (contract.replace("/", "-") + ".toml"), suites / "contracts")
    manifest(suites / "contracts")
    keys = sorted(
        (f"mini/{NAMES[name]}@{contract}", name, contract) for name in EXAMPLES for contract in CONTRACT_NAMES
    )
    rows = [record(writer, name, contract, claimed or {}) for _, name, contract in keys]
    subject = {"name": "s", "history_owner": "library", "contract_aware": aware}
    trials = [trial for trial, _, _ in keys]
    writer.document("records/plan.json", {
        "schema": "endmark.plan/1", "subject": subject, "suites": ["mini"], "trials": trials,
    })  # fmt: skip
    sent = {NAMES[name]: (BODIES / name).stat().st_size for name in EXAMPLES}
    notes = [
        {
            "schema": "endmark.volatile/1", "trial": row["trial"], "host": "127.0.0.1", "port": 1, "path": "/",
            "started_ms": 0, "duration_ms": 0, "sent_bytes": sent[row["case"]], "server_end": "played",
            "redacted": [], "message": None, "note": None,
        }
        for row in rows
    ]  # fmt: skip
    for kind, values in (("records", rows), ("volatile", notes)):
        lines = b"".join(audit.canonical(value) + b"\n" for value in values)
        (writer.data / kind / "trials-00000.jsonl").write_bytes(lines)
    writer.document("volatile/run.json", {
        "schema": "endmark.run/1", "run_id": "r", "started_at": "2026-11-30T00:00:00Z",
        "finished_at": "2026-11-30T00:00:00Z", "host": "h", "jobs": 1, "port": 0,
    })  # fmt: skip
    writer.document("provenance.json", {
        "schema": "endmark.provenance/1", "endmark": "0", "python": "3", "platform": "p", "packages": {}, "sources": {},
        "subject": {"name": "s", "version": "0", "language": "l", "dialects": DIALECTS, "capabilities": []},
    })  # fmt: skip
    (folder / "bagit.txt").write_bytes(audit.BAGIT_TXT)
    (folder / "bag-info.txt").write_bytes(audit.BAG_INFO_TXT)
    manifest(folder, "data")
    seal = "".join(f"{sha256((folder / place).read_bytes())}  {place}\n" for place in audit.SEALED)
    (folder / audit.SEAL).write_text(seal)


def report_of(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """What --json prints."""
    code = audit.main([str(folder), "--json", *options])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == audit.exit_code(report)
    return report


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    """The verdict of every trial; the archive itself is sound."""
    assert report["findings"] == []
    return {row["trial"]: row["verdict"] for row in report["trials"]}


def test_everything_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every trial of a subject that does all as judged is AGREE, and the report says what was read."""
    build(tmp_path)
    report = report_of(tmp_path, capsys)
    assert set(verdicts(report).values()) == {"AGREE"}
    assert len(report["trials"]) == 2 * len(EXAMPLES)
    assert {note["code"] for note in report["notes"]} == {"N-UNPINNED"}
    row = next(row for row in report["trials"] if row["trial"] == "mini/ant-tool@strict/1")
    assert row["label"]["class"] == row["derived"]["class"] == row["claim"]["class"] == "tools"
    assert (row["derived"]["unknown_events"], row["claim"]["dispatched"]) == (0, 0)
    assert audit.main([str(tmp_path), "--trace", "bed-text"]) == 0
    assert "event/messageStop" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bed_text.bin", "oll_tool.ndjson", "gem_text.sse", "coh_tool.sse"])
def test_traces(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace of every framing: events are contiguous and have their types."""
    build(tmp_path)
    trace = report_of(tmp_path, capsys, "--trace", f"mini/{NAMES[name]}@strict/1")["trace"]
    events = trace["events"]
    assert events[0]["start"] == 0
    for event, following in itertools.pairwise(events):
        assert event["end"] == following["start"]
    assert all(event["type"] and type(event["data"]) is str for event in events)
    assert trace["end"]["outcome"] == "COMPLETE"
    assert trace["end"]["kind"] == ("eof" if name.startswith("gem") else "settled")
    assert (events[-1]["after"] == "finished") is name.startswith("gem")


def test_a_dispatched_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing may be dispatched, whoever claims it."""
    for aware in (True, False):
        folder = tmp_path / str(aware)
        build(folder, {"dispatched": 1}, aware=aware)
        assert set(verdicts(report_of(folder, capsys)).values()) == {"FALSE_COMMIT"}


def test_a_wrong_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong class is MISREPORTED, or a conflict where a label states it."""
    build(tmp_path / "claimed", {"class": "paused"})
    assert set(verdicts(report_of(tmp_path / "claimed", capsys)).values()) == {"MISREPORTED"}
    build(tmp_path / "labelled", labelled={"class": "paused"})
    assert set(verdicts(report_of(tmp_path / "labelled", capsys)).values()) == {"LABEL_CONFLICT"}
    build(tmp_path / "not-labelled", labelled={"class": None})
    assert set(verdicts(report_of(tmp_path / "not-labelled", capsys)).values()) == {"AGREE"}


def test_an_unaware_subject(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who knows no contract is judged on the history alone."""
    build(tmp_path, {"outcome": "OK", "class": None, "dispatched": None}, aware=False)
    assert set(verdicts(report_of(tmp_path, capsys)).values()) == {"AGREE"}
