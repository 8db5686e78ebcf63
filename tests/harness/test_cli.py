"""The command line: what a user types, what is said, and the exit code."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from harness.archive import SEAL
from harness.names import CASES, HOME

from .support import command, copy_cases, refused, run_py, tree, untouched, write_subject

ONE = ("--case", "seven-byte")

CLAIMER = "ready()\nwhile (turn := hear())['kind'] == 'turn':\n    claim(turn)\n"


def test_the_frozen_suite(tmp_path: Path) -> None:
    """The frozen suite runs, every verdict is AGREE, and the archive's place and root are said."""
    done = run_py("--suite", "frozen", "--out", tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert sum(line.endswith("AGREE") for line in lines[1:23]) == 22
    assert f"archive:     {tmp_path / 'run'}" in lines
    verdicts = json.loads((tmp_path / "run.verdicts.json").read_text("ascii"))
    assert f"stable root: {verdicts['stable_root']}" in lines
    assert "\x1b" not in done.stdout


def test_json(tmp_path: Path) -> None:
    """`--json` prints one object with the keys of the original experiment, row by row."""
    done = run_py(*ONE, "--json", "--out", tmp_path / "run")
    report = json.loads(done.stdout)
    (row,) = report["rows"]
    assert report["archive"] == str(tmp_path / "run")
    assert (row["id"], row["outcome"], row["reads"], row["preview"]) == ("seven-byte", "COMPLETE", 37, "你好，Java 🌱")
    assert (row["history_size"], row["committed"], row["verdict"]) == (4, True, "AGREE")


@pytest.mark.parametrize(
    "name", ["with space", "名前 🌱", "-dash", "a'b\"c", "tab\there", "ünï/cödé", "x.verdicts.json"]
)
def test_names_of_archives(tmp_path: Path, name: str) -> None:
    """Any name that a file system takes may name an archive."""
    done = run_py(*ONE, "--out", tmp_path / name)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / name / SEAL).is_file()
    assert (tmp_path / f"{name}.verdicts.json").is_file()


