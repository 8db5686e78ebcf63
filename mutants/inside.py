"""Runs a command-line tool of the tree inside this process where a test asks for a process of its own.

A test that calls `python -I -S audit.py ...` sees the same exit code and output, some hundred times as fast. What
only a process shows (its environment, a closed stdout) is left to a process.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CARED_FOR = {"capture_output", "text", "timeout", "check", "cwd", "stdout", "stderr"}
Run = Callable[..., "subprocess.CompletedProcess[Any]"]


def may_be_inside(command: Any, keywords: dict[str, Any], tool: Path) -> bool:
    """Whether a call of subprocess.run asks for the tool, and for nothing that only a process has."""
    if not isinstance(command, list) or [*map(str, command[1:4])] != ["-I", "-S", str(tool)]:
        return False
    pipes = {keywords.get("stdout", subprocess.PIPE), keywords.get("stderr", subprocess.PIPE)}
    return keywords.keys() <= CARED_FOR and pipes == {subprocess.PIPE}


def call(tool: Path, words: list[str], keywords: dict[str, Any]) -> subprocess.CompletedProcess[Any]:
    """Call main of the module of that name."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(contextlib.chdir(keywords.get("cwd") or os.getcwd()))
        try:
            code = importlib.import_module(tool.stem).main(words)
        except SystemExit as end:
            code = end.code
        said: list[Any] = []
        for stream in (out, err):
            stream.flush()
            raw = stream.buffer.getvalue()  # type: ignore[attr-defined]
            said.append(raw.decode() if keywords.get("text") else raw)
    return subprocess.CompletedProcess([str(tool), *words], code, *said)


def patched(tool: Path, process: Run) -> Run:
    """Give a subprocess.run that stays inside where it can."""

    def run(command: Any, **keywords: Any) -> subprocess.CompletedProcess[Any]:
        if may_be_inside(command, keywords, tool):
            return call(tool, [*map(str, command[4:])], keywords)
        return process(command, **keywords)

    return run


def patch(tool: Path) -> None:
    """Let every test of this process stay inside."""
    subprocess.run = patched(tool, subprocess.run)  # type: ignore[assignment]
    sys.dont_write_bytecode = True
