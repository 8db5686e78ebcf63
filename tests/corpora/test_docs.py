"""docs/corpora.md says what the data files say: its tables are these, line by line."""

from pathlib import Path

from . import json_suite
from .test_event_streams import SUITES
from .test_json import AGAINST_THE_NAME, DECISIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "corpora.md").read_text("utf-8")


def decision_rows() -> list[str]:
    """Give the table of decisions, one row a file."""
    rows = ["| file | decision | why |", "|---|---|---|"]
    for row in AGAINST_THE_NAME + DECISIONS:
        said = f"accept, as `{row['reads']}`" if row["decision"] == "accept" else f"refuse, `{row['outcome']}`"
        rows.append(f"| `{row['file']}` | {said} | {row['why']} |")
    return rows


def count_rows() -> list[str]:
    """Give the table of the two suites: how many tests there are, and what became of them."""
    rows = ["| suite | tests | as vectors | vectors | left out |", "|---|---|---|---|---|"]
    for name, suite in SUITES.items():
        left_out = sum(len(group["tests"]) for group in suite["left_out"])
        tests = len(suite["tests"])
        rows.append(f"| `{name}.toml` | {tests} | {tests - left_out} | {len(suite['vector'])} | {left_out} |")
    return rows


def reason_rows() -> list[str]:
    """Give the table of reasons, each with the number of tests that it leaves out."""
    rows = ["| suite | left out | why |", "|---|---|---|"]
    for name, suite in SUITES.items():
        rows += [f"| `{name}.toml` | {len(group['tests'])} | {group['why']} |" for group in suite["left_out"]]
    return rows


def tables(page: str) -> list[list[str]]:
    """Give the tables of a page as lists of lines."""
    return [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]


def test_tables() -> None:
    """The page has exactly the tables of the data files."""
    assert tables(PAGE) == [decision_rows(), count_rows(), reason_rows()]


def test_sources() -> None:
    """The page names the sources by commit, and the numbers that the corpus is held to."""
    for fact in (json_suite.COMMIT, str(json_suite.FILES), "make corpora", "pyjson5"):
        assert fact in PAGE
