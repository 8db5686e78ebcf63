"""`cases.py`: what is not right about a case is said with its file, line and key; nothing is skipped."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cases import Step, case_names, check_case, load_case, load_suite, suite_names
from harness.names import CASES, UsageError

from .support import copy_cases, edit

CASE = "frozen/seven-byte/case.toml"
BODY = "frozen/seven-byte/body.sse"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A copy of the committed cases."""
    return copy_cases(tmp_path)


def test_the_frozen_suite_loads() -> None:
    """The committed suite is as it was frozen, all 22 cases."""
    suite = load_suite(CASES, "frozen")
    assert (len(suite.cases), suite.size) == (22, 22)
    assert suite.contracts == ("frozen-text/1",)
    assert [case.name for case in suite.cases] == sorted(case.name for case in suite.cases)


def test_defaults() -> None:
    """A case that says nothing has the defaults of the format."""
    case = load_case(CASES / "frozen/read-timeout")
    assert case.conditions == {"read_cap_bytes": 7, "connect_timeout_ms": 1000, "read_timeout_ms": 100}
    assert case.exchanges[0].script == (Step(wait_ms=400),)
    assert (case.exchanges[0].status, case.exchanges[0].chunk_ends) == (200, ())


@pytest.mark.parametrize(
    ("name", "needs"), [("seven-byte", set()), ("cancel", {"cancel"}), ("read-timeout", {"read-timeout"})]
)
def test_needs(name: str, needs: set[str]) -> None:
    """A case needs what its conditions and its silence ask of a subject."""
    assert load_case(CASES / "frozen" / name).needs == needs


