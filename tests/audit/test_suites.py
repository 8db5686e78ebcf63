"""Every case of every suite, without HTTP: the auditor reads from its bytes what a person wrote in its label."""

from __future__ import annotations

from pathlib import Path

import pytest

import audit

CASES = Path(__file__).resolve().parents[2] / "cases"
SUITES = sorted(path.parent.name for path in CASES.glob("*/suite.toml"))
# Cases of one attempt; sessions are read in test_sessions.py, and run in tests/test_all_suites.py.
FOLDERS = sorted(
    path.parent.relative_to(CASES).as_posix()
    for path in CASES.glob("*/*/case.toml")
    if "[[step]]" not in path.read_text(encoding="utf-8")
)


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
    assert suite.contracts == (["frozen-text/1"] if name == "frozen" else ["strict/1", "compat/1"])
    assert suite.cases == {folder.partition("/")[2] for folder in FOLDERS if folder.startswith(f"{name}/")}
    assert suite.question
    assert shipped.found.findings == []


@pytest.mark.parametrize("folder", FOLDERS)
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
