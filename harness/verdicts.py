"""Asks the auditor: the only source of verdicts, events and traces on this side of the wall.

The auditor is a program, not a module; it is run in its own process with the plain interpreter
and its JSON is read. Nothing here recomputes what it says.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .names import AUDIT, UsageError

_AUDIT_S = 600

# The same program as `python3 -I -S audit.py`, but by way of its compiled form, which is cached:
# compiling it takes longer than auditing the frozen suite.
_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); import audit; sys.exit(audit.main(sys.argv[1:]))"

# The same, loaded before there is anything to audit: it waits for a line on its standard input.
_WAITING = _MAIN.replace("import audit;", "import audit; sys.stdin.readline() or sys.exit(2);")


def command(*words: str, main: str = _MAIN) -> list[str]:
    """Give the command line that runs the auditor with these words."""
    return [sys.executable, "-I", "-S", "-c", main, str(AUDIT.parent), *words]


def audit(archive: Path, *options: str) -> dict[str, Any]:
    """Audit an archive; raise UsageError with the auditor's own words where it cannot."""
    with Auditor(archive, *options) as auditor:
        auditor.begin()
        return auditor.report()


class Auditor:
    """An auditor that is loaded while the archive is still being written; a context manager.

    It looks at nothing before `begin` is called, and is ended with its context.
    """

    def __init__(self, archive: Path, *options: str) -> None:
        words = command("--json", *options, "--", str(archive), main=_WAITING)
        pipe = subprocess.PIPE
        self._archive = archive
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe)

    def __enter__(self) -> "Auditor":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self) -> None:
        """Let it audit: the archive is sealed."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it has ended already: its report says why
            self._process.stdin.write(b"begin\n")
            self._process.stdin.flush()

    def report(self) -> dict[str, Any]:
        """Wait for its report; raise UsageError with the auditor's own words where there is none."""
        out, err = self._process.communicate(timeout=_AUDIT_S)
        code = self._process.returncode
        if code not in (0, 1) or not out:
            said = err.decode("utf-8", "replace").strip().splitlines()
            raise UsageError(said[-1] if said else f"{self._archive}: the auditor ended with {code}, in silence")
        found: dict[str, Any] = json.loads(out)
        return found


def beside(archive: Path, ending: str) -> Path:
    """Name a file made from an archive: beside it, since the archive is sealed."""
    return archive.with_name(archive.name + ending)


def is_well(found: dict[str, Any]) -> bool:
    """Say whether the archive is sound and every verdict is AGREE."""
    return not found["findings"] and set(found["totals"]["verdicts"]) <= {"AGREE"}