def unlink(path: Path) -> None:
    """Take a file or a folder away."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def directory_instead(path: Path) -> None:
    """Put a directory in the place of a file: it cannot be read, not even by root."""
    path.unlink()
    path.mkdir()


def dangling_link_instead(path: Path) -> None:
    """Put a link to nowhere in the place of a file."""
    path.unlink()
    path.symlink_to("nowhere")


SPOILT: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "body changed": (
        BODY,
        lambda path: path.write_bytes(path.read_bytes() + b" "),
        r"seven-byte/body\.sse: has sha256 \w+…, frozen is \w+…; undo",
    ),
    "body gone": (BODY, unlink, r"body\.sse: cannot be read: No such file"),
    "body a directory": (BODY, directory_instead, r"body\.sse: cannot be read: Is a directory"),
    "body a dangling link": (
        BODY,
        dangling_link_instead,
        r"body\.sse: cannot be read: No such",
    ),
    "label changed": (
        "frozen/seven-byte/label.toml",
        lambda path: path.write_text("# mine\n"),
        r"label\.toml: has sha256",
    ),
    "label gone": ("frozen/seven-byte/label.toml", unlink, r"label\.toml: cannot be read"),
    "case.toml gone": (CASE, unlink, r"seven-byte/case\.toml: cannot be read: No such file"),
    "case.toml a directory": (CASE, directory_instead, r"case\.toml: cannot be read: Is a directory"),
    "case.toml a dangling link": (CASE, dangling_link_instead, r"case\.toml: cannot be read: No such file"),
    "case folder gone": ("frozen/seven-byte", unlink, r"seven-byte/\S+: cannot be read: No such file"),
    "no TOML": (CASE, lambda path: path.write_text('title = "x"\ndialect = \n'), r"case\.toml: .*line 2"),
    "no UTF-8": (CASE, lambda path: path.write_bytes(b'title = "\xff"'), r"case\.toml: not UTF-8 at byte 9"),
    "unknown key": (
        CASE,
        lambda path: edit(path, 'ending = "complete"', 'ending = "complete"\ncolour = "red"'),
        r"case\.toml: exchange\[0\]: .*'colour' was unexpected",
    ),
    "unknown top key": (
        CASE,
        lambda path: path.write_text("colour = 1\n" + path.read_text("utf-8"), encoding="utf-8"),
        r"case\.toml: .*'colour' was unexpected",
    ),
    "wrong type": (
        CASE,
        lambda path: edit(path, "read_cap_bytes = 7", 'read_cap_bytes = "7"'),
        r"case\.toml: client\.read_cap_bytes: '7' is not of type 'integer'",
    ),
    "a float": (
        CASE,
        lambda path: edit(path, "read_cap_bytes = 7", "read_cap_bytes = 7.0"),
        r"case\.toml: client\.read_cap_bytes: 7\.0 is not of type 'integer'",
    ),
    "changed on purpose": (
        CASE,
        lambda path: edit(path, "read_cap_bytes = 7", "read_cap_bytes = 8"),
        r"case\.toml: has sha256 .* freeze on purpose: `run\.py case freeze frozen`",
    ),
    "an extra file": (
        "frozen/seven-byte/notes.txt",
        lambda path: path.write_text("mine"),
        r"seven-byte/notes\.txt: is not in the manifest",
    ),
    "an extra case": (
        "frozen/new-case",
        lambda path: shutil.copytree(path.parent / "crlf", path),
        r"new-case/body\.sse: is not in the manifest",
    ),
    "no manifest": ("frozen/manifest-sha256.txt", unlink, r"frozen: not frozen: label every case, then `run\.py case"),
    "manifest a directory": ("frozen/manifest-sha256.txt", directory_instead, r"frozen: not frozen"),
    "a manifest line that is none": (
        "frozen/manifest-sha256.txt",
        lambda path: path.write_text("nonsense\n"),
        r"manifest-sha256\.txt: line 1",
    ),
    "suite.toml changed": (
        "frozen/suite.toml",
        lambda path: edit(path, 'question = "question"', 'question = "another"'),
        r"suite\.toml: has sha256",
    ),
    "no suite": ("frozen/suite.toml", unlink, r"no suite 'frozen' \(there are: anthropic, "),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_suite(cases: Path, name: str) -> None:
    """A suite that is not as it was frozen is refused with the place, and no case vanishes in silence."""
    where, spoil, message = SPOILT[name]
    spoil(cases / where)
    with pytest.raises(UsageError, match=message) as caught:
        load_suite(cases, "frozen")
    assert "\n" not in str(caught.value)


def test_a_case_elsewhere_does_no_harm(cases: Path) -> None:
    """A case that was not asked for may be unfinished: it hinders no run of the others."""
    (cases / "frozen/crlf/body.sse").write_bytes(b"changed")
    suite = load_suite(cases, "frozen", "seven-*")
    assert ([case.name for case in suite.cases], suite.size) == (["seven-byte"], 22)


@pytest.mark.parametrize("name", ["nowhere", "../frozen", "", "Frozen", "frozen/crlf", "contracts", "..", "fro*"])
def test_no_such_suite(name: str) -> None:
    """A name that is no suite is refused, and the message says which there are."""
    with pytest.raises(UsageError, match=r"no suite .* \(there are: .*frozen"):
        load_suite(CASES, name)


@pytest.mark.parametrize(
    ("pattern", "count"), [("*", 22), ("missing-*", 1), ("MISSING-*", 0), ("[ab]*", 3), ("x", 0), ("../*", 0)]
)
def test_pattern(pattern: str, count: int) -> None:
    """A pattern picks cases by their name, with case."""
    assert len(load_suite(CASES, "frozen", pattern).cases) == count


def test_discovery_is_by_folder(cases: Path) -> None:
    """A folder without the file that makes it a suite or a case is none."""
    (cases / "notes").mkdir()
    (cases / "frozen/notes").mkdir()
    assert "frozen" in suite_names(cases)
    assert "notes" not in suite_names(cases)
    assert "notes" not in case_names(cases / "frozen")
    assert suite_names(cases / "nowhere") == []


BODY_BYTES = 252
EXCHANGE: dict[str, tuple[str, str]] = {
    "chunk ends out of order": ("chunk_ends = [20, 10]", "chunk_ends must rise strictly, inside the body's 252 bytes"),
    "a chunk end twice": ("chunk_ends = [10, 10]", "chunk_ends must rise strictly"),
    "a chunk end at the end": (f"chunk_ends = [{BODY_BYTES}]", "chunk_ends must rise strictly"),
    "a chunk end of zero": ("chunk_ends = [0]", r"exchange\[0\]\.chunk_ends\[0\]: 0 is less than the minimum"),
    "chunk ends in a length": ('chunk_ends = [10]\nframing = "close"', 'chunk_ends needs framing "chunked"'),
    "too few sends": ("script = [{ send_bytes = 10 }]", "script sends 10 bytes, the body has 252"),
    "too many sends": ("script = [{ send_bytes = 200 }, { send_bytes = 53 }]", "script sends 253 bytes"),
    "an empty step": ("script = [{ }]", r"exchange\[0\]\.script\[0\]: "),
    "a step of two kinds": ("script = [{ send_bytes = 252, wait_ms = 1 }]", r"exchange\[0\]\.script\[0\]: "),
    "an unknown step": ("script = [{ sleep = 1 }]", r"exchange\[0\]\.script\[0\]: "),
    "a float of a send": ("script = [{ send_bytes = 252.0 }]", "is not of type 'integer'"),
    "bad-chunk in a length": ('ending = "bad-chunk"\nframing = "content-length"', "needs framing 'chunked'"),
    "short-length in chunks": ('ending = "short-length"', "needs framing 'content-length'"),
    "short-length in close": ('ending = "short-length"\nframing = "close"', "needs framing 'content-length'"),
    "an unknown ending": ('ending = "explode"', r"exchange\[0\]\.ending: 'explode' is not one of"),
    "an unknown framing": ('framing = "gzip"', r"exchange\[0\]\.framing: 'gzip' is not one of"),
    "a wait just below": ("script = [{ wait_ms = 501 }]", "501 ms is too near read_timeout_ms = 1000"),
    "a wait just above": ("script = [{ wait_ms = 1999 }]", "1999 ms is too near read_timeout_ms = 1000"),
    "the time-out itself": ("script = [{ wait_ms = 1000 }]", "is too near"),
    "waits that add up": ("script = [{ wait_ms = 300 }, { wait_ms = 300 }]", "600 ms is too near"),
    "waits that add up before an end": (
        "script = [{ send_bytes = 252 }, { wait_ms = 500 }, { wait_ms = 500 }]",
        "1000 ms is too near",
    ),
    "a status out of range": ("status = 99", r"exchange\[0\]\.status: 99 is less than the minimum"),
    "a content type of two lines": ('content_type = "text/plain\\r\\nX: y"', r"exchange\[0\]\.content_type: "),
    "a content type with a line end": ('content_type = "text/plain\\n"', r"exchange\[0\]\.content_type: "),
    "a body elsewhere": ('body = "../crlf/body.sse"', r"exchange\[0\]\.body: "),
    "a body with a line end": ('body = "body.sse\\n"', r"exchange\[0\]\.body: "),
    "a body that is not there": ('body = "other.sse"', r"other\.sse: cannot be read: No such file"),
}


def with_exchange(folder: Path, fields: str) -> Path:
    """Write a case whose exchange has these fields."""
    folder.mkdir(parents=True)
    (folder / "body.sse").write_bytes(b"x" * BODY_BYTES)
    body = "" if "body = " in fields else 'body = "body.sse"\n'
    head = 'title = "t"\ndialect = "openai-chat"\nreference = "r"\n[client]\nread_cap_bytes = 7\n[[exchange]]\n'
    (folder / "case.toml").write_text(f"{head}{body}{fields}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", EXCHANGE)
def test_an_exchange_that_cannot_be(tmp_path: Path, name: str) -> None:
    """An exchange that could not be played as it says is refused, with the file and the reason."""
    fields, message = EXCHANGE[name]
    with pytest.raises(UsageError, match=message) as caught:
        check_case(with_exchange(tmp_path / "suite/case", fields))
    assert str(tmp_path / "suite/case") in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "chunk_ends = [1, 251]",
        "chunk_ends = []",
        "script = [{ send_bytes = 251 }, { send_bytes = 1 }]",
        "script = [{ wait_ms = 500 }]",
        "script = [{ wait_ms = 2000 }]",
        "script = [{ wait_ms = 500 }, { send_bytes = 252 }, { wait_ms = 500 }]",
        "script = [{ wait_ms = 250 }, { wait_ms = 250 }]",
        'ending = "short-length"\nframing = "content-length"',
        'ending = "bad-chunk"',
        'ending = "stall"\nframing = "close"',
        "status = 529",
    ],
)
def test_an_exchange_that_can_be(tmp_path: Path, fields: str) -> None:
    """The limits themselves are allowed."""
    assert check_case(with_exchange(tmp_path / "suite/case", fields)).exchanges[0].body == b"x" * BODY_BYTES


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ("script = [{ wait_ms = 500 }]", set()),
        ("script = [{ wait_ms = 2000 }]", {"read-timeout"}),
        ("script = [{ wait_ms = 400 }, { wait_ms = 400 }, { wait_ms = 1200 }]", {"read-timeout"}),
        ("script = [{ wait_ms = 500 }, { send_bytes = 252 }, { wait_ms = 500 }]", set()),
        ('ending = "stall"', {"read-timeout"}),
    ],
)
def test_silence_needs_a_time_out(tmp_path: Path, fields: str, needs: set[str]) -> None:
    """A silence longer than the read time-out needs a subject that has one; waits in a row are one silence."""
    assert check_case(with_exchange(tmp_path / "suite/case", fields)).needs == needs
