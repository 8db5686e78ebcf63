"""Whatever DIR holds, the court ends with exit code 0, 1 or 2, writes nothing, and looks nowhere else."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import forge as tools
from .forge import AUDIT, PLAN, PROVENANCE, PYTHON, RECORDS, RUN, VOLATILE, Forge, Row, ask, canonical, copy

FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))

REQUIRED = (
    "bagit.txt",
    "bag-info.txt",
    "manifest-sha256.txt",
    "tagmanifest-sha256.txt",
    PROVENANCE,
    PLAN,
    RUN,
    RECORDS,
    VOLATILE,
    "data/suite/contracts/manifest-sha256.txt",
    "data/suite/frozen/suite.toml",
    "data/suite/frozen/cancel/case.toml",
    "data/suite/frozen/cancel/label.toml",
    "data/suite/frozen/cancel/body.sse",
)


def say(folder: Path | str, *words: str, **keywords: Any) -> "subprocess.CompletedProcess[bytes]":
    """Call the court for a person; it has a minute."""
    where: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | keywords
    return subprocess.run([*PYTHON, str(AUDIT), str(folder), *words], timeout=60, check=False, text=False, **where)


# -- garbage ---------------------------------------------------------------------------------------

PLACES = [*REQUIRED, "data/blobs/" + "0" * 64, "data", "x", "data/suite/frozen", "data/records/trials-00001.jsonl"]
NAMES = st.one_of(st.sampled_from(PLACES), st.text("ab./\udcff\n\x1bÅ ", min_size=1, max_size=12))
CONTENTS = st.one_of(
    st.binary(max_size=80),
    st.sampled_from([b"{}\n", b"[]\n", b"null\n", b"\n", b"[" * 9000, b'{"schema":"endmark.plan/1"}\n', b"a = 1\n"]),
)


def heap(folder: Path, files: dict[str, bytes]) -> Path:
    """Make a directory of whatever files can be made."""
    folder.mkdir()
    for name, data in files.items():
        path = Path(os.path.normpath(folder / name.strip("/")))
        if folder not in path.parents or any(parent.is_file() for parent in path.parents) or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@FEW
@given(files=st.dictionaries(NAMES, CONTENTS, max_size=8))
def test_a_heap_of_garbage(files: dict[str, bytes]) -> None:
    """Random files in random places: exit code 1, one JSON object, nothing on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        done = tools.court(heap(Path(folder) / "x", files))
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["findings"]


@MANY
@given(files=st.dictionaries(NAMES, CONTENTS, max_size=8))
def test_many_heaps_of_garbage(files: dict[str, bytes], court: ModuleType) -> None:
    """The same in-process, often: never an exception, never sound."""
    with tempfile.TemporaryDirectory() as folder:
        assert court.exit_code(ask(court, heap(Path(folder) / "x", files))) == 1


