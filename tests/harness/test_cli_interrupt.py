"""Interrupted in mid-run: exit 130, one line, and nothing half-done is left behind."""

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.archive import SEAL
from harness.freeze import freeze
from harness.names import HOME

from .sessions import write_session, write_session_subject
from .support import BOUND_S, command, copy_cases, edit, write_subject

# Both say by a pipe that they are in a turn; one waits on its stdin, the other on the stalled server.
WAITS = """
ready()
turn = hear()
os.write(os.open({sign!r}, os.O_WRONLY), b"%d\\n" % os.getpid())
hear()
"""
ASKS = """
import http.client, urllib.parse
ready()
turn = hear()
url = urllib.parse.urlsplit(turn["base_url"])
connection = http.client.HTTPConnection(url.hostname, url.port)
connection.request("POST", url.path + "/chat/completions", "{{}}")
response = connection.getresponse()
response.read(1)
os.write(os.open({sign!r}, os.O_WRONLY), b"%d\\n" % os.getpid())
response.read()
"""
# In the middle of a session: one attempt is open, and the answer to its second step never comes.
STEPS = """
turn = hear()
open_ = post(turn)
stepped(turn, hear())
hear()
os.write(os.open({sign!r}, os.O_WRONLY), b"%d\\n" % os.getpid())
hear()
"""


def a_turn(folder: Path, program: str) -> list[object]:
    """Give a turn that stalls, and the subject that takes it."""
    cases = copy_cases(folder)
    edit(cases / "frozen/seven-byte/case.toml", 'ending = "complete"', 'ending = "stall"')
    freeze(cases, "frozen")
    return ["--cases", cases, "--case", "seven-byte", "--subject", write_subject(folder, program)]


def a_session(folder: Path, program: str) -> list[object]:
    """Give a session, and the subject that takes it."""
    cases = write_session(folder)
    freeze(cases, "talks")
    return ["--cases", cases, "--suite", "talks", "--subject", write_session_subject(folder, program)]


class Running:
    """A run whose subject is in the middle of a turn that does not end."""

    def __init__(self, folder: Path, words: Callable[[Path, str], list[object]], program: str) -> None:
        sign = folder / "sign"
        os.mkfifo(sign)
        self.out = folder / "run"
        pipe = os.open(sign, os.O_RDWR)  # both ways, so that it is never at its end
        self.process = subprocess.Popen(
            command(*words(folder, program.format(sign=str(sign))), "--out", self.out),
            cwd=HOME,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            assert select.select([pipe], [], [], BOUND_S)[0], "the subject never got its turn"
            self.subject_pid = int(os.read(pipe, 100))
        finally:
            os.close(pipe)

    def interrupt(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal to the harness alone; give its exit code and stderr."""
        self.process.send_signal(number)
        out, error = self.process.communicate(timeout=BOUND_S)
        assert out == ""
        return self.process.returncode, error


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    """A run in mid-turn; ended behind the test if the test did not."""
    run = Running(tmp_path, *request.param)
    yield run
    if run.process.poll() is None:
        run.process.kill()
        run.process.communicate()


@pytest.mark.parametrize(
    "running", [(a_turn, WAITS), (a_turn, ASKS), (a_session, STEPS)], ids=["waits", "asks", "session"], indirect=True
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted(running: Running, number: signal.Signals) -> None:
    """SIGTERM and Ctrl-C end a run with 130, one line, no directory and no subject left."""
    assert running.out.is_dir()
    assert running.interrupt(number) == (130, "endmark: interrupted\n")
    assert not running.out.exists()
    assert not running.out.with_name("run.verdicts.json").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(running.subject_pid, 0)


@pytest.mark.parametrize("running", [(a_turn, WAITS)], ids=["waits"], indirect=True)
def test_killed(running: Running) -> None:
    """What SIGKILL leaves is no archive: it has a plan, and no seal."""
    code, error = running.interrupt(signal.SIGKILL)
    assert (code, error) == (-signal.SIGKILL, "")
    assert (running.out / "data/records/plan.json").is_file()
    assert not (running.out / SEAL).exists()
