"""Keeps the private copy of the checkout in which sources are changed; knows files and nothing of tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
PLACE = HOME / ".mutants"
TREE = PLACE / "tree"
LEFT_OUT = ("evidence/",)


def make() -> None:
    """Copy what git knows or would add, as it is now."""
    shutil.rmtree(TREE, ignore_errors=True)
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(words, cwd=HOME, capture_output=True, check=True, timeout=60).stdout.decode().split("\0")
    for name in names:
        if name and not name.startswith(LEFT_OUT) and (HOME / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HOME / name, TREE / name)


def put(file: str, text: str, turn: int) -> None:
    """Write a source. Each turn has a time of its own, so that no compiled file of another passes for this one."""
    path = TREE / file
    path.write_text(text, encoding="utf-8", newline="")
    os.utime(path, (turn, turn))
