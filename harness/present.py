"""Words for a person: the table of a run. It formats what the auditor said, and decides nothing."""

import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

_COLUMNS = ("case", "outcome", "HTTP", "cap", "reads", "preview", "history", "verdict")
_RIGHT = frozenset({"HTTP", "cap", "reads"})
_PREVIEW_CELLS = 24

# With more trials than this, those that agree are counted and not listed.
_MOST_ROWS = 100

_PLAIN = {
    "AGREE": "right",
    "FALSE_COMMIT": "kept a broken answer",
    "FALSE_WITHHOLD": "threw away a good one",
    "ALTERED": "kept other text than was sent",
    "NON_STRICT": "kept what a judgement withholds",
    "OVER_STRICT": "withheld what a judgement accepts",
    "MISREPORTED": "history right, another claim wrong",
    "NO_CLAIM": "no claim",
    "UNSUPPORTED": "cannot take this case",
    "NOT_DELIVERED": "the fault never reached the wire",
    "LABEL_CONFLICT": "label and auditor differ: stop and look",
}

_GREEN, _RED, _DIM, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"


def rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give one row a trial, with the keys of the original experiment's facts, and the verdict."""
    trials = found["trials"]
    more = () if _is_one_suite(trials) else ("suite", "contract")
    return [_row(trial) | {key: trial[key] for key in more} for trial in trials]


def _row(trial: Mapping[str, Any]) -> dict[str, Any]:
    claim = trial["claim"] or {}
    if _is_session(trial):
        said = ("stored", "writes", "dispatched", "display", "state", "attempts")
        row = {"id": trial["case"], "body": trial["title"], "read_cap": trial["read_cap"]}
        return row | {key: claim.get(key) for key in said} | {"verdict": trial["verdict"]}
    row = {
        "id": trial["case"],
        "body": trial["title"],
        "bytes": trial["body_bytes"],
        "sha256": trial["body_sha256"],
        "status": trial["status"],
        "content_type": trial["content_type"],
        "http_chunk_offsets": trial["http_chunk_offsets"],
        "read_cap": trial["read_cap"],
        "outcome": claim.get("outcome"),
        "reads": claim.get("reads"),
        "preview": claim.get("preview"),
        "history_size": claim.get("history_size"),
        "committed": claim.get("committed"),
        "verdict": trial["verdict"],
    }
    if trial["cancel_after_utf16"] is not None:
        row["cancel_after_utf16_units"] = trial["cancel_after_utf16"]
    if trial["stall_ms"] is not None:
        row |= {"stall_ms": trial["stall_ms"], "read_timeout_ms": trial["read_timeout_ms"]}
    return row


def table(found: Mapping[str, Any], out: TextIO) -> None:
    """Print one line a trial; with colour where the stream is a terminal."""
    trials = found["trials"]
    named = "case" if _is_one_suite(trials) else "trial"
    if len(trials) > _MOST_ROWS:
        trials = [trial for trial in trials if trial["verdict"] != "AGREE"]
        print(f"{len(found['trials']) - len(trials)} trials AGREE and are not listed; --json has them", file=out)
        if not trials:
            return
    cells = [(named, *_COLUMNS[1:]), *((visible(trial[named]), *_cells(trial)) for trial in trials)]
    widths = [max(cells_wide(row[i]) for row in cells) for i in range(len(_COLUMNS))]
    colour = wants_colour(out)
    for number, row in enumerate(cells):
        text = "  ".join(_pad(cell, widths[i], _COLUMNS[i]) for i, cell in enumerate(row)).rstrip()
        if colour:
            mark = _DIM if number == 0 else _GREEN if row[-1].startswith("AGREE") else _RED
            text = f"{mark}{text}{_RESET}"
        print(text, file=out)


