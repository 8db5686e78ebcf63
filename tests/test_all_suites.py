"""Every suite over real HTTP: three witnesses agree, and the wrong subjects are caught in every dialect."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).resolve().parents[1]
SUITES = sorted(path.parent.name for path in (HOME / "cases").glob("*/suite.toml"))
DIALECTS = sorted(set(SUITES) - {"frozen", "sessions", "wild"})

# What each control is caught for in a dialect's own suite; `never` loses good answers, the others keep broken ones.
CAUGHT = {
    "naive": "FALSE_COMMIT",
    "finish_only": "FALSE_COMMIT",
    "done_only": "FALSE_COMMIT",
    "never": "FALSE_WITHHOLD",
    "per_read": "ALTERED",
}


def run(out: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Run `run.py` from the checkout; give exit code and rows."""
    command = [sys.executable, "run.py", "--json", "--out", str(out), *words]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)["rows"]


@pytest.mark.parametrize("suite", SUITES)
def test_three_witnesses_agree(suite: str, tmp_path: Path) -> None:
    """Label, auditor and strict client agree on every case of a suite under every contract it states."""
    code, rows = run(tmp_path / "run", "--suite", suite)
    assert [row for row in rows if row["verdict"] != "AGREE"] == []
    assert code == 0


@pytest.mark.parametrize("control", CAUGHT)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_control_is_caught(dialect: str, control: str, tmp_path: Path) -> None:
    """A client that is wrong on purpose is caught in every dialect, for what is wrong with it."""
    code, rows = run(tmp_path / "run", "--suite", dialect, "--case", "[acdl]*", "--subject", f"_wrong/{control}")
    found = Counter(row["verdict"] for row in rows)
    wanted = "FALSE_WITHHOLD" if (dialect, control) == ("bedrock", "per_read") else CAUGHT[control]
    assert code == 1
    assert found[wanted] > 0, found
