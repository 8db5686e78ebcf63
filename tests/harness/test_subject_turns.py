"""`subjects/process.py`, in a turn: whatever a subject does wrong is a value with a reason, and holds nothing up."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.subjects import process as process_module
from harness.subjects.process import NoClaim

from .subject_turns import message, one_turn, started, turns
from .support import a_subject, run_async


def test_a_claim(tmp_path: Path) -> None:
    """A claim comes back as it was said, and progress before it is let pass."""
    program = """
ready()
turn = hear()
say(kind="progress", trial=turn["trial"], preview="h")
say(kind="progress", trial=turn["trial"], preview="hi")
claim(turn, preview="hi", hints=dict(finish_reason="stop"))
hear()
"""
    (answer,) = turns(tmp_path, program)
    assert isinstance(answer, dict)
    assert (answer["preview"], answer["hints"]) == ("hi", {"finish_reason": "stop"})
    assert answer["history"] == [{"role": "user", "content": "earlier"}]


def test_one_process_for_many_turns(tmp_path: Path) -> None:
    """A subject lives for all its turns."""
    program = "ready()\nwhile (turn := hear())['kind'] == 'turn':\n    claim(turn, preview=str(os.getpid()))\n"
    answers = turns(tmp_path, program, message("a"), message("b"), message("c"))
    assert len({answer["preview"] for answer in answers if isinstance(answer, dict)}) == 1
    assert [answer["trial"] for answer in answers if isinstance(answer, dict)] == ["a", "b", "c"]


def test_it_is_told_the_turn(tmp_path: Path) -> None:
    """Everything of a turn reaches the subject, and nothing of a case's name or label."""
    program = "ready()\nturn = hear()\nclaim(turn, preview=json.dumps(turn, sort_keys=True))\nhear()\n"
    (answer,) = turns(tmp_path, program)
    assert isinstance(answer, dict)
    assert set(json.loads(answer["preview"])) == {"kind", *message()}


def test_a_claim_of_nearly_a_mebibyte(tmp_path: Path) -> None:
    """A line just under the limit is taken."""
    program = "ready()\nturn = hear()\nclaim(turn, preview='x' * (1024 * 1024 - 300))\nhear()\n"
    (answer,) = turns(tmp_path, program)
    assert isinstance(answer, dict)


def test_a_flood_on_stderr(tmp_path: Path) -> None:
    """A subject that writes megabytes to stderr, with and without line ends, is not blocked by it."""
    program = """
ready()
turn = hear()
for _ in range(40):
    sys.stderr.write("x" * 100 + "\\n" + "y" * 100_000)
sys.stderr.write("z" * 3_000_000)
sys.stderr.flush()
claim(turn)
hear()
"""
    (answer,) = turns(tmp_path, program)
    assert isinstance(answer, dict)


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subject goes to the loopback without a proxy, whatever the user's environment says."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "example.com")
    program = """
import urllib.request
ready()
turn = hear()
claim(turn, preview=repr(urllib.request.proxy_bypass("127.0.0.1:80")))
hear()
"""
    (answer,) = turns(tmp_path, program)
    assert isinstance(answer, dict)
    assert answer["preview"] in ("1", "True")


