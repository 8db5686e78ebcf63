"""The command: what it writes, what it refuses, and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plots.__main__ import main

Json = dict[str, Any]
Auditor = Callable[..., Path]
REFERENCE = Path(__file__).resolve().parents[2] / "evidence" / "reference-frozen"
FINDING = {"code": "BLOB_ALTERED", "place": "data/blobs/ab\n\x1b[2J", "text": "other bytes", "witness": ""}


def one_line(text: str) -> bool:
    """Whether the text is exactly one line."""
    return text.count("\n") == 1 and text.endswith("\n") and text[:-1].isprintable()


def test_pictures_lie_beside_the_archive(
    report: Json, auditor: Auditor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both pictures are written beside the archive, their paths printed, the fonts told in one line."""
    archive = auditor(report)
    assert main([f"{archive}/"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"{tmp_path}/run.previews.png", f"{tmp_path}/run.previews.svg"]
    assert (tmp_path / "run.previews.png").read_bytes().startswith(b"\x89PNG")
    assert one_line(err)
    assert err.startswith("fonts: DejaVu Sans")
    assert not list(archive.iterdir())


def test_auditor_is_asked_for_json(report: Json, auditor: Auditor, tmp_path: Path) -> None:
    """The auditor gets the directory, --json, and --trace with the case."""
    archive = auditor(report)
    main([str(archive), "--trace", "crlf"])
    assert (tmp_path / "asked").read_text().splitlines() == [str(archive), "--json", "--trace", "crlf"]


def test_lanes_carry_the_name_of_the_case(traced: Callable[[str], Json], auditor: Auditor, tmp_path: Path) -> None:
    """The lanes of a trial are named after its case, whatever name was asked for."""
    archive = auditor(traced("cancel"))
    assert main([str(archive), "--trace", "frozen/cancel@frozen-text/1"]) == 0
    assert (tmp_path / "run.cancel.lanes.png").exists()
    assert (tmp_path / "run.cancel.lanes.svg").exists()


def test_out(report: Json, auditor: Auditor, tmp_path: Path) -> None:
    """--out puts both pictures elsewhere, and a point in the stem is kept."""
    assert main([str(auditor(report)), "--out", str(tmp_path / "v1.2")]) == 0
    assert {"v1.2.png", "v1.2.svg"} <= {path.name for path in tmp_path.iterdir()}


def test_archive_stays_sealed(report: Json, auditor: Auditor, capsys: pytest.CaptureFixture[str]) -> None:
    """--out into the archive is refused, and nothing is written."""
    archive = auditor(report)
    assert main([str(archive), "--out", str(archive / "data" / "picture")]) == 2
    assert one_line(capsys.readouterr().err)
    assert not list(archive.iterdir())


def test_disagreement_is_no_obstacle(report: Json, auditor: Auditor) -> None:
    """A sound archive with a wrong subject, for which the auditor exits with 1, is drawn."""
    report["trials"][0]["verdict"] = "FALSE_COMMIT"
    assert main([str(auditor(report, 1))]) == 0


def test_unsound_archive_is_refused(
    report: Json, auditor: Auditor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive with findings is refused with 1 and the first finding, in one printable line."""
    archive = auditor({**report, "findings": [FINDING, FINDING]}, 1)
    assert main([str(archive)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err)
    assert "BLOB_ALTERED data/blobs/ab [2J other bytes (and 1 more)" in err
    assert not list(tmp_path.glob("*.png"))


def test_auditors_refusal_is_handed_on(auditor: Auditor, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the auditor exits with 2 its message is the one that is shown."""
    assert main([str(auditor("", 2, "audit.py: run: no bagit.txt"))]) == 2
    assert capsys.readouterr().err == "plots: audit.py: run: no bagit.txt\n"


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"schema": "endmark.audit/1"}', '{"schema": "endmark.audit/2"}'])
def test_nonsense_is_refused(auditor: Auditor, capsys: pytest.CaptureFixture[str], answer: str) -> None:
    """An answer of another shape is refused with 2 and one line."""
    assert main([str(auditor(answer))]) == 2
    assert one_line(capsys.readouterr().err)


@pytest.mark.parametrize("member", ["trials", "coverage", "subject", "stable_root"])
def test_missing_member_is_refused(report: Json, auditor: Auditor, member: str) -> None:
    """An answer without one of the members that are drawn is refused with 2."""
    del report[member]
    assert main([str(auditor(report))]) == 2


def test_no_trace_is_refused(report: Json, auditor: Auditor) -> None:
    """--trace without a trace in the answer is refused with 2."""
    assert main([str(auditor(report)), "--trace", "crlf"]) == 2


@pytest.mark.parametrize("argv", [[], ["a", "b"], ["a", "--from", "3"], ["a", "--trace", "c", "--to", "x"]])
def test_called_wrongly(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong arguments exit with 2."""
    assert main(argv) == 2
    assert "usage:" in capsys.readouterr().err


def test_unwritable_place(report: Json, auditor: Auditor, tmp_path: Path) -> None:
    """A place that cannot be written is told with 2."""
    assert main([str(auditor(report)), "--out", str(tmp_path / "none" / "x")]) == 2


def test_no_auditor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the auditor beside the package nothing can be drawn."""
    monkeypatch.setattr("plots.evidence.AUDITOR", tmp_path / "gone.py")
    assert main([str(tmp_path)]) == 2


def test_refusal_needs_no_matplotlib() -> None:
    """Matplotlib is imported only when something is drawn, so help and refusals are quick."""
    code = "import sys, plots.__main__ as m; m.main(['--help']); sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REFERENCE.parents[1], capture_output=True).returncode == 0


@pytest.mark.parametrize("more", [[], ["--trace", "one-byte"], ["--trace", "read-timeout"]])
def test_reference_archive(tmp_path: Path, more: list[str]) -> None:
    """What the real auditor says of the reference archive is understood and drawn."""
    assert main([str(REFERENCE), "--out", str(tmp_path / "picture"), *more]) == 0
    assert (tmp_path / "picture.png").stat().st_size > 20_000