# Any JSON there is, and some that is none: NaN, surrogates, integers beyond 2^53.
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Give the path to every member of a JSON value."""
    members: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    return [path, *(found for key, inner in members for found in places(inner, (*path, key)))]


def put(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    """Replace the member at a path."""
    if not path:
        return new
    value[path[0]] = put(value[path[0]], path[1:], new)
    return value


@pytest.fixture(scope="session")
def mine(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Forge:
    """A copy of a suite that is not shipped, so that its cases are judged whatever they say."""
    forge = copy(good, tmp_path_factory.mktemp("mine") / "archive")
    forge.rename_suite()
    forge.keep_cases("cancel", "crlf", "oversized-line", "read-timeout")
    forge.reseal()
    return forge


@MANY
@given(data=st.data())
def test_a_changed_record(data: st.DataObject, court: ModuleType, mine: Forge) -> None:
    """Any member of any document replaced by any JSON, and resealed: no exception, whatever it says."""
    name = data.draw(st.sampled_from([PLAN, RUN, PROVENANCE, RECORDS, VOLATILE]))
    before = mine.read(name)
    try:
        rows: list[Row] = mine.rows(name)
        number = data.draw(st.integers(0, len(rows) - 1))
        path = data.draw(st.sampled_from(places(rows[number])))
        rows[number] = put(rows[number], path, data.draw(JSON_VALUES))
        mine.save_rows(rows, name)
        mine.reseal()
        assert court.exit_code(ask(court, mine.folder)) in (0, 1)
    finally:
        mine.write(name, before)


TOML_VALUES = [
    "-1",
    "0",
    "1",
    "9" * 400,
    "nan",
    "true",
    '""',
    "[]",
    "[" * 2000,
    "{}",
    "1979-05-27",
    '"\\u0000"',
    "[9, 3]",
]
TOML_FILES = ["suite.toml", "cancel/case.toml", "cancel/label.toml", "read-timeout/case.toml"]


@MANY
@given(data=st.data())
def test_a_changed_suite(data: st.DataObject, court: ModuleType, mine: Forge) -> None:
    """Any line of any TOML file given another value, frozen and resealed: no exception."""
    paths = [*(f"data/suite/mine/{name}" for name in TOML_FILES), tools.CONTRACT]
    name = data.draw(st.sampled_from(paths))
    before = mine.read(name)
    try:
        lines = before.decode().splitlines()
        at = data.draw(st.integers(0, len(lines) - 1))
        key = lines[at].partition("=")[0]
        lines[at] = f"{key}= {data.draw(st.sampled_from(TOML_VALUES))}"
        mine.write(name, "\n".join(lines).encode())
        freeze(mine)
        assert court.exit_code(ask(court, mine.folder)) in (0, 1)
    finally:
        mine.write(name, before)
        freeze(mine)


@MANY
@given(data=st.data())
def test_a_changed_blob(data: st.DataObject, court: ModuleType, mine: Forge) -> None:
    """Any blob of a record replaced by any bytes: no exception."""
    before = {RECORDS: mine.read(RECORDS)}
    key = data.draw(st.sampled_from(["response_head", "body", "history", "preview", "requests"]))
    content = data.draw(st.one_of(st.binary(max_size=40), JSON_VALUES.map(canonical)))
    reference = mine.blob(content)
    try:
        rows = mine.rows()
        holder = rows[0]["claim"] if key in ("history", "preview") else rows[0]
        holder[key] = [reference] if key == "requests" else reference
        mine.save_rows(rows)
        mine.reseal()
        assert court.exit_code(ask(court, mine.folder)) in (0, 1)
    finally:
        mine.write(RECORDS, before[RECORDS])
        mine.remove(f"data/blobs/{reference['sha256']}")
        mine.reseal()


def freeze(forge: Forge) -> None:
    """Freeze suite and contracts, and reseal."""
    forge.freeze("mine")
    forge.freeze("contracts")
    forge.reseal()


@pytest.mark.parametrize("name", ["manifest-sha256.txt", RECORDS, VOLATILE, "data/suite/frozen/manifest-sha256.txt"])
def test_a_million_empty_lines(name: str, court: ModuleType, archive: Forge) -> None:
    """The court does not drown in findings."""
    archive.write(name, b"\n" * 1_000_000)
    assert len(ask(court, archive.folder)["findings"]) <= 10_000


# -- DIR -------------------------------------------------------------------------------------------


def test_a_directory_that_cannot_be_read_at_all(good: Path, tmp_path: Path) -> None:
    """A file, a FIFO, a device, nothing: exit code 2 and one line that names it."""
    os.mkfifo(tmp_path / "pipe")
    for folder in (good / "bagit.txt", tmp_path / "pipe", "/dev/null", tmp_path / "missing", ""):
        done = say(folder)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.count(b"\n") == 1
        assert str(folder).encode() in done.stderr


def test_an_empty_directory(tmp_path: Path) -> None:
    """An empty directory is an archive that lacks everything: exit code 1."""
    done = tools.court(tmp_path)
    assert done.returncode == 1
    assert {finding["code"] for finding in json.loads(done.stdout)["findings"]} >= {"E-MISSING"}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc here")
@pytest.mark.parametrize("folder", ["/proc/self/fd", "/proc/self/net", "/proc/self/attr"])
def test_a_directory_of_the_kernel(folder: str) -> None:
    """Links that lead anywhere and files that lie about their size: exit code 1, soon."""
    assert say(folder).returncode == 1


def test_wrong_calls() -> None:
    """No DIR, an unknown option, a digest that is none: exit code 2, and nothing on stdout."""
    for words in ([], ["--frobnicate", "x"], ["x", "--expect-root", "abc"], ["x", "y"]):
        done = subprocess.run([*PYTHON, str(AUDIT), *words], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("name", REQUIRED)
def test_a_fifo_for_a_file(name: str, archive: Forge) -> None:
    """A FIFO in the place of any file that is read: nothing hangs, exit code 1."""
    archive.path(name).unlink()
    os.mkfifo(archive.path(name))
    done = tools.court(archive.folder)
    assert done.returncode == 1
    assert "E-FILETYPE" in {finding["code"] for finding in json.loads(done.stdout)["findings"]}


# -- output ----------------------------------------------------------------------------------------


def test_control_characters_are_escaped(archive: Forge) -> None:
    """Names and claims that could drive a terminal are printed escaped."""
    archive.change_claim("cancel", outcome="\x1b]0;owned\x07\x9b2J\u202e")
    archive.change(RUN, **{"\x1b[2J\r": 1})
    archive.reseal()
    archive.write("data/\x1b[2J\n\r\x9b\u202e.txt", b"x")
    (archive.folder / os.fsdecode(b"\xff\x1b")).write_bytes(b"x")
    for words in ([], ["--json"], ["--trace", "cancel"]):
        done = say(archive.folder, *words, env=os.environ | {"LC_ALL": "C.UTF-8"})
        assert done.returncode == 1
        assert all(char.isprintable() for char in done.stdout.decode().replace("\n", ""))
        assert done.stderr == b""


def test_the_path_of_the_archive_is_escaped(good: Path, tmp_path: Path) -> None:
    """So is the path of DIR itself, where it is found and where it is not."""
    folder = copy(good, tmp_path / "a\x1b[2Jb").folder
    assert b"\x1b" not in say(folder).stdout
    assert b"\x1b" not in say(tmp_path / "no\x1b[2J").stderr


def test_the_trace_of_an_unknown_case(good: Path) -> None:
    """It exits with 2 and one line."""
    done = say(good, "--trace", "no-such-case")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"no-such-case" in done.stderr


def test_the_trace_of_a_case_that_cannot_be_judged(archive: Forge) -> None:
    """A trace that was asked for and cannot be made is no crash: exit code 2 and one line."""
    archive.remove("data/suite/frozen/cancel/body.sse")
    done = say(archive.folder, "--trace", "cancel")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_reader_that_leaves(good: Path, words: list[str], archive: Forge) -> None:
    """A pipe that nobody reads changes no exit code, and prints no traceback."""
    archive.write("x", b"x")
    for folder, expected in ((good, 0), (archive.folder, 1)):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = say(folder, *words, stdout=writing)
        finally:
            os.close(writing)
        assert (done.returncode, done.stderr) == (expected, b"")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_closed_stdout(words: list[str], good: Path) -> None:
    """No stdout at all: the exit code still says it."""
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PYTHON, str(AUDIT), str(good), *words]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk(good: Path) -> None:
    """A report that could not be written is never exit code 0, and is not called a bug."""
    with open("/dev/full", "wb") as full:
        done = say(good, "--json", stdout=full)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"bug" not in done.stderr


# -- surroundings ----------------------------------------------------------------------------------


def test_it_runs_from_anywhere(good: Path, tmp_path: Path) -> None:
    """Another working directory, with modules in it that look like those it needs, changes nothing."""
    for name in ("json.py", "tomllib.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit(0)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "json.py")}
    done = tools.court(good, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (0, tools.court(good).stdout)


def test_a_copy_beside_an_archive_is_enough(good: Path, tmp_path: Path) -> None:
    """The one file works alone, and with a relative path."""
    (tmp_path / "court.py").write_bytes(AUDIT.read_bytes())
    os.symlink(good, tmp_path / "archive")
    command = [*PYTHON, "court.py", "archive"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False).returncode == 0


def listing(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """Give every path with what would change if it were touched."""
    paths = [folder, *folder.rglob("*")]
    stats = [(path, path.lstat()) for path in sorted(paths)]
    return [(str(path), s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in stats]


def test_it_writes_nothing(good: Path, tmp_path: Path) -> None:
    """Neither the archive, nor what lies beside it, nor the working directory changes."""
    copy(good, tmp_path / "archive")
    (tmp_path / "here").mkdir()
    before = listing(tmp_path)
    tools.court(tmp_path / "archive", "--trace", "cancel", cwd=tmp_path / "here")
    assert listing(tmp_path) == before


def test_a_read_only_archive(good: Path, tmp_path: Path) -> None:
    """It needs no right to write."""
    archive = copy(good, tmp_path / "archive").folder
    paths = [archive, *archive.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    assert tools.court(archive).returncode == 0
    for path in paths:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


# Runs the court under an audit hook, and prints every event that reaches outside the interpreter.
SPY = """
import json, runpy, sys
sys.dont_write_bytecode = True
events = []
WATCHED = ("open", "os.", "shutil.", "subprocess.", "socket.", "ctypes.", "tempfile.", "webbrowser.", "urllib.")
def hook(event, arguments):
    if event.startswith(WATCHED):
        events.append([event, *map(str, arguments)])
sys.addaudithook(hook)
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print(json.dumps(events), file=sys.stderr)
"""


def test_it_opens_nothing_else(archive: Forge, tmp_path: Path) -> None:
    """Outside DIR it opens itself and the standard library, for reading, and does nothing else at all."""
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink("../secret.txt", archive.path("link"))
    archive.replace("manifest-sha256.txt", b"  data/provenance.json", b"  ../secret.txt")
    command = [*PYTHON, "-c", SPY, str(AUDIT), str(archive.folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    events = json.loads(done.stderr.splitlines()[-1])
    names = {path.name for path in archive.folder.rglob("*") if not path.is_symlink()}
    library = Path(sys.base_prefix).resolve()
    opened = 0
    for event, *words in events:
        if event in ("os.scandir", "os.listdir"):
            assert words[0].isdigit() or Path(words[0]).resolve().is_relative_to(library), words
            continue
        assert event == "open", (event, words)
        path, _, flags = words
        assert not int(flags) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND), words
        if path in names or path.isdigit():
            opened += 1
        elif path not in (str(AUDIT), str(archive.folder)):
            assert Path(path).resolve().is_relative_to(library), path
    assert opened > 100
