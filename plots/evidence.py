"""Asks the auditor about an archive and turns its JSON into plain, checked values.

The auditor (`audit.py`, beside this package) is run as a process of its own and is the only source:
this file never opens the archive. It may not know how a verdict is reached or how anything is drawn.
An answer of another shape than docs/formats.md section 5 is a `RefusalError`, never a guess.
"""

from __future__ import annotations

import base64
import binascii
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AUDITOR = Path(__file__).resolve().parents[1] / "audit.py"
SCHEMA = "endmark.audit/1"


class RefusalError(Exception):
    """There is nothing to draw; the text is one line for a person, `code` the exit code."""

    def __init__(self, text: str, code: int = 2) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One row: what the subject claimed, or what the auditor derived where it did not claim that.

    `claimed` says whether it claimed a history at all: without that, nothing was committed or refused.
    """

    trial: str
    suite: str
    case: str
    verdict: str
    outcome: str
    preview: str
    committed: bool
    claimed: bool

    @property
    def agrees(self) -> bool:
        """Whether the auditor agreed with every claim."""
        return self.verdict == "AGREE"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A sound archive as the auditor sees it; `of` is the size of its suites, in trials."""

    subject: str
    stable_root: str
    of: int
    partial: bool
    trials: tuple[Trial, ...]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One dispatched event; `start` and `end` are offsets into the body, in bytes."""

    start: int
    end: int
    signals: tuple[str, ...]
    before: str
    after: str
    preview: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One exchange; all offsets are body bytes from 0, after HTTP framing was taken away."""

    trial: str
    case: str
    body: bytes
    read_ends: tuple[int, ...]
    chunk_ends: tuple[int, ...]
    characters: tuple[tuple[int, int], ...]
    events: tuple[Event, ...]
    end_kind: str
    end_byte: int
    outcome: str
    why: str


# ---------------------------------------------------------------------------------------------
# Asking


def ask(archive: str, trace: str | None = None, auditor: Path | None = None) -> dict[str, Any]:
    """The auditor's object for a sound archive; anything else is a refusal."""
    auditor = auditor or AUDITOR
    command = [sys.executable, "-I", "-S", str(auditor), archive, "--json"]
    if trace is not None:
        command += ["--trace", trace]
    if not auditor.is_file():
        raise RefusalError(f"no auditor at {auditor}: it belongs beside this package")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise RefusalError(_complaint(done.stderr) or f"the auditor ended with {done.returncode} and no message")
    return accept(done.stdout, _complaint(done.stderr))


def accept(stdout: bytes, complaint: str = "") -> dict[str, Any]:
    """The auditor's standard output as an object, if it is one and tells of a sound archive."""
    try:
        report = json.loads(stdout.decode("utf-8"))
    except ValueError:
        raise RefusalError(f"the auditor's answer is no JSON: {complaint or 'it said nothing else'}") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise RefusalError(f"the auditor's answer is not {SCHEMA}")
    findings = _list(report, "findings")
    if findings:
        raise RefusalError(f"the archive is not sound, nothing is drawn: {_finding(findings)}", code=1)
    return report


