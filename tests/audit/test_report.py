"""The report, key by key and line by line, of an archive in which every number differs from its neighbour.

tests/vectors/report.json and report.txt are what docs/formats.md, section 5, says of that archive; the roots and
the path are put in here.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from . import forge as tools
from .forge import Forge, ask

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
KEPT = ("cancel", "crlf", "missing-done", "one-byte", "read-timeout", "wrong-mime")
QUESTION = {"content": "question", "role": "user"}


def spoil(archive: Forge) -> None:
    """A part of the suite: one claim wrong in every number, one missing, one server elsewhere, one file too many."""
    archive.keep_cases(*KEPT)
    archive.claim_history("cancel", [*archive.history("cancel"), QUESTION, {"content": "你", "role": "assistant"}])
    archive.claim_preview("cancel", "你🌱".encode())
    archive.change_claim(
        "cancel",
        **{"outcome": "X\x1b", "class": "C", "finish_reason": "F", "reads": 3, "transport_end": "T", "dispatched": 5},
    )
    archive.change_row("crlf", claim=None, no_claim="timeout")
    archive.change_volatile("one-byte", host="192.0.2.1")
    archive.change_volatile("wrong-mime", host="::1")
    archive.reseal()
    archive.write("bad.txt", b"x")


@pytest.fixture
def spoilt(archive: Forge) -> Forge:
    """That archive."""
    spoil(archive)
    return archive


def expected(name: str, archive: Forge) -> str:
    """A vector, with the roots and the path of an archive."""
    text = (VECTORS / name).read_text("utf-8")
    roots = {"{stable}": archive.stable_root(), "{full}": archive.full_root(), "{archive}": str(archive.folder)}
    for key, value in roots.items():
        text = text.replace(key, value)
    return text


def test_the_report(spoilt: Forge, court: ModuleType) -> None:
    """Every key of the object that --json prints, with a trace."""
    assert ask(court, spoilt.folder, "--trace", "cancel") == json.loads(expected("report.json", spoilt))


def test_the_text(spoilt: Forge) -> None:
    """What is wrong stands first, grouped by its code, the trace next, then the numbers, and the conclusion last."""
    command = [*tools.PYTHON, str(tools.AUDIT), str(spoilt.folder), "--trace", "cancel"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, expected("report.txt", spoilt), "")


class Terminal(io.TextIOWrapper):
    """A standard output that a person looks at."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding)

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """All that was printed."""
        self.flush()
        self.seek(0)
        return self.read()


COLOURS = {"E-": "31", "N-": "33", "FA": "31", "NO": "31", "au": "1"}


def test_the_colours(spoilt: Forge, court: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal findings and verdicts are red, notes yellow, the heading bold, and nothing else is changed."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert court.main([str(spoilt.folder), "--trace", "cancel"]) == 1
    lines = terminal.shown().splitlines()
    plain = expected("report.txt", spoilt).splitlines()
    assert [re.sub(r"\x1b\[[0-9]*m", "", line) for line in lines] == plain
    for line, bare in zip(lines, plain, strict=True):
        colour = COLOURS.get(bare[:2])
        painted = re.escape(bare[:12].rstrip()).replace("\\ ", " ")
        assert re.match(rf"\x1b\[{colour}m{painted}" if colour else re.escape(bare), line)
        assert line.count("\x1b[0m") == (colour is not None)


def test_a_sound_archive_is_green(good: Path, court: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conclusion is green where the exit code is 0."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert court.main([str(good)]) == 0
    last = terminal.shown().splitlines()[-1]
    assert last.startswith("\x1b[32mSELF-CONSISTENT, NOT ANCHORED: ")


def test_no_color(good: Path, court: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is heeded, and what stdout cannot carry is escaped."""
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert court.main([str(good), "--trace", "cancel"]) == 0
    shown = terminal.shown()
    assert "\x1b" not in shown
    assert "\\u4f60\\u597d\\uff0c" in shown


@pytest.mark.parametrize(
    ("anchored", "findings", "said"),
    [
        ("none", [], "SELF-CONSISTENT, NOT ANCHORED: "),
        ("none", ["x"], "NOT SOUND, NOT ANCHORED: "),
        ("root", [], "ANCHORED by --expect-root"),
        ("stable-root", ["x"], "NOT SOUND, though ANCHORED by --expect-stable-root"),
    ],
)
def test_the_conclusion(anchored: str, findings: list[str], said: str, court: ModuleType) -> None:
    """The last line says whether the archive is sound, and what that is worth."""
    assert court.anchor_line({"anchored": anchored, "findings": findings}).startswith(said)


ENDS: dict[str, Any] = {
    "cancel": {"kind": "settled", "at_byte": 86, "outcome": "CANCELLED"},
    "missing-done": {"kind": "eof", "at_byte": 153, "outcome": "INCOMPLETE_STREAM"},
    "read-timeout": {"kind": "timeout", "at_byte": 0, "outcome": "READ_TIMEOUT"},
    "wrong-mime": {"kind": "settled", "at_byte": 0, "outcome": "CONTENT_TYPE"},
}


@pytest.mark.parametrize("case", ENDS)
def test_the_end_of_a_trace(case: str, good: Path, court: ModuleType) -> None:
    """Where a turn was settled, and whether by an event, by the end or by silence."""
    trace = ask(court, good, "--trace", case)["trace"]
    del trace["end"]["why"]
    assert trace["end"] == ENDS[case]
    assert trace["chunk_ends"] == ([] if case == "read-timeout" else [{"missing-done": 153}.get(case, 253)])
    assert (trace["read_ends"] == []) is (case in ("read-timeout", "wrong-mime"))
