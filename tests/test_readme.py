"""Every command and code block of the README is run, and prints what the README says."""

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cases import load_suite
from harness.names import CASES
from harness.server.app import FixtureServer
from tests.readme import README, copy_checkout, environment, play

TEXT = README.read_text("utf-8")


def test_console_blocks(tmp_path: Path) -> None:
    """Every console block prints what stands under it."""
    assert play(TEXT, copy_checkout(tmp_path)) == TEXT


def test_a_wrong_transcript_is_found(tmp_path: Path) -> None:
    """A line that is not what is printed makes the comparison fail."""
    wrong = "```console\n$ echo right\nwrong\n```\n"
    assert play(wrong, tmp_path) != wrong


@pytest.mark.parametrize(
    ("case", "line"),
    [("seven-byte", "kept: 你好，Java 🌱"), ("missing-done", "not kept: INCOMPLETE_STREAM - ")],
)
def test_python_block(case: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The code block keeps a whole answer and does not keep half of one."""
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "async def main" in block)
    namespace: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), namespace)

    async def ask() -> None:
        async with FixtureServer() as server:
            (suite,) = (load_suite(CASES, "frozen", case),)
            await namespace["main"](server.open(suite.cases[0]).base_url)

    asyncio.run(ask())
    assert capsys.readouterr().out.startswith(line)


def test_make_run(tmp_path: Path) -> None:
    """`make run` runs, archives, audits and draws in one command, also below a path with a space."""
    home = copy_checkout(tmp_path / "a path")
    fake_venv(home)
    done = subprocess.run(
        ["make", "run", "OUT=evidence/made"], cwd=home, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "verdicts: 22 AGREE" in done.stdout
    assert (home / "evidence" / "made.previews.png").stat().st_size > 10_000


def fake_venv(home: Path) -> None:
    """Give a copy an environment that is this interpreter, so that nothing is installed."""
    python = home / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    for stamp in ("run.stamp", "dev.stamp"):
        (home / ".venv" / stamp).touch()


def test_make_names_every_target() -> None:
    """`make help` lists the targets that the README and the tests speak of."""
    done = subprocess.run(["make", "help"], cwd=README.parent, capture_output=True, text=True, check=True)
    listed = {line.split()[1] for line in done.stdout.splitlines()}
    assert {"run", "test", "audit", "plot", "case", "freeze", "lint", "bench", "fuzz", "clean", "help"} <= listed


def test_first_lines_name_two_commands() -> None:
    """The first commands that a reader meets are `make run` and `make test`, and the targets exist."""
    first = [line for line in TEXT.splitlines() if line.startswith(("make ", "$ "))][:2]
    assert [line.split("#")[0].strip() for line in first] == ["make run", "make test"]
    if shutil.which("make"):
        for target in ("run", "test"):
            subprocess.run(["make", "-n", target], cwd=README.parent, capture_output=True, check=True)
