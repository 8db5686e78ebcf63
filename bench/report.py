"""Writes results as the Markdown of docs/performance.md: only numbers that the bench saw.

The same sections are printed where a part of the bench is run by itself. This file computes no figure
but a quotient of two that it was given.
"""

from collections.abc import Iterable, Sequence
from textwrap import fill

from . import readers
from .checks import Target, targets
from .inputs import EVENTS
from .peers import BASELINE, FRAMERS, OURS
from .results import VARIANT_WORDS, Contest, Entry, Fact, Peak, Results, Shape, Span, Whole

# Twice the size in more than so many times the time is called out, unless it was over in no time.
STEEP, NO_TIME_SECONDS = 3.0, 0.25


def report(results: Results) -> str:
    """Give the whole document."""
    parts = [
        _head(results),
        _targets(targets(results)),
        *sections(results),
        _HOW,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def sections(results: Results) -> list[str]:
    """Give the sections of the parts that were measured."""
    framers = [contest for contest in results.contests if contest.part == "framers"]
    whole = [contest for contest in results.contests if contest.part == "readers"]
    found = [_framers(framers, results.whole)] if framers else []
    found += [_readers(whole)] if whole else []
    found += [_floors(results.contests)] if results.contests else []
    found += [_shapes(results.shapes)] if results.shapes else []
    found += [_facts(results.facts)] if results.facts else []
    found += [_run(results.run)] if results.run else []
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table; every column but the first holds figures."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def _head(results: Results) -> str:
    machine, scale = results.machine, results.scale
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    facts = f"""Measured on {machine.date} on {machine.processor}, {machine.cores} cores, {machine.system},
{machine.python}. Instructions: {results.counted}. Peers, as installed: {versions}."""
    medians = f"""A figure is the median of {scale.rounds} rounds ({scale.shape_rounds} for the shapes, {scale.runs} for
whole runs); in brackets stand the smallest and the largest. A speed above 1 is faster than the baseline named."""
    return f"""
<!-- Made by `make bench`; edits are lost. -->
# Performance

How fast the reading core is, measured against the libraries that people use for the same work, in one run.

![Speed against the peers](performance.svg)

{_wrapped(facts)}

{_wrapped(medians)}"""


def _wrapped(text: str) -> str:
    return fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def _targets(found: list[Target]) -> str:
    rows = [
        [
            target.name,
            f"{target.measured:.2f}",
            f"at {'most' if target.is_at_most else 'least'} {target.bound:g}",
            "yes" if target.is_reached else "**no**",
        ]
        for target in found
    ]
    return "## Targets\n\n" + table(["target", "measured", "bound", "reached"], rows)


def _framers(contests: list[Contest], whole: Whole | None) -> str:
    names = [entry.name for entry in contests[0].entries if not entry.is_floor]
    header = ["framer", *[contest.title for contest in contests]]
    times = [[name, *[_span(contest.entry(name).ratio) for contest in contests]] for name in names]
    counts = [[name, *[_count(contest, contest.entry(name)) for contest in contests]] for name in names]
    counted = table(header, counts) if contests[0].entry(OURS).instructions else "They were not counted."
    times.append([f"{BASELINE}, µs", *[f"{contest.entry(BASELINE).ns / 1000:.1f}" for contest in contests]])
    return f"""
## Framers: bytes to events

Chat streams of {EVENTS} events, by turns English, Chinese and with emoji. CPU time of {BASELINE} over own:

{table(header, times)}

Microseconds are for an event, and in the last two columns for a stream of 250 bytes. So are instructions, with
{BASELINE}'s over own in brackets:

{counted}

{_whole(whole) if whole else ""}"""


def _whole(whole: Whole) -> str:
    return (
        f"All {whole.streams:,} streams once in 64 KiB pieces: {whole.events:,} events, {whole.megabytes:.1f} MB in "
        f"{whole.seconds:.2f} s of CPU time, {whole.megabytes / whole.seconds:.0f} MB/s; every event was compared."
    )


def _readers(contests: list[Contest]) -> str:
    names = [entry.name for entry in contests[0].entries if not entry.is_floor]
    others = [name for name in names if name != readers.BASELINE]
    header = ["input", *others, f"{readers.BASELINE}, µs an event"]
    times = [
        [
            contest.title,
            *[_span(contest.entry(name).ratio) for name in others],
            f"{contest.entry(readers.BASELINE).ns / 1000:.1f}",
        ]
        for contest in contests
    ]
    counted = [contest for contest in contests if contest.entry(OURS).instructions is not None]
    counts = [[contest.title, *[_count(contest, contest.entry(name)) for name in names]] for contest in counted]
    text = f"""
## Readers: bytes to a committed answer

{OURS} checks all that its contract asks for: UTF-8, strict JSON, the order of the turn, every limit. The others check
nothing: they parse each event and join `choices[0].delta.content` until `[DONE]`. CPU time of {readers.BASELINE}
over own:

{table(header, times)}"""
    if counts:
        text += (
            f"\n\nInstructions for an event; in brackets the baseline's over own:\n\n{table(['input', *names], counts)}"
        )
    return text


def _floors(contests: tuple[Contest, ...]) -> str:
    header = ["work on the same pieces of 64 KiB", "µs an event", "MB/s", "instructions an event"]
    rows = []
    for contest in contests:
        shown = [entry for entry in contest.entries if entry.is_floor]
        if shown:
            shown.append(contest.entry(OURS))
        for entry in shown:
            name = entry.name if entry.is_floor else f"{OURS}: {contest.part[:-1]}"
            cells = [f"{entry.ns / 1000:.2f}", f"{entry.mb_per_s:,.0f}", _instructions(entry)]
            rows.append([f"{name}, {VARIANT_WORDS[contest.variant]}", *cells])
    return "## Floors\n\nWork below which no framer or reader can fall:\n\n" + table(header, rows)


def _shapes(shapes: tuple[Shape, ...]) -> str:
    sizes = list(shapes[0].seconds)
    ours = [
        [
            shape.title,
            *[f"{shape.seconds[size]:.3f}" for size in sizes],
            _span(shape.growth),
            _span(shape.ratio),
        ]
        for shape in shapes
    ]
    header = ["shape, pieces", *[f"{size:g} MB" for size in sizes], "for twice the size", f"{BASELINE}'s time over it"]
    names = [peak.framer for peak in shapes[0].peaks]
    theirs = [[shape.title, *[_peak(peak) for peak in shape.peaks]] for shape in shapes]
    notes = [f"* {peak.framer}, {shape.title}: {peak.note}." for shape in shapes for peak in shape.peaks if peak.note]
    return f"""
## Shapes: does the time grow as the input does?

A megabyte is 2²⁰ bytes. CPU seconds of {OURS}'s framer; twice the size should take twice the time:

{table(header, ours)}

The peers, each driven to twice the size again until it took too long. Seconds at the largest size reached; in bold
where the last doublings took more than {STEEP:g} times as long each; "–" where nothing came through:

{table(["shape, pieces", *names], theirs)}

What came out otherwise, or not at all:

{chr(10).join(notes) or "* nothing"}"""


def _facts(facts: tuple[Fact, ...]) -> str:
    names = list(FRAMERS)
    rows = [[fact.name, *["**no**" if fact.answers[name] else "yes" for name in names]] for fact in facts]
    wrong = [
        f"* {name}, {fact.name}: `{fact.answers[name]}`." for fact in facts for name in names if fact.answers[name]
    ]
    return f"""
## What each framer gets right

Each body was fed as cut, whole, and byte by byte; "yes" is right each time.

{table(["fact", *names], rows)}

¹ The standard asks for U+FFFD in their place, which is right for a page; an answer that is to be kept would be altered.

What came instead:

{chr(10).join(wrong) or "* nothing"}"""


def _run(run: Span) -> str:
    return f"""
## A whole run

`run.py --suite frozen`, from the command line to the sealed archive, takes {_span(run)} times the wall time of
`python -c "import aiohttp.web"`."""


def _span(span: Span) -> str:
    return f"{span.median:.2f} ({span.low:.2f} to {span.high:.2f})"


def _count(contest: Contest, entry: Entry) -> str:
    base = contest.entry(contest.baseline).instructions
    if entry.instructions is None or base is None:
        return _instructions(entry)
    return f"{_instructions(entry)} ({base / entry.instructions:.2f})"


def _instructions(entry: Entry) -> str:
    return "not counted" if entry.instructions is None else f"{entry.instructions:,.0f}"


def _peak(peak: Peak) -> str:
    if peak.seconds is None or peak.megabytes is None:
        return "–"
    text = f"{peak.seconds:.2f} s at {peak.megabytes:g} MB"
    is_steep = peak.growth is not None and peak.growth > STEEP and peak.seconds > NO_TIME_SECONDS
    return f"**{text}, ×{peak.growth:.1f}**" if is_steep else text


_HOW = """
## How it was measured

* All contestants read the same bytes under the contract `bench/1` (`bench/bench-1.toml`): the rules of `strict/1`
  with sizes that no input reaches. Before a clock starts, each one's events or answer are compared with what the
  input holds.
* The streams are made from a seed, in the shape that OpenAI documents. No provider was asked and nothing was recorded.
* In a round everybody runs once, in shuffled order; a ratio is taken between two times of one round. Times are the
  process's CPU time, but for the whole run, which is wall time. The garbage collector is on.
* Instructions are counted by callgrind in a process that has done the same work before: the work twice less the work
  once, on three streams of 100 events.
* A peer without an interface for bytes is driven through the object that it reads from: httpx-sse through an object
  that decodes UTF-8 as httpx does and does nothing else of httpx; requests-sse through a real `requests.Response`;
  aiohttp-sse-client2 through a real `aiohttp.StreamReader` that holds everything from the start. From the openai and
  anthropic SDKs only the event decoder is used; neither builds its own objects here.
* What a ratio says about another machine is for that machine to say: other processors and Python versions differ.

Make it again with `make bench`, which installs the peers at the versions of `requirements/bench.txt` into an
environment of their own; `make bench ARGS=--help` names the parts."""
