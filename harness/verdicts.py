"""Asks the auditor: the only source of verdicts, events and traces on this side of the wall.

The auditor is a program, not a module; it is run in its own process with the plain interpreter
and its JSON is read. Nothing here recomputes what it says.
"""

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


def command(*words: str) -> list[str]:
    """Give the command line that runs the auditor with these words."""
    return [sys.executable, "-I", "-S", "-c", _MAIN, str(AUDIT.parent), *words]


def audit(archive: Path, *options: str) -> dict[str, Any]:
    """Audit an archive; raise UsageError with the auditor's own words where it cannot."""
    words = command("--json", *options, "--", str(archive))
    done = subprocess.run(words, capture_output=True, timeout=_AUDIT_S, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(said[-1] if said else f"{archive}: the auditor ended with {done.returncode}, in silence")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def beside(archive: Path, ending: str) -> Path:
    """Name a file made from an archive: beside it, since the archive is sealed."""
    return archive.with_name(archive.name + ending)


def is_well(found: dict[str, Any]) -> bool:
    """Say whether the archive is sound and every verdict is AGREE."""
    return not found["findings"] and set(found["totals"]["verdicts"]) <= {"AGREE"}
