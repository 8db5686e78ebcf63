"""`python -m bench`: measures the reading core against its peers and writes docs/performance.md."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from .checks import Target, targets
from .contests import contest, plans, whole
from .facts import facts
from .instructions import Counts, count
from .machine import machine
from .picture import draw
from .report import report, sections
from .results import Results
from .scale import FULL, QUICK, Scale
from .shapes import FLOODS, shape
from .whole_run import whole_run

DOCS = Path(__file__).resolve().parents[1] / "docs"
PARTS = {
    "facts": "which framer gets which fact of framing right",
    "framers": "bytes to events: every framer on chat streams and on one of 250 bytes, whole and cut",
    "readers": "bytes to a committed answer, against loops that check nothing",
    "shapes": "long lines and floods from 1 to 8 MB: linear, and not slower than httpx-sse",
    "run": "a whole run of the frozen suite against `import aiohttp.web`",
}


def main() -> None:
    """Measure what was asked for; exit 1 where a target is missed."""
    parser = _parser()
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    results = measure(parts, QUICK if arguments.quick else FULL)
    if arguments.quick or set(parts) != set(PARTS):
        print("\n\n".join(section.strip() for section in sections(results)), end="\n\n")
    else:
        (DOCS / "performance.md").write_text(report(results), "utf-8")
        (DOCS / "performance.svg").write_bytes(draw(results))
        print("written: docs/performance.md and docs/performance.svg")
    if arguments.quick:
        print("--quick: far too little was measured to judge a target by")
    else:
        judge(targets(results))


def judge(found: list[Target]) -> None:
    """Print every target; exit 1 where one is missed, naming those last."""
    missed = [target for target in found if not target.is_reached]
    for target in (*(target for target in found if target.is_reached), *missed):
        print(target)
    if missed:
        sys.exit(f"{len(missed)} of {len(found)} targets missed")


def measure(parts: list[str], scale: Scale) -> Results:
    """Measure these parts, in the order of PARTS, and say on stderr what is being done."""
    results = Results(machine=machine(), scale=scale)
    if "facts" in parts:
        _say("facts")
        results = replace(results, facts=facts())
    chosen = [part for part in ("framers", "readers") if part in parts]
    counts: Counts = {}
    counted = "not counted: asked to be quick"
    if chosen and scale.is_counting:
        _say(f"instructions of {' and '.join(chosen)}")
        counts, counted = count(chosen)
    for part in chosen:
        for plan in plans(part):
            _say(plan.key)
            results = replace(results, contests=(*results.contests, contest(plan, scale, counts)))
    if "framers" in parts:
        _say("all streams once")
        results = replace(results, whole=whole(scale))
    for flood in FLOODS if "shapes" in parts else ():
        _say(f"shape: {flood.title}")
        results = replace(results, shapes=(*results.shapes, shape(flood, scale)))
    if "run" in parts:
        _say("whole runs")
        results = replace(results, run=whole_run(scale.runs))
    return replace(results, counted=counted)


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Times the reading core against its peers, all in one run, in shuffled rounds, as ratios.",
        epilog="parts:\n"
        + "\n".join(f"  {name:8} {what}" for name, what in PARTS.items())
        + "\n\nWithout a part all of them run (about eight minutes on two cores), and docs/performance.md and\n"
        "docs/performance.svg are written. With parts, or --quick, the figures are only printed.\n"
        "Exit code: 0 where every target measured is reached, 1 where one is missed (never with --quick),\n"
        "2 where the call was wrong. The peers have to be installed: `make bench` sees to it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="measure only these parts")
    parser.add_argument("--quick", action="store_true", help="smoke test in well under a minute: no target is judged")
    return parser


if __name__ == "__main__":
    main()
