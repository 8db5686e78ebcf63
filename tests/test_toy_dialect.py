"""The README's section on a new dialect, carried out to the letter in a copy of the checkout."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.readme import README, copy_checkout, environment

SECTION = README.read_text("utf-8").split("### Add a dialect")[1].split("\n## ")[0]
BLOCKS = re.findall(r"^```(?:python|toml)\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)

CASES = {
    "answer": ('data: {"say":"hi"}\n\ndata: {"say":" you"}\n\ndata: {"end":"fine"}\n\n', "COMPLETE", "hi you"),
    "cut": ('data: {"say":"hi"}\n\n', "INCOMPLETE_STREAM", "hi"),
    "tired": ('data: {"say":"hi"}\n\ndata: {"end":"tired"}\n\n', "INCOMPLETE_FINISH", "hi"),
    "unlisted": ('data: {"say":"hi"}\n\ndata: {"end":"odd"}\n\n', "UNSUPPORTED_OUTCOME", "hi"),
    "wrong-shape": ('data: {"say":1}\n\n', "PROTOCOL", ""),
}

LABEL = """\
why = "A toy."
authority = "spec"
url = "contracts/toy-1.toml"
date = 2026-11-30

[contract."toy/1"]
outcome = "{outcome}"
preview = "{preview}"
committed = {committed}
"""


def add_dialect(home: Path) -> None:
    """Put the README's four blocks where it says they go."""
    client, reader, row, rules = BLOCKS
    (home / "client" / "dialects" / "toy.py").write_text(client, encoding="utf-8")
    audit = (home / "audit.py").read_text("utf-8")
    head, table, tail = audit.partition("DIALECTS: dict[str, Dialect] = {\n")
    assert table
    (home / "audit.py").write_text(f"{head}{reader}\n\n{table}{row}{tail}", encoding="utf-8")
    contracts = home / "cases" / "contracts"
    strict = (contracts / "strict-1.toml").read_text("utf-8").replace("strict/1", "toy/1")
    (contracts / "toy-1.toml").write_text(f"{strict}\n{rules}", encoding="utf-8")


def add_cases(home: Path) -> None:
    """Write a suite of the toy's own."""
    suite = home / "cases" / "toy"
    shared = (home / "cases" / "frozen" / "suite.toml").read_text("utf-8")
    suite.mkdir()
    (suite / "suite.toml").write_text(shared.replace('"frozen"', '"toy"').replace("frozen-text/1", "toy/1"))
    for name, (body, outcome, preview) in CASES.items():
        folder = suite / name
        folder.mkdir()
        (folder / "body.sse").write_bytes(body.encode())
        (folder / "case.toml").write_text(
            f'title = "{name}"\ndialect = "toy"\nreference = "the toy"\n\n'
            '[client]\nread_cap_bytes = 7\n\n[[exchange]]\nbody = "body.sse"\n'
        )
        committed = "true" if outcome == "COMPLETE" else "false"
        (folder / "label.toml").write_text(LABEL.format(outcome=outcome, preview=preview, committed=committed))


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the copy's own run.py."""
    command = [sys.executable, "run.py", *words]
    return subprocess.run(command, cwd=home, env=environment(), capture_output=True, text=True, check=False)


def test_a_dialect_is_one_file_one_row_and_its_cases(tmp_path: Path) -> None:
    """Client, auditor and labels agree on every case of a dialect that did not exist before."""
    home = copy_checkout(tmp_path)
    add_dialect(home)
    add_cases(home)
    for suite in ("contracts", "toy"):
        assert run(home, "case", "freeze", suite).returncode == 0
    done = run(home, "--suite", "toy", "--out", "evidence/toy", "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert {row["id"]: (row["outcome"], row["preview"], row["verdict"]) for row in rows} == {
        name: (outcome, preview, "AGREE") for name, (_, outcome, preview) in CASES.items()
    }


def test_the_auditor_needs_its_row(tmp_path: Path) -> None:
    """Without its row the auditor does not judge the dialect, so the run is not well."""
    home = copy_checkout(tmp_path)
    audit = (home / "audit.py").read_text("utf-8")
    add_dialect(home)
    (home / "audit.py").write_text(audit, encoding="utf-8")
    add_cases(home)
    for suite in ("contracts", "toy"):
        run(home, "case", "freeze", suite)
    assert run(home, "--suite", "toy", "--out", "evidence/toy").returncode == 1
