"""What the bench says of its results: targets, document, picture, exit code."""

import re
from dataclasses import replace
from typing import Any

import pytest

from bench.__main__ import judge, main
from bench.checks import Target, targets
from bench.picture import draw
from bench.report import report, sections
from bench.results import Results, Span

from .canned import RESULTS, SHAPE


def missed(results: Results) -> list[str]:
    """Name the targets that are not reached."""
    return [target.name for target in targets(results) if not target.is_reached]


def with_ratio(part: str, variant: str, pieces: str, ratio: float) -> Results:
    """Change the speed of ours on one input."""
    span = Span(median=ratio, low=9, high=9)
    changed = []
    for contest in RESULTS.contests:
        if (contest.part, contest.variant, contest.pieces) == (part, variant, pieces):
            entries = tuple(replace(e, ratio=span) if e.name == "endmark" else e for e in contest.entries)
            changed.append(replace(contest, entries=entries))
        else:
            changed.append(contest)
    return replace(RESULTS, contests=tuple(changed))


BOUNDS = [
    ("framers", "content", "one event", 2.0),
    ("framers", "content", "1 KiB", 1.0),
    ("framers", "content", "64 KiB", 3.5),
    ("framers", "short", "1 byte", 1.0),
    ("framers", "short", "7 bytes", 1.0),
    *[("readers", "content", pieces, 2.5) for pieces in ("one event", "1 KiB", "64 KiB")],
    *[("readers", "obfuscation", pieces, 1.3) for pieces in ("one event", "1 KiB", "64 KiB")],
    *[("readers", "logprobs", pieces, 1.3) for pieces in ("one event", "1 KiB", "64 KiB")],
]


def test_all_reached() -> None:
    """Figures above every bound miss nothing, and there is a target for every bound."""
    assert missed(RESULTS) == []
    assert len(targets(RESULTS)) == len(BOUNDS) + 2 + 1


@pytest.mark.parametrize(("part", "variant", "pieces", "bound"), BOUNDS)
def test_a_speed_below_its_bound_is_missed(part: str, variant: str, pieces: str, bound: float) -> None:
    """Exactly the bound reaches a target of speed, a little less misses that target and no other."""
    assert missed(with_ratio(part, variant, pieces, bound)) == []
    (name,) = missed(with_ratio(part, variant, pieces, bound - 0.001))
    assert name.startswith(part[:-1])
    assert pieces in name


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"shapes": (replace(SHAPE, growth=Span(median=2.21, low=2, high=3)),)}, "one line, 16 B: time for twice"),
        ({"shapes": (replace(SHAPE, ratio=Span(median=0.99, low=0, high=3)),)}, "one line, 16 B: speed"),
        ({"run": Span(median=2.01, low=1, high=3)}, "time of a whole run"),
    ],
)
def test_other_bounds(change: dict[str, Any], name: str) -> None:
    """A shape that grows faster than its size, one slower than httpx-sse and a slow run are missed by name."""
    (found,) = missed(replace(RESULTS, **change))
    assert found.startswith(name)


def test_a_part_has_its_own_targets_only() -> None:
    """What was not measured is no target and no section."""
    part = replace(RESULTS, contests=(), shapes=(), facts=(), whole=None)
    assert len(targets(part)) == len(sections(part)) == 1


def test_a_missed_target_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1 and the last line printed names the target that was missed."""
    found = [Target(name="slow", measured=1.5, bound=2), Target(name="fast", measured=3, bound=2)]
    with pytest.raises(SystemExit, match=r"^1 of 2 targets missed$"):
        judge(found)
    assert capsys.readouterr().out == "reached: fast: 3.00, at least 2\nMISSED: slow: 1.50, at least 2\n"
    judge(found[1:])


def test_the_document() -> None:
    """It names versions, day and machine, every target, and marks what is wrong, steep or refused."""
    text = report(with_ratio("framers", "content", "64 KiB", 3.4))
    for part in ("httpx-sse 0.4.3", "2026-11-30", "A Processor, 2 cores", "valgrind 3.19.0", "make bench"):
        assert part in " ".join(text.split())
    assert "| framer, chat, 64 KiB: speed, in httpx-sse | 3.40 | at least 3.5 | **no** |" in text
    assert "| endmark | 5.00 (4.50 to 5.50) |" in text
    assert "| endmark | 4,000 (1.00) |" in text
    assert "| one line, 16 B | **4.00 s at 1 MB, ×4.0** | – |" in text
    assert "* openai, one line, 16 B: ValueError at 1 MB." in text
    assert "| CR alone ends a line | yes | yes | **no** | yes | yes | yes | yes |" in text
    assert "* openai, CR alone ends a line: `gives []`." in text


def test_tables_are_whole() -> None:
    """Every row of a table has as many cells as its header."""
    width = 0
    for line in report(RESULTS).splitlines():
        cells = line.count("|")
        assert not (width and cells) or cells == width
        width = cells


def test_what_was_not_counted_is_said() -> None:
    """Without callgrind the document says so and why."""
    contests = tuple(
        replace(contest, entries=tuple(replace(entry, instructions=None) for entry in contest.entries))
        for contest in RESULTS.contests
    )
    text = report(replace(RESULTS, contests=contests, counted="not counted: valgrind is not installed"))
    assert "Instructions: not counted: valgrind is not installed." in " ".join(text.split())
    assert "They were not counted." in text


def test_the_picture_repeats_and_is_told_in_words() -> None:
    """The same results give the same bytes, and every contestant and shape stands in it as text."""
    svg = draw(RESULTS)
    assert draw(RESULTS) == svg
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())
    for word in ("endmark", "sseclient-py", "obfuscation too, 64 KiB", "one line, 16 B", "5.00"):
        assert word in texts


def test_help_and_wrong_parts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Help names every part and the exit codes; a part that is none is refused by name."""
    monkeypatch.setattr("sys.argv", ["bench", "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    text = capsys.readouterr().out
    for word in ("facts", "framers", "readers", "shapes", "run", "--quick", "Exit code"):
        assert word in text
    monkeypatch.setattr("sys.argv", ["bench", "framer"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "no part framer; there are facts, framers, readers, shapes, run" in capsys.readouterr().err