def _is_one_suite(trials: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether the name of a case is enough to tell the trials apart."""
    return len({(trial["suite"], trial["contract"]) for trial in trials}) == 1


def _is_session(trial: Mapping[str, Any]) -> bool:
    """Say whether a trial had several attempts (docs/attempts.md)."""
    return "attempts" in trial["derived"]


def _cells(trial: Mapping[str, Any]) -> tuple[str, ...]:
    claim, verdict = trial["claim"] or {}, trial["verdict"]
    said = verdict if verdict == "AGREE" else f"{verdict}: {plain(verdict)}"
    if _is_session(trial):
        shown = fit(claim.get("display") or "", _PREVIEW_CELLS)
        return attempts(trial), "-", _text(trial["read_cap"]), "-", shown, _kept(claim), said
    size, committed = claim.get("history_size"), claim.get("committed")
    before = trial["derived"]["history_size"] - (2 if trial["derived"]["committed"] else 0)
    history = "-" if size is None else f"{before} → {size}" if committed or size != before else f"{size}"
    return (
        _text(claim.get("outcome")),
        _text(trial["status"]),
        _text(trial["read_cap"]),
        _text(claim.get("reads")),
        fit(claim.get("preview") or "", _PREVIEW_CELLS),
        history,
        said,
    )


def attempts(trial: Mapping[str, Any]) -> str:
    """Say in words how each attempt of a session ended: the auditor's decision, the subject's outcome."""
    if not trial["claim"]:
        return "-"
    words = []
    for name, derived in sorted(trial["derived"]["attempts"].items()):
        outcome = (trial["claim"]["attempts"].get(name) or {}).get("outcome")
        tells = outcome and derived["decision"] in ("refused", "failed", "open")
        words.append(f"{name} {derived['decision']}{f' ({visible(str(outcome))})' if tells else ''}")
    return ", ".join(words)


def _kept(claim: Mapping[str, Any]) -> str:
    """Say how many answers a session's history holds in the end, and how often one was written where that differs."""
    if not claim:
        return "-"
    stored, writes = len(claim["stored"]), claim["writes"]
    return f"{stored} kept" if stored == writes else f"{stored} kept of {writes}"


def plain(verdict: str) -> str:
    """Say a verdict in plain words."""
    return _PLAIN.get(verdict, verdict)


def summary(found: Mapping[str, Any]) -> Iterable[str]:
    """Give the lines under the table: totals, the verdicts, the roots."""
    totals, coverage = found["totals"], found["coverage"]
    part = f" (PARTIAL {coverage['planned']} of {coverage['of']})" if coverage["partial"] else ""
    yield (
        f"{_count(totals['trials'], 'trial')}{part}, by the contract {totals['complete']} complete and "
        f"{totals['refused']} refused; {_count(totals['loopback_requests'], 'loopback request')}, "
        f"{_count(totals['provider_requests'], 'provider request')}"
    )
    counted = ", ".join(f"{count} {name}" for name, count in sorted(totals["verdicts"].items()))
    yield f"verdicts: {counted or 'none'}"
    for finding in [*found["findings"], *found["notes"]]:
        yield visible(f"{finding['code']}  {finding['place']}  {finding['text']}")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _text(value: object) -> str:
    return "-" if value is None else visible(str(value))


def _pad(text: str, width: int, column: str) -> str:
    space = " " * (width - cells_wide(text))
    return space + text if column in _RIGHT else text + space


def cells_wide(text: str) -> int:
    """Count terminal cells: East Asian wide characters and emoji take two, combining marks none."""
    wide = {"W": 2, "F": 2}
    return sum(0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 1) for c in text)


def fit(text: str, width: int) -> str:
    """Make a text printable on one line of so many cells: control characters escaped, the rest cut."""
    text = visible(text)
    if cells_wide(text) <= width:
        return text
    while cells_wide(text) > width - 1:
        text = text[: max(len(text) // 2, width - 1)] if len(text) > 2 * width else text[:-1]
    return text + "…"


def visible(text: str) -> str:
    """Escape what would move the cursor or break the line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def wants_colour(out: TextIO) -> bool:
    """Say whether colour is wanted on a stream (https://no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR")


def complain(text: str) -> None:
    """Print one clear line on stderr."""
    print(f"endmark: {visible(text)}", file=sys.stderr)
