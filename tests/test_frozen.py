"""The main job, end to end: 22 cases over real HTTP, each row equal to the original experiment's."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).resolve().parents[1]
FACTS: dict[str, Any] = json.loads((HOME / "tests" / "vectors" / "frozen-22.json").read_text("utf-8"))
REFERENCE = HOME / "evidence" / "reference-frozen"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `run.py` from the checkout."""
    return subprocess.run([sys.executable, "run.py", *words], cwd=HOME, capture_output=True, text=True, check=False)


def audit(*words: str) -> tuple[int, dict[str, Any]]:
    """Audit an archive by the command line; give exit code and report."""
    command = [sys.executable, "-I", "-S", "audit.py", *words, "--json"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Make one run with --json, in a path with spaces and non-ASCII characters."""
    out = tmp_path_factory.mktemp("a run") / "läuft 你好"
    done = run("--suite", "frozen", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


@pytest.mark.parametrize("fact", FACTS["cases"], ids=[fact["id"] for fact in FACTS["cases"]])
def test_row(fact: dict[str, Any], fresh: tuple[Path, dict[str, Any]]) -> None:
    """The row of a case equals the archived run of the original experiment, key by key."""
    rows = {row["id"]: row for row in fresh[1]["rows"]}
    assert rows[fact["id"]] == fact | {"verdict": "AGREE"}


def test_totals(fresh: tuple[Path, dict[str, Any]]) -> None:
    """6 complete, 16 refused, 22 loopback requests, 0 provider requests, 13 replacement characters."""
    code, report = audit(str(fresh[0]))
    totals = {key: report["totals"][key] for key in ("trials", "complete", "refused")}
    assert code == 0
    assert totals == {"trials": 22, "complete": FACTS["totals"]["complete"], "refused": FACTS["totals"]["refused"]}
    assert (report["totals"]["loopback_requests"], report["totals"]["provider_requests"]) == (22, 0)
    naive = FACTS["naive_per_byte_decoding"]
    assert report["controls"]["naive_per_byte_replacements"] == {
        f"frozen/{naive['case']}@frozen-text/1": naive["replacement_characters"]
    }


def test_history_contents(fresh: tuple[Path, dict[str, Any]]) -> None:
    """The committed history is the two earlier entries, the question and the whole answer."""
    records = (fresh[0] / "data" / "records" / "trials-00000.jsonl").read_text().splitlines()
    found = {record["case"]: record for record in map(json.loads, records)}
    blob = found["one-byte"]["claim"]["history"]["sha256"]
    history = json.loads((fresh[0] / "data" / "blobs" / blob).read_text())
    letters = {"user": "U", "assistant": "A"}
    wanted = FACTS["history_before"] + ["U:question", f"A:{FACTS['pieces']['answer']}"]
    assert [f"{letters[entry['role']]}:{entry['content']}" for entry in history] == wanted


def test_stable_root_equals_the_reference(fresh: tuple[Path, dict[str, Any]]) -> None:
    """A fresh run has the stable root of the committed reference run."""
    code, report = audit(str(REFERENCE))
    assert code == 0
    assert fresh[1]["stable_root"] == report["stable_root"]


def test_jobs_do_not_matter(tmp_path: Path, fresh: tuple[Path, dict[str, Any]]) -> None:
    """Four trials at once give the same stable root as one after the other."""
    done = run("--out", str(tmp_path / "jobs"), "--jobs", "4", "--json")
    assert json.loads(done.stdout)["stable_root"] == fresh[1]["stable_root"]


@pytest.mark.parametrize("manifest", ["manifest-sha256.txt", "tagmanifest-sha256.txt"])
def test_coreutils_agree(manifest: str, fresh: tuple[Path, dict[str, Any]]) -> None:
    """`sha256sum -c --strict` passes on both manifests."""
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", manifest], cwd=fresh[0], check=True)


def test_the_facts_are_the_bodies() -> None:
    """The limits of the contract are those of the facts."""
    text = (HOME / "cases" / "contracts" / "frozen-text-1.toml").read_text("utf-8")
    for name, value in FACTS["limits"].items():
        key = {"processing_deadline_s": "deadline_ms", "data_events": "events"}.get(name, name.removesuffix("_units"))
        assert f"{key} = {value * 1000 if name.endswith('_s') else value}\n" in text
