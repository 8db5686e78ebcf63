"""`case new`: a new fault in one step, which states no outcome until a person has written one."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.cases import load_case, load_suite
from harness.cli import main
from harness.names import CASES, UsageError

from .support import copy_cases, edit, refused, run_py, tree

GOOD = (CASES / "frozen/seven-byte/body.sse").read_bytes()
OVERSIZED = (CASES / "frozen/oversized-line/body.sse").read_bytes()


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A copy of the committed cases."""
    return copy_cases(tmp_path)


def new(cases: Path, *words: str, source: str = "frozen/seven-byte", target: str = "mine/new") -> int:
    """Make a case by the command line, in this process."""
    return main(["case", "new", target, "--from", source, "--cases", str(cases), *words])


def toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return tomllib.loads(path.read_text("utf-8"))


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ([], GOOD),
        (["--cut", "0"], b""),
        (["--cut", "100"], GOOD[:100]),
        (["--cut", "253"], GOOD),
        (["--delete", "10:20"], GOOD[:10] + GOOD[20:]),
        (["--delete", "240:"], GOOD[:240]),
        (["--delete=-1:"], GOOD[:-1]),
        (["--delete", "-1:"], GOOD[:-1]),
        (["--delete", "-3:-1"], GOOD[:-3] + GOOD[-1:]),
        (["--delete", "0:-5"], GOOD[-5:]),
        (["--splice", "0", "\\xef\\xbb\\xbf"], b"\xef\xbb\xbf" + GOOD),
        (["--splice", "253", ": 你\\n\\n"], GOOD + ": 你\n\n".encode()),
        (["--splice", "6", "\\xC3\\r\\t\\\\n"], GOOD[:6] + b"\xc3\r\t\\n" + GOOD[6:]),
        (["--replace", "stop", "length"], GOOD.replace(b"stop", b"length")),
        (["--replace", "[DONE]\\n\\n", "[DONE]"], GOOD[:-2]),
        (["--replace", "stop", ""], GOOD.replace(b"stop", b"")),
        (["--replace", "stop", "length", "--cut", "10"], GOOD[:10]),
    ],
)
def test_edits(cases: Path, words: list[str], body: bytes) -> None:
    """Each edit changes the bytes that it names, and no others."""
    assert new(cases, *words) == 0
    assert (cases / "mine/new/body.sse").read_bytes() == body
    assert load_case(cases / "mine/new").exchanges[0].body == body


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cut", "254"], "byte 254 is outside the body of 253 bytes"),
        (["--cut", "-1"], "byte -1 is outside"),
        (["--delete", "300:400"], "--delete 300:400: nothing there in a body of 253 bytes"),
        (["--delete", "20:10"], "nothing there"),
        (["--delete", "x:y"], "'x' is no byte offset"),
        (["--delete", ":10"], "'' is no byte offset"),
        (["--splice", "254", "x"], "byte 254 is outside"),
        (["--splice", "x", "y"], "'x' is no byte offset"),
        (["--splice", "0", "\\xZZ"], "xZZ"),
        (["--splice", "0", "\\u4f60"], "u4f60"),
        (["--replace", "absent", "x"], "b'absent' occurs 0 times in the body, needs to be once"),
        (["--replace", "data", "x"], "b'data' occurs 4 times"),
        (["--replace", "", "x"], "occurs 254 times"),
        (["--ending", "explode"], "'explode' is not one of"),
        (["--ending", "short-length"], "needs framing 'content-length'"),
        (["--set", "client.read_cap_bytes", "0"], "0 is less than the minimum of 1"),
        (["--set", "client.colour", "1"], "'colour' was unexpected"),
        (["--set", "nowhere.key", "1"], "no table 'nowhere' in case.toml"),
        (["--set", "title.key", "1"], "no table 'title' in case.toml"),
        (["--set", "client", "1"], "1 is not of type 'object'"),
        (["--set", "exchange", "1"], "1 is not of type 'array'"),
        (["--set", "exchange.body", "../../outside"], "does not match"),
        (["--set", "exchange.body", "case.toml"], "case.toml"),
        (["--set", "", "1"], "''"),
    ],
)
def test_refused(cases: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    """What cannot be done is refused in one line, and nothing is left behind: the same name can be tried again."""
    before = tree(cases)
    assert new(cases, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("endmark: ")
    assert error.count("\n") == 1
    assert tree(cases) == before
    assert not (cases / "mine/new").exists()
    assert new(cases) == 0


@pytest.mark.parametrize(
    "target",
    ["new", "mine/", "/new", "Mine/new", "mine/New", "../mine/new", "mine/../new", "mine/a b", "mine/.x", "mine/a/b"],
)
def test_bad_names(cases: Path, target: str) -> None:
    """A name outside the grammar makes no case."""
    before = tree(cases.parent)
    assert new(cases, target=target) == 2
    assert tree(cases.parent) == before


def test_the_contracts_are_no_suite(cases: Path) -> None:
    """The folder of contracts takes no case."""
    assert new(cases, target="contracts/new") == 2
    assert not (cases / "contracts/suite.toml").exists()


@pytest.mark.parametrize("source", ["frozen/nowhere", "nowhere/x", "x", "contracts/x"])
def test_no_such_source(cases: Path, source: str) -> None:
    """A case that is not there is no source, and no suite is made for it."""
    assert new(cases, source=source) == 2
    assert not (cases / "mine").exists()


def test_a_target_that_is_there(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that is there is never overwritten."""
    before = tree(cases)
    assert new(cases, "--cut", "1", target="frozen/crlf") == 2
    assert "crlf: exists already; a case's name is its permanent id" in capsys.readouterr().err
    assert tree(cases) == before


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("client.read_cap_bytes", "1", ("client", "read_cap_bytes", 1)),
        ("client.read_timeout_ms", "500", ("client", "read_timeout_ms", 500)),
        ("exchange.status", "429", ("exchange", "status", 429)),
        ("exchange.framing", "close", ("exchange", "framing", "close")),
        ("exchange.framing", '"close"', ("exchange", "framing", "close")),
        ("exchange.chunk_ends", "[1, 2]", ("exchange", "chunk_ends", [1, 2])),
        (
            "exchange.content_type",
            "text/plain; charset=utf-8",
            ("exchange", "content_type", "text/plain; charset=utf-8"),
        ),
        ("exchange.script", "[{ wait_ms = 2000 }]", ("exchange", "script", [{"wait_ms": 2000}])),
    ],
)
def test_set(cases: Path, key: str, value: str, found: tuple[str, str, object]) -> None:
    """`--set` takes any field, as TOML or as plain text."""
    assert new(cases, "--set", key, value) == 0
    table = toml(cases / "mine/new/case.toml")[found[0]]
    assert (table[0] if isinstance(table, list) else table)[found[1]] == found[2]


def test_set_more_than_once(cases: Path) -> None:
    """`--set`, `--ending` and `--title` go together."""
    words = ["--set", "exchange.framing", "content-length", "--set", "client.read_cap_bytes", "3"]
    assert new(cases, *words, "--ending", "short-length", "--title", "GOOD, 64 bytes short") == 0
    table = toml(cases / "mine/new/case.toml")
    assert (table["title"], table["client"]["read_cap_bytes"]) == ("GOOD, 64 bytes short", 3)
    assert load_case(cases / "mine/new").exchanges[0].ending == "short-length"


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ([], "GOOD (changed: say how)"),
        (["--title", "another 你"], "another 你"),
        (["--set", "title", "another"], "another"),
    ],
)
def test_title(cases: Path, words: list[str], title: str) -> None:
    """A new case has the title that was given, or one that asks for it."""
    assert new(cases, *words) == 0
    assert toml(cases / "mine/new/case.toml")["title"] == title


def test_comments_survive(cases: Path) -> None:
    """What a person wrote into case.toml, comments and order, is still there."""
    edit(cases / "frozen/seven-byte/case.toml", "[client]", "# why seven: it cuts every character\n[client]  # here")
    assert new(cases, "--ending", "fin", "--set", "client.read_cap_bytes", "5") == 0
    text = (cases / "mine/new/case.toml").read_text("utf-8")
    assert "# why seven: it cuts every character\n[client]  # here\nread_cap_bytes = 5\n" in text
    assert text.index("[client]") < text.index("[[exchange]]") < text.index('ending = "fin"')


def test_a_script_that_no_longer_fits(cases: Path) -> None:
    """Chunk ends behind a cut are dropped, and sends that no longer add up; waits stay."""
    assert new(cases, "--cut", "4000", source="frozen/oversized-line") == 0
    assert load_case(cases / "mine/new").exchanges[0].chunk_ends == ()
    words = ["--set", "exchange.script", "[{ send_bytes = 53 }, { wait_ms = 100 }, { send_bytes = 200 }]"]
    assert new(cases, *words, target="mine/paced") == 0
    assert new(cases, "--cut", "60", source="mine/paced", target="mine/cut") == 0
    (step,) = load_case(cases / "mine/cut").exchanges[0].script
    assert step.wait_ms == 100


def test_born_without_an_outcome(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new case states nothing, and neither freezing nor a run takes it."""
    assert new(cases) == 0
    label = toml(cases / "mine/new/label.toml")
    assert label["contract"] == {"frozen-text/1": {}}
    assert main(["case", "freeze", "mine", "--cases", str(cases)]) == 2
    assert "new/label.toml: no outcome under" in capsys.readouterr().err
    with pytest.raises(UsageError, match="not frozen"):
        load_suite(cases, "mine")


def test_a_new_suite_has_the_conversation_of_the_source(cases: Path) -> None:
    """A suite that was not there is made with the name of its folder; one that is there is left alone."""
    assert new(cases) == 0
    suite = toml(cases / "mine/suite.toml")
    assert suite["name"] == "mine"
    assert suite["conversation"] == toml(CASES / "frozen/suite.toml")["conversation"]
    before = (cases / "mine/suite.toml").read_bytes()
    assert new(cases, target="mine/second") == 0
    assert (cases / "mine/suite.toml").read_bytes() == before


LABEL = """\
why = "{why}"
authority = "spec"
url = "https://html.spec.whatwg.org/multipage/server-sent-events.html"
date = 2026-11-30

[contract."frozen-text/1"]
outcome = "{outcome}"
preview = "你好，Java 🌱"
committed = false
"""


def test_the_two_examples_of_the_readme(cases: Path, tmp_path: Path) -> None:
    """A finish reason of `length`, and a DONE that no blank line dispatches: made, labelled, frozen, run."""
    where = ["--cases", cases]
    for done in (
        run_py("case", "new", "mine/said-length", "--from", "frozen/seven-byte", "--replace", "stop", "length", *where),
        run_py("case", "new", "mine/no-blank-line", "--from", "frozen/seven-byte", "--delete", "-1:", *where),
    ):
        assert (done.returncode, done.stderr) == (0, "")
    assert "no outcome" in refused(run_py("case", "freeze", "mine", *where))
    outcomes = {"said-length": "INCOMPLETE_FINISH", "no-blank-line": "INCOMPLETE_STREAM"}
    for name, outcome in outcomes.items():
        (cases / "mine" / name / "label.toml").write_text(LABEL.format(why=name, outcome=outcome), encoding="utf-8")
    assert run_py("case", "freeze", "mine", *where).returncode == 0
    done = run_py("--suite", "mine", "--out", tmp_path / "run", *where)
    assert done.returncode in (0, 1), done.stderr  # 1: the auditor has no pinned digest of this suite
    for name, outcome in outcomes.items():
        (row,) = (row for row in done.stdout.splitlines() if row.startswith(name))
        assert outcome in row
        assert row.endswith("AGREE")
