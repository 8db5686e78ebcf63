"""`freeze.py`: freezing is on purpose, refuses what no person has judged, and says the same twice."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cases import MANIFEST, load_suite, manifest_text
from harness.freeze import INDEX, freeze, index_text
from harness.names import CASES, UsageError

from .support import copy_cases, edit, tree

LABEL = "frozen/crlf/label.toml"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A copy of the committed cases."""
    return copy_cases(tmp_path)


@pytest.mark.parametrize("name", ["frozen", "contracts"])
def test_the_committed_manifests_are_current(name: str) -> None:
    """The committed manifests are what freezing would write."""
    assert (CASES / name / MANIFEST).read_text("ascii") == manifest_text(CASES / name)


def test_the_committed_index_is_current() -> None:
    """The committed index is what freezing would write."""
    assert (CASES / INDEX).read_text("ascii") == index_text(CASES)


@pytest.mark.parametrize("name", ["frozen", "contracts"])
def test_freezing_again_changes_nothing(cases: Path, name: str) -> None:
    """Freezing is idempotent, and gives the same digest."""
    first = freeze(cases, name)
    before = tree(cases)
    assert freeze(cases, name) == first
    assert tree(cases) == before
    assert (cases / "frozen" / MANIFEST).read_bytes() == (CASES / "frozen" / MANIFEST).read_bytes()


def test_a_change_on_purpose(cases: Path) -> None:
    """After a change a suite runs again once it was frozen, with another digest."""
    first = freeze(cases, "frozen")
    edit(cases / LABEL, 'why = "', 'why = "Again: ')
    with pytest.raises(UsageError, match="has sha256"):
        load_suite(cases, "frozen")
    assert freeze(cases, "frozen") != first
    assert load_suite(cases, "frozen").size == 22


def test_the_index(cases: Path) -> None:
    """The index has every case with dialect, title, body and label, for those who take the corpus alone."""
    freeze(cases, "frozen")
    suites = json.loads((cases / INDEX).read_text("ascii"))["suites"]
    suite = next(suite for suite in suites if suite["name"] == "frozen")
    assert (suite["name"], suite["licence"], len(suite["cases"])) == ("frozen", "CC0-1.0", 22)
    entry = next(case for case in suite["cases"] if case["name"] == "missing-done")
    assert entry["dialect"] == "openai-chat"
    assert entry["bodies"][0]["bytes"] == len((cases / "frozen/missing-done/body.sse").read_bytes())
    assert entry["label"]["contract"]["frozen-text/1"]["outcome"] == "INCOMPLETE_STREAM"


def unlabel(path: Path) -> None:
    """Leave a label without an outcome, as a new case is born."""
    edit(path, 'outcome = "COMPLETE"', '# outcome = ""')


REFUSED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "no outcome": (LABEL, unlabel, r'crlf/label\.toml: no outcome under \[contract\."frozen-text/1"\]: a person'),
    "no label": (LABEL, Path.unlink, r"crlf/label\.toml: cannot be read"),
    "label is no TOML": (LABEL, lambda path: path.write_text("x\n"), r"label\.toml: .*line 1"),
    "contract is no table": (LABEL, lambda path: path.write_text("contract = 3\n"), r"label\.toml: .*contract"),
    "a contract is no table": (
        LABEL,
        lambda path: path.write_text('[contract]\n"frozen-text/1" = 3\n'),
        "no outcome under",
    ),
    "another contract": (LABEL, lambda path: edit(path, "frozen-text/1", "frozen-text/2"), "no outcome under"),
    "unknown outcome": (LABEL, lambda path: edit(path, '"COMPLETE"', '"FINE"'), r"label\.toml: .*outcome: 'FINE'"),
    "unknown key": (LABEL, lambda path: edit(path, "why = ", 'colour = "red"\nwhy = '), r"label\.toml: .*'colour'"),
    "unknown authority": (LABEL, lambda path: edit(path, '"spec"', '"hearsay"'), r"label\.toml: authority: 'hearsay'"),
    "no why": (LABEL, lambda path: edit(path, "why = ", "y = "), r"label\.toml: "),
    "a date that is none": (LABEL, lambda path: edit(path, "date = 2026-11-30", 'date = "soon"'), "date: 'soon'"),
    "committed is text": (LABEL, lambda path: edit(path, "committed = true", 'committed = "yes"'), "committed: 'yes'"),
    "case is wrong": (
        "frozen/crlf/case.toml",
        lambda path: edit(path, "read_cap_bytes = 7", "read_cap_bytes = 0"),
        r"case\.toml: client\.read_cap_bytes: 0",
    ),
    "body is gone": ("frozen/crlf/body.sse", Path.unlink, r"body\.sse: cannot be read"),
    "case folder without case.toml": (
        "frozen/crlf/case.toml",
        Path.unlink,
        r"crlf: no case\.toml",
    ),
    "a name that is none": ("frozen/crlf/My Notes.txt", lambda path: path.write_text("x"), "names match"),
    "a case name that is none": (
        "frozen/Crlf",
        lambda path: shutil.copytree(path.parent / "crlf", path),
        "names match",
    ),
    "the suite's name": ("frozen/suite.toml", lambda path: edit(path, 'name = "frozen"', 'name = "x"'), "name is 'x'"),
    "the suite's keys": ("frozen/suite.toml", lambda path: edit(path, 'name = "frozen"', "x = 1"), r"suite\.toml: "),
    "no suite.toml": ("frozen/suite.toml", Path.unlink, r"suite\.toml: cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(cases: Path, name: str) -> None:
    """A suite that a person has not finished is not frozen, and nothing is written."""
    where, spoil, message = REFUSED[name]
    spoil(cases / where)
    before = tree(cases)
    with pytest.raises(UsageError, match=message) as caught:
        freeze(cases, "frozen")
    assert "\n" not in str(caught.value)
    assert tree(cases) == before


def test_an_empty_suite(cases: Path) -> None:
    """A suite without a case is not frozen."""
    for path in (cases / "frozen").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    with pytest.raises(UsageError, match="no case in this suite"):
        freeze(cases, "frozen")


@pytest.mark.parametrize("name", ["nowhere", "..", ".", "frozen/crlf"])
def test_no_such_suite(cases: Path, name: str) -> None:
    """What is no suite is not frozen."""
    with pytest.raises(UsageError):
        freeze(cases, name)
    assert tree(cases) == tree(CASES)


def test_an_unfinished_suite_beside(cases: Path) -> None:
    """A suite beside it that is not frozen yet is no matter, and does not enter the index."""
    shutil.copytree(cases / "frozen", cases / "mine")
    edit(cases / "mine/suite.toml", 'name = "frozen"', 'name = "mine"')
    (cases / "mine" / MANIFEST).unlink()
    unlabel(cases / "mine/crlf/label.toml")
    freeze(cases, "frozen")
    names = [suite["name"] for suite in json.loads((cases / INDEX).read_text("ascii"))["suites"]]
    assert "frozen" in names
    assert "mine" not in names
