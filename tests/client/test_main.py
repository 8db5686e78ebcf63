"""`python -m client` as a process: what it answers to, and how it ends."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2]
TURN: dict[str, object] = {
    "kind": "turn",
    "trial": "t",
    "base_url": "http://127.0.0.1:9/v1",
    "dialect": "openai-chat",
    "contract": "strict/1",
    "history": [],
    "question": "q",
    "conditions": {"read_cap_bytes": 7, "connect_timeout_ms": 1000, "read_timeout_ms": 1000},
    "steps": True,
}
START: dict[str, object] = {"kind": "start", "protocol": "endmark.subject/1"}


def said(*messages: Mapping[str, object]) -> tuple[int, list[dict[str, Any]], str]:
    """Send messages and the end of input; give the exit code, the answers and stderr."""
    text = "".join(json.dumps(message) + "\n" for message in messages)
    command = [sys.executable, "-m", "client"]
    done = subprocess.run(command, input=text, cwd=HOME, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def step(**keys: object) -> dict[str, object]:
    """Give a step of the one trial."""
    return {"kind": "step", "trial": "t", **keys}


def test_a_session_that_is_not_finished() -> None:
    """A session that nobody finishes holds up neither `stop` nor the end of input."""
    lasts: list[Mapping[str, object]] = [{"kind": "stop"}, step(do="clear")]
    for last in lasts:
        code, answers, error = said(START, TURN, step(do="clear"), last)
        assert (code, error) == (0, "")
        assert [answer["kind"] for answer in answers[:2]] == ["ready", "stepped"]


def test_a_session_without_a_server() -> None:
    """Steps are answered in order and the claim comes behind `finish`, though nobody listens."""
    begin, finish = step(do="begin", attempt="a"), {"kind": "finish", "trial": "t"}
    code, answers, _ = said(START, TURN, begin, step(do="commit", attempt="a"), finish)
    assert code == 0
    assert [answer["kind"] for answer in answers] == ["ready", "stepped", "stepped", "claim"]
    assert answers[2]["journal"]["result"] == "refused"
    assert answers[3].keys() == {"kind", "trial", "history", "preview", "raised", "hints", "outcome", "dispatched"}
    assert (answers[3]["outcome"], answers[3]["raised"], answers[3]["hints"]) == ("INCOMPLETE_STREAM", None, {})


def test_a_step_of_no_session() -> None:
    """A step or a finish of a trial that has no session is no message of the protocol."""
    strays: list[Mapping[str, object]] = [step(do="clear"), {"kind": "finish", "trial": "t"}, {"kind": "step"}]
    for stray in strays:
        code, answers, error = said(START, stray)
        assert code == 2
        assert [answer["kind"] for answer in answers] == ["ready"]
        assert error.startswith("client: not a message of endmark.subject/1: ")


def test_a_step_that_does_not_exist() -> None:
    """A step that no page names is a crash with its reason, not a session without an end."""
    code, answers, error = said(START, TURN, step(do="publish", attempt="a"))
    assert code == 1
    assert [answer["kind"] for answer in answers] == ["ready"]
    assert error == "client: ValueError: no step 'publish' in docs/attempts.md, section A4\n"
