"""Vectors and helpers for the tests of `plots`: hand-made answers of the auditor, and a stand-in for it.

The 22 rows of `data/audit-22.json` are those of the archived run 20261003-r2 of the original
experiment; the traces in `data/traces.json` are worked out by hand from the frozen bodies.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plots import evidence
from plots.fonts import Fonts, only

DATA = Path(__file__).parent / "data"
Json = dict[str, Any]


@pytest.fixture
def report() -> Json:
    """The auditor's answer for the 22 frozen cases, fresh for each test."""
    answer: Json = json.loads((DATA / "audit-22.json").read_text("utf-8"))
    return answer


@pytest.fixture
def traced(report: Json) -> Callable[[str], Json]:
    """The auditor's answer with the trace of a case."""
    traces = json.loads((DATA / "traces.json").read_text("utf-8"))
    return lambda case: {**report, "trace": copy.deepcopy(traces[case])}


@pytest.fixture
def bare() -> Fonts:
    """Fonts of a machine that has nothing but what comes with matplotlib."""
    return Fonts(only("DejaVu Sans"))


@pytest.fixture
def auditor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a stand-in in the auditor's place: it says the answer and ends with the exit code."""

    def stand_in(answer: Json | str, code: int = 0, complaint: str = "") -> Path:
        said = answer if isinstance(answer, str) else json.dumps(answer)
        script = tmp_path / "audit.py"
        script.write_text(
            "import sys\n"
            f"open({str(tmp_path / 'asked')!r}, 'w').write('\\n'.join(sys.argv[1:]))\n"
            f"print({said!r})\nprint({complaint!r}, file=sys.stderr)\nsys.exit({code})\n",
            "utf-8",
        )
        monkeypatch.setattr(evidence, "AUDITOR", script)
        archive = tmp_path / "run"
        archive.mkdir(exist_ok=True)
        return archive

    return stand_in
