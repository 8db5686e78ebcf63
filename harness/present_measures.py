"""Words for a person: the measures of a record file. It formats a report, and works nothing out."""

from collections.abc import Iterator, Mapping
from typing import Any

from .present import fit, visible

# What each end means, beside its count.
_MEANINGS = {
    "accepted": "the answer is stored",
    "truncated": "the provider stopped at a limit",
    "stopped": "the provider filtered, refused or paused",
    "interrupted": "the evidence never came: cut, reset, timed out",
    "failed": "the provider or HTTP reported an error",
    "malformed": "the response broke its protocol or the contract's limits",
    "rejected": "complete, and not wanted: by the validator or the contract's history",
    "superseded": "another attempt had its place",
    "cancelled": "by the caller",
}
_WAITS = {"first_display": "first display", "accepted_completion": "accepted completion"}

_MOST_FINDINGS = 20
_ID_CELLS = 40


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Give the lines of the table; of many findings the first, and how many there are."""
    yield visible(
        f"{report['file']}: {_count(report['attempts'], 'attempt')} of {_count(report['tasks'], 'task')}, "
        f"{report['from']} to {report['to']}"
    )
    yield ""
    yield f"{'ended':<13}{'attempts':>9}"
    for name, count in report["ends"].items():
        yield f"{name:<13}{count:>9,}  {_MEANINGS[name]}"
    yield ""
    yield f"{'from the question to':<28}{'tasks':>9}{'p50':>13}{'p95':>13}"
    for name, words in _WAITS.items():
        wait = report["waits"][name]
        yield f"{words:<28}{wait['tasks']:>9,}{_ms(wait['p50_ms']):>13}{_ms(wait['p95_ms']):>13}"
    if report["backwards"]:
        yield f"left out: {_count(report['backwards'], 'wait')} that ended before it began, by clocks that differ"
    yield ""
    yield f"{'retries per accepted answer':<28}{_per_accepted(report)}"
    yield f"{'stale drops':<28}{report['stale_drops']:>9,}  complete, but too late to be published"
    yield f"{'accepted without evidence':<28}{report['accepted_without_evidence']:>9,}  the target is 0"
    yield from _findings(report["findings"])


def _findings(findings: list[dict[str, str]]) -> Iterator[str]:
    if findings:
        yield ""
    for found in findings[:_MOST_FINDINGS]:
        yield f"{found['rule']}  {fit(found['attempt_id'], _ID_CELLS)}  {found['text']}"
    if len(findings) > _MOST_FINDINGS:
        yield f"and {len(findings) - _MOST_FINDINGS:,} more; --json has them all"


def _per_accepted(report: Mapping[str, Any]) -> str:
    accepted, retries = report["ends"]["accepted"], _count(report["retries"], "retry", "retries")
    ratio = report["retries_per_accepted"]
    shown = "-" if ratio is None else f"{ratio:.2f}"
    return f"{shown:>9}  {retries}, {_count(accepted, 'accepted answer')}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f} ms"


def _count(number: int, thing: str, several: str = "") -> str:
    return f"{number:,} {thing if number == 1 else several or thing + 's'}"
