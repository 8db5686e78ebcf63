"""Every case of every suite, without HTTP: the auditor reads from its bytes what a person wrote in its label."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import audit

CASES = Path(__file__).resolve().parents[2] / "cases"
SUITES = sorted(path.parent.name for path in CASES.glob("*/suite.toml"))
FOLDERS = sorted(path.parent.relative_to(CASES).as_posix() for path in CASES.glob("*/*/case.toml"))
# Cases with steps have labels of another form: read in test_sessions.py, and all run in tests/test_all_suites.py.
SESSIONS = [name for name in FOLDERS if "step" in tomllib.loads((CASES / name / "case.toml").read_text("utf-8"))]
CONTRACTS = {"frozen": ["frozen-text/1"], "sessions": ["strict/1", "naive/1"]}


@pytest.fixture(scope="module")
def shipped() -> audit.Archive:
    """The shipped cases where an archive has its copies."""
    found = audit.Findings()
    archive = audit.scan(str(CASES), found)
    archive.present = {f"data/suite/{path}" for path in archive.present}
    archive.files = {f"data/suite/{path}": data for path, data in archive.files.items()}
    archive.digests = {f"data/suite/{path}": digest for path, digest in archive.digests.items()}
    return archive


def suite_of(archive: audit.Archive, name: str) -> audit.Suite:
    """A suite, with the cases that its manifest lists."""
    suite = audit.load_suite(archive, name, audit.manifest(archive, f"data/suite/{name}/manifest-sha256.txt"))
    assert suite is not None
    return suite


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_readable(name: str, shipped: audit.Archive) -> None:
    """A shipped suite states its contracts, and its manifest lists the cases that are there."""
    suite = suite_of(shipped, name)
    assert suite.contracts == CONTRACTS.get(name, ["strict/1", "compat/1"])
    assert suite.cases == {folder.partition("/")[2] for folder in FOLDERS if folder.startswith(f"{name}/")}
    assert suite.question
    assert shipped.found.findings == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder not in SESSIONS])
def test_a_label_is_what_the_bytes_say(folder: str, shipped: audit.Archive) -> None:
    """Outcome, preview, commit and stated class of a case, under every contract of its suite."""
    place = f"data/suite/{folder}/"
    case = audit.load_case(shipped, place)
    assert case is not None
    for name in suite_of(shipped, folder.partition("/")[0]).contracts:
        contract, label = audit.load_contract(shipped, name), audit.load_label(shipped, place, name)
        assert contract is not None
        assert label is not None
        assert isinstance(case, audit.Case)
        derived = audit.derive(case, contract)
        assert (derived.outcome, derived.preview, derived.committed) == label[:3]
        assert label.ending in (None, derived.ending)
    assert shipped.found.findings == []
