"""Runs in this process, and what they left: for the tests of `runner.py`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.archive import Archive
from harness.cases import load_suite
from harness.names import CASES
from harness.runner import Plan, run
from harness.subjects.registry import Subject

from .support import lines_of, run_async

# A subject that asks and reads to the end, or as far as it is told to.
ASKS = """
import http.client, urllib.parse

def ask(turn, path="/chat/completions", size=None):
    url = urllib.parse.urlsplit(turn["base_url"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    connection.request("POST", url.path + path, json.dumps(dict(model="m", messages=[], stream=True)))
    response = connection.getresponse()
    data = response.read() if size is None else b""
    response.close()
    connection.close()
    return data

ready()
while (turn := hear())["kind"] == "turn":
"""


def a_run(
    folder: Path,
    subject: Subject,
    pattern: str = "*",
    *,
    jobs: int = 1,
    cases: Path = CASES,
    on_trial: Callable[[str], None] = lambda _: None,
) -> tuple[Path, tuple[str, str]]:
    """Run a suite; give the archive and its roots."""
    archive = Archive(folder)
    plan = Plan(subject=subject, suites=(load_suite(cases, "frozen", pattern),))
    return folder, run_async(run(plan, archive, jobs, on_trial))


def records(archive: Path) -> dict[str, dict[str, Any]]:
    """Give the records of an archive by their case."""
    return trials(lines_of(archive / "data/records/trials-00000.jsonl"))


def volatile(archive: Path) -> dict[str, dict[str, Any]]:
    """Give the volatile lines by their case."""
    return trials(lines_of(archive / "data/volatile/trials-00000.jsonl"))


def blob(archive: Path, reference: dict[str, Any]) -> bytes:
    """Read a blob, and check its reference."""
    data = Path(archive, "data/blobs", str(reference["sha256"])).read_bytes()
    assert len(data) == reference["bytes"]
    return data


def trials(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Index records by their case."""
    return {record["trial"].split("/")[1].split("@")[0]: record for record in records}