@pytest.mark.parametrize(
    ("program", "reason", "note"),
    [
        ("sys.exit(7)", "exit", "exit 7"),
        ("os.kill(os.getpid(), 11)", "exit", "exit -11"),
        (
            "print('a', file=sys.stderr)\nprint('b: c', file=sys.stderr)\nsys.exit(1)",
            "exit",
            "a | b: c",
        ),
        ("raise ValueError('boom')", "exit", "ValueError: boom"),
        ("print('hello', flush=True)", "malformed", "not a message: b'hello\\n'"),
        ("print(flush=True)", "malformed", "not a message"),
        ("print('[]', flush=True)", "malformed", "not a message: b'[]\\n'"),
        ("say(kind=1)", "malformed", "not a message"),
        ("os.write(1, b'\\xff\\xfe\\n')", "malformed", "not a message"),
        ("print('[' * 100_000, flush=True)", "malformed", "not a message"),
        (
            "print('x' * 1_100_000, flush=True)",
            "malformed",
            "a line of more than 1048576 bytes",
        ),
        ("claim(turn, trial='t2')", "malformed", "about another trial: 't2'"),
        (
            "claim(turn, trial='x' * 900_000)",
            "malformed",
            "about another trial: 'xxx",
        ),
        ("say(kind='claim')", "malformed", "about another trial: 'None'"),
        (
            "say(kind='unsupported', capability='x')",
            "malformed",
            "another trial: 'None'",
        ),
        ("claim(turn, kind='applause')", "malformed", "a message of kind 'applause'"),
        ("claim(turn, reads='3')", "malformed", "claim: reads: "),
        ("claim(turn, history=None)", "malformed", "claim: history: "),
        ("claim(turn, colour='red')", "malformed", "'colour'"),
        ("claim(turn, preview='\\ud800')", "malformed", "not a message"),
        (
            "say(kind='unsupported', trial=turn['trial'], capability='cancel')",
            "unsupported",
            "cancel",
        ),
    ],
)
def test_no_claim(tmp_path: Path, program: str, reason: str, note: str) -> None:
    """A crash, nonsense and a refusal are told apart, and the note says in short what happened."""
    answer = one_turn(tmp_path, f"ready()\nturn = hear()\n{program}\nhear()\n")
    assert answer.reason == reason
    assert note in answer.note
    assert len(answer.note) < 2000
    assert "\n" not in answer.note


@pytest.mark.parametrize(
    "program",
    [
        "ready()\nhear()\ntime.sleep(60)\n",
        "ready()\nhear()\nos.close(1)\ntime.sleep(60)\n",
        "ready()\nturn = hear()\nwhile True: say(kind='progress', trial=turn['trial'], preview='')\n",
        "ready()\nhear()\nimport signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)\n",
        "ready()\nhear()\nos.write(1, b'half a line')\ntime.sleep(60)\n",
    ],
    ids=["silent", "closed", "endless progress", "ignores signals", "half a line"],
)
def test_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """A subject that never claims is given up within a bound."""
    monkeypatch.setattr(process_module, "_CLAIM_S", 0.1)
    monkeypatch.setattr(process_module, "_STOP_S", 0.1)
    assert one_turn(tmp_path, program).reason in ("timeout", "exit")


def test_a_subject_that_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn larger than the pipe, which the subject does not read, is given up within the bound too."""
    monkeypatch.setattr(process_module, "_CLAIM_S", 0.1)
    monkeypatch.setattr(process_module, "_STOP_S", 0.1)

    async def scene() -> dict[str, Any] | NoClaim:
        async with started(a_subject(tmp_path, "ready()\ntime.sleep(60)\n")) as process:
            return await process.turn(message(question="x" * 2_000_000))

    answer = run_async(scene())
    assert isinstance(answer, NoClaim)
    assert answer.reason == "timeout"


COUNTED = """
ready()
turn = hear()
if turn["question"] != "die":
    claim(turn, preview=str(os.getpid()))
    hear()
print("last words of", turn["trial"], file=sys.stderr)
sys.exit(4)
"""


def test_the_turn_after_a_crash(tmp_path: Path) -> None:
    """A crash costs one turn: the next starts a fresh process, and only its own words are its last."""
    first, second, third = turns(
        tmp_path, COUNTED, message("t1", question="die"), message("t2", question="die"), message("t3")
    )
    assert first == NoClaim(reason="exit", note="exit 4 | last words of t1")
    assert second == NoClaim(reason="exit", note="exit 4 | last words of t2")
    assert isinstance(third, dict)


def test_an_unsupported_turn_costs_no_process(tmp_path: Path) -> None:
    """A subject that says it cannot take a case lives on."""
    program = """
ready()
turn = hear()
say(kind="unsupported", trial=turn["trial"], capability=str(os.getpid()))
claim(hear(), preview=str(os.getpid()))
hear()
"""
    first, second = turns(tmp_path, program, message("a"), message("b"))
    assert isinstance(first, NoClaim)
    assert isinstance(second, dict)
    assert first.note == second["preview"]
