"""`run.py watch`: one case streamed to a terminal and to a pipe, over real HTTP."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from client.display import DisplayPolicy
from harness.freeze import freeze
from harness.names import HOME
from harness.watch import POLICIES
from tests.harness.support import BOUND_S, command, copy_cases, refused, run_py
from tests.pseudo_terminal import Terminal

TEXT = "你好，Java 🌱"


def watched(*words: object) -> list[str]:
    """Watch a case into a pipe; give the lines, exit code first."""
    done = run_py("watch", *words)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    return [str(done.returncode), *done.stdout.splitlines()]


def on_terminal(*words: object) -> Terminal:
    """Watch a case on a terminal."""
    return Terminal(command("watch", *words), HOME, BOUND_S)


def test_an_accepted_answer() -> None:
    """A whole answer is generating while it comes, and accepted in the end, with reads, events and the rule."""
    assert watched("seven-byte") == [
        "0",
        "frozen/seven-byte: openai-chat under frozen-text/1, cap 7, immediate",
        "● generating   reads    1  bytes      7  events   0  turn open      │",
        "● generating   reads   13  bytes     91  events   1  turn open      │ 你好，",
        "● generating   reads   25  bytes    175  events   2  turn open      │ 你好，Java 🌱",
        "● generating   reads   35  bytes    245  events   3  turn finished  │ 你好，Java 🌱",
        "● generating   reads   37  bytes    253  events   4  turn finished  │ 你好，Java 🌱",
        "✓ accepted     reads   37  bytes    253  events   4  turn finished  ┃ 你好，Java 🌱",
        "✓ ACCEPTED: the answer is in the history, 2 → 4 entries",
        "COMPLETE: every required piece of evidence arrived (finish reason 'stop', transport left)",
        "frozen-text/1 asks openai-chat for a finish reason (stop), then [DONE]; class answer: append",
    ]


def test_an_interrupted_answer() -> None:
    """A cut answer is interrupted, which exit code, word, mark and edge say."""
    code, *_, last, said, reason, _ = watched("missing-done")
    assert code == "1"
    assert last == "✗ interrupted  reads   23  bytes    153  events   2  turn finished  ┊ 你好，"
    assert said == "✗ INTERRUPTED: this is no answer; the history stays at 2 entries"
    assert reason.startswith("INCOMPLETE_STREAM: the body ended before the required evidence")


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("cancel", "CANCELLED"),
        ("http-503", "HTTP_503"),
        ("read-timeout", "READ_TIMEOUT"),
        ("length-finish", "INCOMPLETE_FINISH"),
        ("anthropic/pings", "COMPLETE"),
        ("bedrock/answer", "COMPLETE"),
    ],
)
def test_ends(case: str, outcome: str) -> None:
    """Every kind of end has its outcome, and its exit code says whether it was an answer."""
    code, *lines = watched(case)
    assert lines[-2].startswith(f"{outcome}: ")
    assert code == ("0" if outcome == "COMPLETE" else "1")


def test_the_cap() -> None:
    """`--cap` cuts the reads, and counts them."""
    assert "reads  253  bytes    253" in watched("seven-byte", "--cap", 1)[-4]


def test_another_contract() -> None:
    """`--contract` judges by another contract: what one withholds the other accepts."""
    assert watched("missing-done", "--contract", "compat/1")[0] == "0"


def test_full_buffering() -> None:
    """Policy full: no text before it is accepted, and what is held back is counted."""
    *lines, last, said, _, _ = watched("seven-byte", "--policy", "full")
    assert not any("你" in line for line in lines)
    assert "held   9" in lines[-1]
    assert last.endswith(f"┃ {TEXT}")
    assert said.startswith("✓ ACCEPTED")


def test_refused_segments() -> None:
    """Policy segments: from a refused segment on nothing is seen, also where the answer is accepted."""
    *lines, said, _, _ = watched("seven-byte", "--policy", "segments", "--refuse", "Java")
    assert not any("Java" in line for line in lines)
    assert "held   9" in lines[-1]
    assert said.startswith("✓ ACCEPTED")


def test_a_terminal_shows_one_frame() -> None:
    """A terminal shows the preview as it grows, in place, and in the end the whole text and its verdict."""
    with on_terminal("seven-byte", "--slow", 40) as terminal:
        assert terminal.finish() == (0, "")
    seen = terminal.screen.seen
    growing = [text for text in dict.fromkeys(seen) if text.startswith("│")]
    assert growing == ["│ ▌", "│ 你好，▌", f"│ {TEXT}▌"]
    assert sum(text.startswith("● generating  reads") for text in seen) > 3
    assert terminal.screen.rows == [
        "frozen/seven-byte: openai-chat under frozen-text/1, cap 7, immediate",
        f"┃ {TEXT}",
        "✓ ACCEPTED: the answer is in the history, 2 → 4 entries",
        "reads   37  bytes    253  events   4  turn finished",
        "COMPLETE: every required piece of evidence arrived (finish reason 'stop', transport left)",
        "frozen-text/1 asks openai-chat for a finish reason (stop), then [DONE]; class answer: append",
    ]
    assert "\x1b[32m✓" in terminal.written


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_by_a_person(number: signal.Signals) -> None:
    """Ctrl-C draws the last frame as interrupted, exits with 130, and leaves no process behind."""
    with on_terminal("seven-byte", "--cap", 120, "--slow", 10_000) as terminal:
        terminal.wait_for(lambda written: "generating" in written)
        (child,) = children(terminal.process.pid)
        terminal.process.send_signal(number)
        assert terminal.finish() == (130, "endmark: interrupted\n")
    rows = terminal.screen.rows
    assert rows[1:3] == ["┊ 你好，", "✗ INTERRUPTED: this is no answer; the history stays at 2 entries"]
    assert rows[4].startswith("CANCELLED: ")
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def children(pid: int) -> list[int]:
    """List the children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def hostile_cases(folder: Path) -> Path:
    """Give a case whose text clears the screen, sets the title and turns the writing."""
    cases = copy_cases(folder)
    body = cases / "frozen/seven-byte/body.sse"
    hostile = json.dumps("\x1b[2J\x1b]0;owned\x07\u202e" + "\x9b31m")[1:-1].encode()
    body.write_bytes(body.read_bytes().replace("你好，".encode(), hostile))
    freeze(cases, "frozen")
    return cases


