"""`subjects/process.py`, in a session: each step waits for the answer to the last, and a wrong answer is a value."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.subjects import process as process_module
from harness.subjects.process import Answer, NoClaim
from harness.subjects.protocol import wrong_stepped

from .sessions import a_session_subject
from .subject_turns import message, started
from .support import run_async
from .test_protocol import VALUES, by_schema

STEPS: list[dict[str, object]] = [{"do": "begin", "attempt": "a"}, {"do": "commit", "attempt": "a"}, {"do": "clear"}]
LINE: dict[str, Any] = {
    "do": "read",
    "attempt": "a",
    "result": None,
    "outcome": None,
    "consumed_bytes": 0,
    "reads": 0,
    "preview": "",
    "display": "",
    "state": "generating",
    "stored": 0,
}
ANSWERS = """
turn = hear()
while (step := hear())["kind"] == "step":
    stepped(turn, step)
claim(turn, preview=step["kind"])
"""


def session(folder: Path, program: str, *names: str) -> list[tuple[Answer, list[dict[str, Any]]]]:
    """Put the steps to a throw-away subject, once a trial; give claim and journal of each."""

    async def scene() -> list[tuple[Answer, list[dict[str, Any]]]]:
        async with started(a_session_subject(folder, program)) as process:
            return [await process.session(message(name, steps=True), STEPS) for name in names or ("t1",)]

    return run_async(scene())


def failed(folder: Path, program: str) -> NoClaim:
    """Put the steps to a subject that gives no claim."""
    ((answer, _),) = session(folder, program)
    assert isinstance(answer, NoClaim), answer
    return answer


def test_steps_one_by_one(tmp_path: Path) -> None:
    """Every step is answered before the next one is sent, and the claim comes behind `finish`."""
    program = """
turn = hear()
assert turn["steps"] is True
for _ in range(3):
    step = hear()
    import select
    waiting = select.select([sys.stdin], [], [], 0.05)[0]
    stepped(turn, step, preview="early" if waiting else step["trial"])
claim(turn, preview=hear()["kind"])
hear()
"""
    ((answer, journal),) = session(tmp_path, program)
    assert isinstance(answer, dict)
    assert answer["preview"] == "finish"
    assert [(line["do"], line["attempt"], line["preview"]) for line in journal] == [
        ("begin", "a", "t1"),
        ("commit", "a", "t1"),
        ("clear", None, "t1"),
    ]


def test_one_session_after_another(tmp_path: Path) -> None:
    """A process takes the next session when the last one is over."""
    found = session(tmp_path, ANSWERS + ANSWERS + "hear()\n", "t1", "t2")
    assert [answer["trial"] for answer, _ in found if isinstance(answer, dict)] == ["t1", "t2"]


def test_two_sessions_at_once(tmp_path: Path) -> None:
    """Steps of two sessions that a subject takes at once each reach their own, whichever is answered first."""
    program = """
turns = {}
held = []
while True:
    got = hear()
    if got["kind"] == "turn":
        turns[got["trial"]] = got
    elif got["kind"] == "step":
        held.append(got)
        if len(held) == 2:
            for step in reversed(held):
                stepped(turns[step["trial"]], step, preview=step["trial"])
            held = []
    elif got["kind"] == "finish":
        claim(turns[got["trial"]])
    else:
        break
