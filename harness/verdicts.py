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


def command(archive: Path, *options: str) -> list[str]:
    """Give the command line that audits an archive."""
    return [sys.executable, "-I", "-S", str(AUDIT), *options, "--", str(archive)]


def audit(archive: Path, *options: str) -> dict[str, Any]:
    """Audit an archive; raise UsageError with the auditor's own words where it cannot."""
    done = subprocess.run(command(archive, "--json", *options), capture_output=True, timeout=_AUDIT_S, check=False)
    if done.returncode not in (0, 1):
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(words[-1] if words else f"{archive}: the auditor ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def beside(archive: Path, ending: str) -> Path:
    """Name a file made from an archive: beside it, since the archive is sealed."""
    return archive.with_name(archive.name + ending)


def is_well(found: dict[str, Any]) -> bool:
    """Say whether the archive is sound and every verdict is AGREE."""
    return not found["findings"] and set(found["totals"]["verdicts"]) <= {"AGREE"}