def test_escapes_of_a_model_do_not_act(tmp_path: Path) -> None:
    """Escape sequences in the text are shown by their numbers, on a terminal and in a pipe."""
    cases = hostile_cases(tmp_path)
    end = "\\x1b]0;owned\\x07\\u202e\\x9b31mJava 🌱"
    assert watched("seven-byte", "--cases", cases)[-4].endswith(end)
    with on_terminal("seven-byte", "--cases", cases) as terminal:
        assert terminal.finish() == (0, "")
    assert f"┃ \\x1b[2J{end}" in terminal.screen.rows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frozen/nothing"], "suite frozen has no case 'nothing' (there are: after-finish, "),
        (["no*"], "suite frozen has no case 'no*'"),
        (["nowhere/seven-byte"], "no suite 'nowhere'"),
        (["sessions/normal"], "sessions/normal is a session of several attempts"),
        (["seven-byte", "--contract", "none/1"], "none-1.toml"),
    ],
)
def test_called_wrongly(words: list[str], message: str) -> None:
    """What cannot be watched is said in one line."""
    assert message in refused(run_py("watch", *words))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seven-byte", "--contract", "naive/1"], "contract naive/1 is of the policy 'naive', not owned"),
        (["anthropic/answer", "--contract", "frozen-text/1"], "has no rules for dialect 'anthropic'"),
        (["seven-byte", "--record", "/nowhere/records.jsonl"], "/nowhere/records.jsonl: No such file or directory"),
    ],
)
def test_what_the_client_refuses(words: list[str], message: str) -> None:
    """What the program itself cannot do it says in one line, with exit code 2."""
    done = run_py("watch", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("client: ")
    assert message in done.stderr


def test_the_policies_are_the_clients() -> None:
    """The laboratory offers the display policies that the client has."""
    assert list(POLICIES) == [policy.value for policy in DisplayPolicy]


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("http://127.0.0.1:1/v1", 1, "INCOMPLETE_STREAM: "),
        ("nonsense", 2, "client: base URL 'nonsense': needs http://host[:port]/path"),
    ],
)
def test_a_server_of_ones_own(url: str, code: int, said: str) -> None:
    """The program takes any server by its URL; one that is not there is an outcome, and what is no URL is refused."""
    program = [sys.executable, "-m", "client.watch", "--dialect", "openai-chat", url]
    done = subprocess.run(program, cwd=HOME, capture_output=True, text=True, timeout=BOUND_S, check=False)
    assert done.returncode == code
    assert any(line.startswith(said) for line in (done.stdout + done.stderr).splitlines())


def test_a_reader_that_has_seen_enough() -> None:
    """Output that nobody reads any more ends the program without a traceback."""
    done = subprocess.run(
        f"{sys.executable} run.py watch one-byte --slow 1 | head -n 1",
        shell=True,
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