"""

    async def scene() -> list[tuple[Answer, list[dict[str, Any]]]]:
        async with started(a_session_subject(tmp_path, program)) as process:
            return await asyncio.gather(*(process.session(message(name), STEPS) for name in ("a", "b")))

    for (answer, journal), name in zip(run_async(scene()), ("a", "b"), strict=True):
        assert isinstance(answer, dict)
        assert answer["trial"] == name
        assert {line["preview"] for line in journal} == {name}


WRONG = {
    "another step": (
        "stepped(turn, hear() | {'do': 'read'})",
        "malformed",
        "stepped: journal: 'read' of 'a' answers an",
    ),
    "another attempt": (
        "stepped(turn, hear() | {'attempt': 'b'})",
        "malformed",
        "stepped: journal: 'begin' of 'b' ans",
    ),
    "no journal": ("hear()\nsay(kind='stepped', trial='t1')", "malformed", "stepped: 'journal' is missing"),
    "no line": (
        "hear()\nsay(kind='stepped', trial='t1', journal=3)",
        "malformed",
        "stepped: journal: a value of the wr",
    ),
    "a key more": ("stepped(turn, hear(), colour='red')", "malformed", "stepped: journal: 'colour' is not a key"),
    "a result that is none": (
        "stepped(turn, hear(), result='kept')",
        "malformed",
        "stepped: journal: result: needs one",
    ),
    "a claim too soon": ("hear()\nclaim(turn)", "malformed", "a message of kind 'claim', 'stepped' is due"),
    "another trial": ("hear()\nsay(kind='stepped', trial='t9')", "malformed", "a message about another trial: 't9'"),
    "a crash": ("hear()\nos._exit(4)", "exit", "exit 4"),
    "unsupported": ("hear()\nsay(kind='unsupported', trial='t1', capability='retry')", "unsupported", "retry"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer(tmp_path: Path, name: str) -> None:
    """What is no answer to the step that was sent ends the session, with the reason."""
    program, reason, note = WRONG[name]
    answer = failed(tmp_path, f"turn = hear()\n{program}\nhear()\nhear()\n")
    assert (answer.reason, answer.note[: len(note)]) == (reason, note)


def test_a_step_too_many(tmp_path: Path) -> None:
    """A `stepped` where the claim is due is no claim."""
    program = (
        "turn = hear()\nfor _ in range(3): stepped(turn, hear())\nstepped(turn, hear() | {'do': 'clear'})\nhear()\n"
    )
    assert failed(tmp_path, program).note == "a message of kind 'stepped', 'claim' is due"


@pytest.mark.parametrize("silent_at", [0, 2, 3])
def test_a_step_without_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent_at: int) -> None:
    """Each message has a time-out of its own: a subject that falls silent is given up, at whichever."""
    monkeypatch.setattr(process_module, "_CLAIM_S", 0.3)
    monkeypatch.setattr(process_module, "_STOP_S", 0.1)
    program = f"turn = hear()\nfor _ in range({silent_at}): stepped(turn, hear())\ntime.sleep(60)\n"
    answer = failed(tmp_path, program)
    assert answer.reason == "timeout"
    assert answer.note.startswith("no claim" if silent_at == 3 else "no stepped")


def test_the_session_behind_a_wrong_one(tmp_path: Path) -> None:
    """After a wrong answer the next session has a process of its own."""
    program = ANSWERS.replace(
        "    stepped(turn, step)", "    stepped(turn, step, reads=-1 if turn['trial'] == 'x' else 0)"
    )
    (first, _), (second, journal) = session(tmp_path, program, "x", "t2")
    assert isinstance(first, NoClaim)
    assert first.note == "stepped: journal: reads: needs to be at least 0 and below 2^53"
    assert isinstance(second, dict)
    assert len(journal) == 3


@pytest.mark.parametrize("key", [*(key for key in LINE if key not in ("do", "attempt")), "colour"])
def test_the_schema_says_the_same(key: str) -> None:
    """Table and schema take the same `stepped`, whatever stands at one key of its journal."""
    step = {"do": "read", "attempt": "a"}
    for value in [*VALUES, "denied", "committed", "idle", "withdrawn"]:
        answer = {"kind": "stepped", "trial": "t", "journal": LINE | {key: value}}
        assert (wrong_stepped(step, answer) is None) == by_schema(answer, "stepped"), value
    without = {"kind": "stepped", "trial": "t", "journal": {name: LINE[name] for name in LINE if name != key}}
    assert (wrong_stepped(step, without) is None) == by_schema(without, "stepped")


@pytest.mark.parametrize("do", ["begin", "supersede", "retry", "read", "commit", "cancel", "clear", "publish"])
def test_the_schema_knows_the_steps(do: str) -> None:
    """The schema takes a line about every step there is, and of no other."""
    answer = {"kind": "stepped", "trial": "t", "journal": LINE | {"do": do}}
    assert by_schema(answer, "stepped") is (do != "publish")