def one_line(text: str) -> str:
    """The text with everything but printable characters made blank, so that it stays one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _complaint(stderr: bytes) -> str:
    """The last line a process wrote on standard error."""
    lines = [one_line(line) for line in stderr.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _finding(findings: list[Any]) -> str:
    """The first finding in one line, and how many more there are."""
    first = _object(findings[0], "findings[0]")
    words = one_line(" ".join(_text(first, key) for key in ("code", "place", "text")))
    return words if len(findings) == 1 else f"{words} (and {len(findings) - 1} more)"


# ---------------------------------------------------------------------------------------------
# Reading the answer


def read_audit(report: dict[str, Any]) -> Audit:
    """The rows for the picture of previews."""
    coverage = _object(report.get("coverage"), "coverage")
    trials = tuple(_trial(row) for row in _list(report, "trials"))
    if not trials:
        raise RefusalError("the archive holds no trial: nothing to draw")
    return Audit(
        subject=_subject(report.get("subject")),
        stable_root=_text(report, "stable_root"),
        of=_whole(coverage, "of"),
        partial=bool(coverage.get("partial")),
        trials=trials,
    )


def read_trace(report: dict[str, Any]) -> Trace:
    """The exchange for the picture of lanes."""
    if report.get("trace") is None:
        raise RefusalError("the auditor gave no trace for this case")
    trace = _object(report["trace"], "trace")
    end = _object(trace.get("end"), "end")
    trial, body = _text(trace, "trial"), _body(trace)
    found = Trace(
        trial=trial,
        case=trial.rpartition("@")[0].rpartition("/")[2] or trial,
        body=body,
        read_ends=_offsets(trace, "read_ends"),
        chunk_ends=_offsets(trace, "chunk_ends"),
        characters=tuple(_span(pair) for pair in _list(trace, "characters")),
        events=tuple(_event(event) for event in _list(trace, "events")),
        end_kind=_text(end, "kind"),
        end_byte=_whole(end, "at_byte"),
        outcome=_text(end, "outcome"),
        why=_text(end, "why"),
    )
    if max([found.end_byte, *found.read_ends, *(event.end for event in found.events)]) > len(body):
        raise RefusalError(f"the auditor's trace of {one_line(trial)} goes beyond the end of the body")
    return found


def _trial(row: Any) -> Trial:
    """One row; every claim that was not made is filled in from what the auditor derived."""
    row = _object(row, "trials[]")
    derived, claim = _object(row.get("derived"), "derived"), row.get("claim") or {}
    shown = {key: derived.get(key) if claim.get(key) is None else claim[key] for key in _SHOWN}
    if "stored" in derived:  # a session: its screen in the end, and whether anything stayed
        stored = derived["stored"] if claim.get("stored") is None else claim["stored"]
        shown = {
            "outcome": shown["outcome"] or "no outcome",
            "preview": derived.get("display") if claim.get("display") is None else claim["display"],
            "committed": bool(stored),
        }
    return Trial(
        trial=_text(row, "trial"),
        suite=_text(row, "suite"),
        case=_text(row, "case"),
        verdict=_text(row, "verdict"),
        outcome=_text(shown, "outcome"),
        preview=_text(shown, "preview"),
        committed=bool(shown["committed"]),
        claimed=claim.get("committed") is not None,
    )


_SHOWN = ("outcome", "preview", "committed")


def _event(event: Any) -> Event:
    """One event of a trace."""
    event = _object(event, "events[]")
    return Event(
        start=_whole(event, "start"),
        end=_whole(event, "end"),
        signals=tuple(str(signal) for signal in _list(event, "signals")),
        before=_text(event, "before"),
        after=_text(event, "after"),
        preview=_text(event, "preview"),
        note=str(event.get("note") or ""),
    )


def _subject(subject: Any) -> str:
    """The subject's name, whether the auditor gives a name or an object with one."""
    if isinstance(subject, dict):
        subject = subject.get("name")
    if not isinstance(subject, str):
        raise RefusalError("the auditor's answer names no subject")
    return subject


def _body(trace: dict[str, Any]) -> bytes:
    """The bytes of the body."""
    try:
        return base64.b64decode(_text(trace, "body"), validate=True)
    except binascii.Error:
        raise RefusalError("the auditor's answer: the body of the trace is no base64") from None


def _object(value: Any, name: str) -> dict[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise RefusalError(f"the auditor's answer: {name} is not an object")
    return value


def _list(record: dict[str, Any], key: str) -> list[Any]:
    """A member that must be a list."""
    value = record.get(key)
    if not isinstance(value, list):
        raise RefusalError(f"the auditor's answer: {key} is not a list")
    return value


def _text(record: dict[str, Any], key: str) -> str:
    """A member that must be a string."""
    value = record.get(key)
    if not isinstance(value, str):
        raise RefusalError(f"the auditor's answer: {key} is not a string")
    return value


def _whole(record: dict[str, Any], key: str) -> int:
    """A member that must be a whole number, 0 or more."""
    value = record.get(key)
    if type(value) is not int or value < 0:
        raise RefusalError(f"the auditor's answer: {key} is not a whole number")
    return value


def _offsets(record: dict[str, Any], key: str) -> tuple[int, ...]:
    """A member that must be a list of offsets, in bytes."""
    return tuple(_whole({key: value}, key) for value in _list(record, key))


def _span(pair: Any) -> tuple[int, int]:
    """A `[start, end]` pair of offsets, in bytes."""
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise RefusalError("the auditor's answer: a span is not a pair of offsets")
    return _whole({"span": pair[0]}, "span"), _whole({"span": pair[1]}, "span")
