"""`subjects/process.py`, around the turns: a subject that does not start is said, and none outlives a run."""

import asyncio
import os
from pathlib import Path

import pytest

from harness.names import UsageError
from harness.subjects import process as process_module
from harness.subjects.process import SubjectProcess
from harness.subjects.registry import Subject

from .subject_turns import message, started
from .support import a_subject, run_async


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("hear()\n", r"no ready: exit 0$"),
        ("sys.exit(3)\n", r"no ready: exit 3$"),
        ("print('first', file=sys.stderr)\nraise ValueError('the key is missing')\n", r"exit 1 \|.*the key is missing"),
        ("os.kill(os.getpid(), 9)\n", r"no ready: exit -9$"),
        ("print('hello')\nhear()\nhear()\n", r"no ready: not a message: b'hello\\n'"),
        ("say(kind='claim')\nhear()\nhear()\n", r"ready: "),
        ("ready(protocol='endmark.subject/2')\nhear()\n", r"ready: .*endmark\.subject/1"),
        ("ready(colour='red')\nhear()\n", r"ready: .*'colour'"),
        ("ready(name='')\nhear()\n", r"ready: name: "),
        ("ready(capabilities='cancel')\nhear()\n", r"ready: capabilities: "),
        ("print('x' * 2_000_000)\nhear()\nhear()\n", r"no ready: a line of more than 1048576 bytes"),
    ],
)
def test_no_ready(tmp_path: Path, program: str, why: str) -> None:
    """A subject that does not get ready is refused with its last words, in one line."""

    async def scene() -> None:
        async with started(a_subject(tmp_path, program)):
            pytest.fail("it got ready")

    with pytest.raises(UsageError, match=f"^subject throw-away: .*{why}") as caught:
        run_async(scene())
    assert "\n" not in str(caught.value)


def test_ready_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subject that says nothing is given up within a bound."""
    monkeypatch.setattr(process_module, "_READY_S", 0.05)
    monkeypatch.setattr(process_module, "_STOP_S", 0.05)

    async def scene() -> None:
        async with started(a_subject(tmp_path, "time.sleep(60)\n")):
            pytest.fail("it got ready")

    with pytest.raises(UsageError, match="no ready: nothing within 0 s"):
        run_async(scene())


def test_stdout_closed_before_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subject that closes its output and lives on is given up within a bound."""
    monkeypatch.setattr(process_module, "_STOP_S", 0.05)

    async def scene() -> None:
        async with started(a_subject(tmp_path, "os.close(1)\nos.close(2)\ntime.sleep(60)\n")):
            pytest.fail("it got ready")

    with pytest.raises(UsageError, match=r"no ready: .*closed its output"):
        run_async(scene())


@pytest.mark.parametrize("command", ["/nowhere/program", "/"])
def test_a_command_that_cannot_be_started(tmp_path: Path, command: str) -> None:
    """A command that is none is said in words."""
    subject = a_subject(tmp_path, "")
    changed = Subject(**{**vars(subject), "command": (command,)})
    with pytest.raises(UsageError, match=f"^subject throw-away: {command}: "):
        run_async(SubjectProcess(changed).launch())


def pid_of(process: SubjectProcess) -> int:
    """Give the id of a process that runs."""
    assert process._process
    return process._process.pid


def is_alive(pid: int) -> bool:
    """Say whether a process is there, dead ones that no one waited for included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "program", ["ready()\nhear()\n", "ready()\nhear()\nsys.exit(9)\n", "ready()\ntime.sleep(60)\n"]
)
def test_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """`stop` ends the process, one that does not listen too, and nobody is left to be waited for."""
    monkeypatch.setattr(process_module, "_STOP_S", 0.5 if "sleep" not in program else 0.05)

    async def scene() -> int:
        async with started(a_subject(tmp_path, f"ready()\n{program}")) as process:
            pid = pid_of(process)
        await process.stop()  # a second time is no error
        return pid

    assert not is_alive(run_async(scene()))


def test_stop_is_asked_for_first(tmp_path: Path) -> None:
    """A subject is asked to stop, and has time to do so."""
    program = f"ready()\nmessage = hear()\nopen({str(tmp_path / 'stopped')!r}, 'w').write(message['kind'])\n"

    async def scene() -> None:
        async with started(a_subject(tmp_path, program)):
            pass

    run_async(scene())
    assert (tmp_path / "stopped").read_text() == "stop"


def test_a_killed_subject_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was killed for nonsense is gone before the next turn."""
    monkeypatch.setattr(process_module, "_STOP_S", 0.1)

    async def scene() -> tuple[int, int]:
        program = "ready()\nhear()\nprint('hello', flush=True)\ntime.sleep(60)\n"
        async with started(a_subject(tmp_path, program)) as process:
            pid = pid_of(process)
            await process.turn(message())
            gone = not is_alive(pid)
            await process.launch()
            await process.wait_ready()
            return int(gone), pid_of(process) - pid

    gone, other = run_async(scene())
    assert gone
    assert other != 0


def test_a_child_of_the_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that holds the subject's pipes open neither holds up the end nor outlives it."""
    monkeypatch.setattr(process_module, "_STOP_S", 0.1)
    program = """
import subprocess
ready()
turn = hear()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
claim(turn, preview=str(child.pid))
time.sleep(60)
"""

    async def scene() -> int:
        async with started(a_subject(tmp_path, program)) as process:
            answer = await process.turn(message())
            assert isinstance(answer, dict)
        return int(answer["preview"])

    pid = run_async(scene())

    async def gone() -> bool:
        for _ in range(200):
            stat = Path(f"/proc/{pid}/stat")
            if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
            await asyncio.sleep(0.01)
        os.kill(pid, 9)
        return False

    assert run_async(gone())