@pytest.mark.parametrize(
    "env", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_terminal_without_unicode(tmp_path: Path, env: dict[str, str], option: list[str]) -> None:
    """A stream that cannot show a character shows an escape, and the run is as good."""
    done = run_py(*ONE, *option, "--out", tmp_path / "run", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "AGREE" in done.stdout


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A name of an archive that is no UTF-8 is shown escaped."""
    done = run_py(*ONE, "--out", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"), env={"PYTHONIOENCODING": "utf-8"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\udcff" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "nowhere"], "no suite 'nowhere' (there are: anthropic, "),
        (["--suite", "../frozen"], "no suite '../frozen'"),
        (["--subject", "nobody"], "no subject 'nobody' (there are: _wrong/done_only, "),
        (["--case", "nothing-*"], "no case of suite 'frozen' matches 'nothing-*'"),
        (["--cases", "/nowhere"], "/nowhere: no suite 'frozen' (there are: none)"),
        (["--cases", "/dev/null"], "/dev/null: no suite 'frozen' (there are: none)"),
    ],
)
def test_called_wrongly(tmp_path: Path, words: list[str], message: str) -> None:
    """What is not there is said in one line with what there is, and no archive is begun."""
    assert message in refused(run_py("--out", tmp_path / "run", *words))
    assert not (tmp_path / "run").exists()


USAGE = ("--jobs 0", "--jobs x", "--colour", "word", "show", "case", "case new a/b", "watch", "measures")
WATCH_USAGE = ("watch x --policy none", "watch x --slow 0", "watch x --cap 0")


@pytest.mark.parametrize("words", [text.split() for text in (*USAGE, *WATCH_USAGE)], ids=" ".join)
def test_usage(words: list[str]) -> None:
    """A command line that cannot be read is exit 2, with the usage."""
    done = run_py(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["", "show", "case new", "case", "watch", "measures"])
def test_help(name: str) -> None:
    """Every command explains itself, with an example where it takes more than a name."""
    done = run_py(*name.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: run.py" in done.stdout


def test_list() -> None:
    """`--list` names every suite, case and subject, and runs nothing."""
    done = run_py("--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "suite frozen: 22 cases under frozen-text/1" in done.stdout
    names = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert names == {path.parent.name for path in CASES.glob("*/*/case.toml")}
    assert "subject strict: " in done.stdout
    assert "subject _wrong/naive: " in done.stdout


def file_in_place(path: Path) -> None:
    """A file of the user's."""
    path.write_text("mine")


def directory_in_place(path: Path) -> None:
    """A directory of the user's."""
    path.mkdir()
    (path / "notes").write_text("mine")


@pytest.mark.parametrize(
    "place", [file_in_place, directory_in_place, Path.mkdir, lambda path: path.symlink_to("nowhere")]
)
def test_what_is_there_stays(tmp_path: Path, place: Callable[[Path], object]) -> None:
    """A path that is taken is refused in one line, and left as it was."""
    place(tmp_path / "run")
    before = untouched(tmp_path)
    assert "exists already" in refused(run_py(*ONE, "--out", tmp_path / "run"))
    assert untouched(tmp_path) == before


@pytest.mark.parametrize("parent", ["file", "/proc", "/proc/self/deeper"])
def test_where_nothing_can_be_made(tmp_path: Path, parent: str) -> None:
    """A parent that is a file, or a read-only file system, is refused in one line."""
    (tmp_path / "file").write_text("mine")
    refused(run_py(*ONE, "--out", tmp_path / parent / "run"))
    assert tree(tmp_path) == {"file": b"mine"}


def test_a_name_too_long(tmp_path: Path) -> None:
    """A name that the file system does not take is refused in one line."""
    refused(run_py(*ONE, "--out", tmp_path / ("x" * 300)))


def at_most(size: int) -> Callable[[], None]:
    """Let no file grow beyond a size: the nearest to a full disk that needs no disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [0, 60, 300, 1000, 4000, 8000])
def test_a_full_disk(tmp_path: Path, size: int) -> None:
    """Wherever the disk is full: exit 2, one line with the file's name, and nothing left that looks sealed."""
    done = run_py("--out", tmp_path / "run", preexec=at_most(size))
    assert str(tmp_path / "run") in refused(done)
    assert not (tmp_path / "run").exists()


def written_to(stream: IO[bytes], *words: object) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose output goes to a stream, through a buffer as it does by default."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        command(*words), cwd=HOME, stdout=stream, stderr=subprocess.PIPE, check=False, timeout=60, env=env
    )


def test_stdout_full() -> None:
    """Output that cannot be written is an error, in one line."""
    with open("/dev/full", "wb") as full:
        done = written_to(full, "--list")
    assert done.returncode == 2
    assert done.stderr.startswith(b"endmark: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("words", [["--list"], ["--help"], [*ONE]])
def test_a_closed_pipe(tmp_path: Path, words: list[str]) -> None:
    """Whoever reads the output may go at any time: no word on stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        out = ["--out", tmp_path / "run"] if words == [*ONE] else []
        done = written_to(pipe, *words, *out)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


def test_a_subject_by_its_folder(tmp_path: Path) -> None:
    """A subject may lie anywhere: its folder is its name, and no path enters the plan."""
    folder = write_subject(tmp_path / "my subjects", CLAIMER, "my-sdk")
    run_py(*ONE, "--subject", folder, "--out", tmp_path / "run")
    plan = json.loads((tmp_path / "run/data/records/plan.json").read_text("ascii"))
    assert plan["subject"]["name"] == "my-sdk"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("", "subject throw-away: no ready: exit 0"),
        ("raise ValueError('no key')\n", "ValueError: no key"),
        ("print('hello')\nhear()\nhear()\n", "no ready: not a message"),
    ],
)
def test_a_subject_that_does_not_start(tmp_path: Path, program: str, message: str) -> None:
    """A subject that does not get ready is one line on stderr, and leaves no archive."""
    folder = write_subject(tmp_path, program)
    assert message in refused(run_py(*ONE, "--subject", folder, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_subject_that_starts_once(tmp_path: Path) -> None:
    """A subject that crashes in a turn and does not start again is one line on stderr as well."""
    mark = tmp_path / "mark"
    program = f"if os.path.exists({str(mark)!r}): sys.exit(5)\nready()\nhear()\nopen({str(mark)!r}, 'w')\nsys.exit(4)\n"
    folder = write_subject(tmp_path, program)
    done = run_py("--case", "[abc]*", "--jobs", 1, "--subject", folder, "--out", tmp_path / "run")
    assert "no ready: exit 5" in refused(done)
    assert not (tmp_path / "run").exists()


def test_a_suite_that_is_not_frozen(tmp_path: Path) -> None:
    """A suite whose bytes changed is refused before anything is made."""
    cases = copy_cases(tmp_path)
    (cases / "frozen/seven-byte/body.sse").write_bytes(b"")
    assert "has sha256" in refused(run_py("--cases", cases, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_show(tmp_path: Path) -> None:
    """`show` prints an archived exchange; a case that is not in it, or no archive, is one line."""
    assert run_py("--case", "one-byte", "--out", tmp_path / "run").returncode == 0
    done = run_py("show", tmp_path / "run", "one-byte")
    assert (done.returncode, done.stderr) == (0, "")
    assert "COMPLETE at byte 253" in done.stdout
    refused(run_py("show", tmp_path / "run", "crlf"))
    refused(run_py("show", tmp_path / "nowhere", "one-byte"))
    (tmp_path / "run/data/records/plan.json").write_bytes(b"{}\n")
    refused(run_py("show", tmp_path / "run", "one-byte"))


def test_a_contract_that_is_gone(tmp_path: Path) -> None:
    """A suite whose contract's file is not there is refused in one line, and leaves no archive."""
    cases = copy_cases(tmp_path)
    (cases / "contracts/frozen-text-1.toml").unlink()
    assert "frozen-text-1.toml" in refused(run_py(*ONE, "--cases", cases, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


CONTRACT_FAULTS = {
    "missing": (Path.unlink, "frozen-text-1.toml: cannot be read: No such file or directory"),
    "no TOML": (lambda path: path.write_text("name = \n"), "frozen-text-1.toml: Invalid value (at line 1"),
    "an unknown value": (
        lambda path: path.write_text(path.read_text().replace('usage = "optional"', 'usage = "maybe"')),
        "frozen-text-1.toml: switch.usage: 'maybe' is not one of ['optional', 'required']",
    ),
    "a changed limit": (
        lambda path: path.write_text(path.read_text().replace("8192", "8193")),
        "frozen-text-1.toml: is not as it was frozen",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), CONTRACT_FAULTS.values(), ids=list(CONTRACT_FAULTS))
def test_a_contract_that_cannot_be_used(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    """A contract is refused before anything is run, with file, key or line, and reason."""
    cases = copy_cases(tmp_path)
    spoil(cases / "contracts" / "frozen-text-1.toml")
    done = run_py("--cases", cases, "--out", tmp_path / "run")
    assert message in refused(done)
    assert not (tmp_path / "run").exists()


def test_without_its_libraries(tmp_path: Path) -> None:
    """An interpreter that has not what is needed is told so in one line, with how to get it."""
    words = [sys.executable, "-S", "-B", "run.py", "--case", "seven-byte", "--out", str(tmp_path / "run")]
    done = subprocess.run(words, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not installed for" in refused(done)
    assert not (tmp_path / "run").exists()


def test_too_few_file_descriptors(tmp_path: Path) -> None:
    """A machine that gives no more descriptors is one line and exit 2, and leaves no directory behind."""
    words = ["bash", "-c", 'ulimit -n 8; exec "$@"', "-", *command("--case", "seven-byte", "--out", tmp_path / "run")]
    done = subprocess.run(words, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Too many open files" in refused(done)
    assert not (tmp_path / "run").exists()
