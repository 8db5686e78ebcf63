"""The adapters and the measuring of the bench, as far as they go without a peer and without a clock's word."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench import contests, shapes
from bench.contests import Plan, WrongResultError, plans
from bench.facts import QUESTIONS, Question, answer
from bench.inputs import Stream, stream
from bench.instructions import count
from bench.peers import FRAMERS, OURS, Data, Pieces, RefusedError, endmark
from bench.readers import FRAMER_FLOORS, READERS
from bench.scale import QUICK
from bench.shapes import FLOODS, Flood
from bench.timing import bounded, rounds

HOME = Path(__file__).parents[2]

# Small sizes, and so much time that no load on the machine decides.
PATIENT = replace(QUICK, peak_seconds=600)


def test_no_peer_is_needed_to_import() -> None:
    """Every module of the bench can be imported where no peer can."""
    code = "import sys\nfor name in ('httpx_sse', 'openai', 'anthropic', 'sseclient', 'requests', 'requests_sse', "
    code += "'aiohttp_sse_client2'): sys.modules[name] = None\nimport bench.__main__"
    subprocess.run([sys.executable, "-c", code], cwd=HOME, check=True)


@pytest.mark.parametrize("plan", [*plans("framers"), *plans("readers")], ids=lambda plan: plan.key)
def test_ours_does_the_work(plan: Plan) -> None:
    """Our framer and reader give what every input holds, however it is cut."""
    plan.work(OURS, plan.counted())()


@pytest.mark.parametrize("name", FRAMER_FLOORS)
def test_floors_run(name: str) -> None:
    """A floor takes the pieces of a stream."""
    body = stream(0, events=5)
    FRAMER_FLOORS[name](body, body.pieces(65536))()


def test_who_gives_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contestant that loses one event is refused before a clock starts."""

    def lossy(pieces: Pieces) -> Data:
        return endmark()(pieces)[1:]

    monkeypatch.setitem(FRAMERS, OURS, lambda: lossy)
    plan = next(plans("framers"))
    with pytest.raises(WrongResultError, match="framers/content/one event: endmark gives something else"):
        plan.work(OURS, plan.counted())


@pytest.mark.parametrize("make", [FRAMERS[OURS], READERS[OURS]])
def test_ours_says_why_it_refuses(make: Callable[[], Callable[[Pieces], object]]) -> None:
    """Bytes that are no UTF-8 are refused with a reason, and not timed as if they had been read."""
    with pytest.raises(RefusedError, match="invalid"):
        make()([b"data: \xff\n\n"])


def test_whole_feeds_every_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The single pass over all streams counts each event."""
    found = contests.whole(QUICK)
    assert (found.streams, found.events) == (QUICK.all_streams, QUICK.all_streams * 300)
    monkeypatch.setattr(Stream, "data", [])
    with pytest.raises(WrongResultError, match="stream 0 of all"):
        contests.whole(QUICK)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_ours_gets_every_fact_right(question: Question) -> None:
    """Our framer gives the right data for every fact, as cut, whole and byte by byte."""
    assert answer(endmark(), question) == ""


def test_a_wrong_answer_says_what_came() -> None:
    """A framer that is wrong in one way of feeding is told with that way and what it gave."""
    question = Question(name="", pieces=[b"data: a\n\n"], data=["a"])
    assert (
        answer(lambda pieces: ["a"] * len(pieces), question)
        == "byte by byte: gives ['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a']"
    )
    assert answer(lambda _: ["b"], question) == "gives ['b']"
    assert answer(lambda _: [][1], question) == "raises IndexError"


def test_a_refusal_that_was_asked_for_is_right() -> None:
    """Where a body has to be refused, whatever is raised is right and any data is wrong."""
    question = Question(name="", pieces=[b"data: a\n\n"], data=None)
    assert answer(lambda _: [][1], question) == ""
    assert answer(lambda _: [], question) == "gives []"


def test_rounds_give_everybody_the_same_number() -> None:
    """Every work is done once a round, and the times stand in order of the rounds."""
    done: list[str] = []
    times = rounds({name: lambda name=name: done.append(name) for name in "abc"}, 4)  # type: ignore[misc]
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(sorted(done[start : start + 3]) == ["a", "b", "c"] for start in range(0, 12, 3))


def test_bounded_gives_the_value() -> None:
    """A work in time gives its value, from a process of its own."""
    assert bounded(os.getpid, 60) not in (None, os.getpid())


def test_bounded_ends_what_takes_too_long() -> None:
    """A work that does not end is ended, and gives None."""
    assert bounded(lambda: time.sleep(600), 0.01) is None


def test_bounded_notices_a_death() -> None:
    """A work whose process dies gives None at once."""
    assert bounded(lambda: os._exit(3), 60) is None


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.title)
def test_ours_comes_through_every_flood(flood: Flood) -> None:
    """Our framer climbs to the largest size and gives exactly what the shape holds."""
    peak = shapes.climb(OURS, flood, PATIENT)
    assert (peak.note, peak.megabytes) == ("", QUICK.megabytes[-1])


def hang(_: Pieces) -> list[str]:
    """Frame for longer than any test."""
    time.sleep(600)
    return []


def test_a_climb_says_what_was_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A framer that gives too much is timed and told; one that raises, and one that hangs, get no further."""
    comments = FLOODS[3]
    monkeypatch.setitem(FRAMERS, "more", lambda: lambda _: ["end", "end"])
    assert shapes.climb("more", comments, PATIENT).note == "gives 2 events where there is 1"
    monkeypatch.setitem(FRAMERS, "raises", lambda: lambda _: [][1])
    peak = shapes.climb("raises", comments, PATIENT)
    assert (peak.note, peak.seconds) == ("IndexError at 0.0625 MB", None)
    monkeypatch.setitem(FRAMERS, "hangs", lambda: hang)
    assert shapes.climb("hangs", comments, replace(QUICK, peak_seconds=0.01)).note == "more than 0.01 s at 0.0625 MB"


def test_without_valgrind_nothing_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where valgrind is missing the reason stands in place of the counts."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert count(["framers"]) == ({}, "not counted: valgrind is not installed")
