"""`sessions.py`, and what freezing and making ask of a case with steps: what cannot be played is said with its step."""

import tomllib
from pathlib import Path

import pytest

from harness.cases import check_case, load_case, load_suite
from harness.cli import main
from harness.freeze import freeze, index_text
from harness.names import UsageError
from harness.sessions import SessionStep

from .sessions import CASE, LABEL, body, write_session
from .support import edit

SIZE = len(body("old"))


def test_a_session_loads(tmp_path: Path) -> None:
    """A case with steps has its exchanges and steps in order, and needs a subject that takes steps."""
    root = write_session(tmp_path)
    freeze(root, "talks")
    (case,) = load_suite(root, "talks").cases
    assert [exchange.body for exchange in case.exchanges] == [body("old"), body("new")]
    assert case.steps[1] == SessionStep(do="read", attempt="a", until_bytes=10)
    assert case.steps[2].message == {"do": "supersede", "attempt": "b", "of": "a"}
    assert case.needs == {"steps"}


REFUSED = {
    "unknown of": ('of = "a"', 'of = "z"', r"step 3 \(supersede\): of: no attempt 'z' before"),
    "of itself": ('of = "a"', 'of = "b"', r"step 3 \(supersede\): of: no attempt 'b' before"),
    "no of": ('of = "a"', "", r"step\[2\]: 'of' is a required property"),
    "a name twice": ('attempt = "b"\nof', 'attempt = "a"\nof', r"step 3 \(supersede\): attempt: 'a' was named before"),
    "an unknown attempt": (
        'do = "commit"\nattempt = "b"',
        'do = "commit"\nattempt = "c"',
        r"step 5 \(commit\): attempt",
    ),
    "no attempt": ('do = "commit"\nattempt = "b"', 'do = "commit"', r"step\[4\]: 'attempt' is a required property"),
    "clear of an attempt": ('do = "commit"', 'do = "clear"', r"step 5 \(clear\): attempt: .* leave it out"),
    "no such step": ('do = "commit"', 'do = "publish"', r"step\[4\]\.do: 'publish' is not one of"),
    "a long name": (
        'do = "commit"\nattempt = "b"',
        'do = "commit"\nattempt = "bb"',
        r"step\[4\]\.attempt: 'bb' does not",
    ),
    "an unknown key": ('do = "commit"', 'do = "commit"\nat = 1', r"step\[4\]: .*'at' was unexpected"),
    "until of a commit": (
        'do = "commit"',
        'do = "commit"\nuntil_bytes = 3',
        r"step 5 \(commit\): until_bytes: only a read",
    ),
    "of a commit": ('do = "commit"', 'do = "commit"\nof = "a"', r"step 5 \(commit\): of: only supersede and retry"),
    "until behind": (
        "until_bytes = 10",
        f"until_bytes = {SIZE + 1}",
        rf"until_bytes: {SIZE + 1} is outside .* {SIZE} b",
    ),
    "until zero": ("until_bytes = 10", "until_bytes = 0", r"step\[1\]\.until_bytes: 0 is less than"),
    "fewer exchanges": ('[[exchange]]\nbody = "new.sse"\n', "", r"step: 2 steps make a request, there are 1 exchanges"),
    "cancel in the middle": (
        "read_cap_bytes = 7",
        "read_cap_bytes = 7\ncancel_after_utf16 = 1",
        r"client\.cancel_after_utf16: a case with steps cancels in a step",
    ),
    "a long wait": (
        'body = "new.sse"',
        'body = "new.sse"\nscript = [{ wait_ms = 4000 }]',
        r"exchange 2: script: time passes between the steps .* 500 ms; .*'stall'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_session_that_cannot_be_played(tmp_path: Path, name: str) -> None:
    """A step that cannot be meant is refused with the file, the step and what to do."""
    old, new, message = REFUSED[name]
    root = write_session(tmp_path, CASE.replace(old, new))
    assert CASE.count(old) == 1
    with pytest.raises(UsageError, match=rf"talks/two/case\.toml: .*{message}"):
        check_case(root / "talks/two")


def test_several_exchanges_need_steps(tmp_path: Path) -> None:
    """Without steps nobody asks a second time: one exchange is the most."""
    root = write_session(tmp_path, CASE[: CASE.index("[[step]]")])
    with pytest.raises(UsageError, match=r"case\.toml: exchange: .* is too long"):
        check_case(root / "talks/two")


def test_bodies_that_no_journal_holds(tmp_path: Path) -> None:
    """The bodies of a session are no longer together than a line of the subject protocol."""
    root = write_session(tmp_path)
    (root / "talks/two/new.sse").write_bytes(b":" * (2**20 - SIZE))
    assert len(check_case(root / "talks/two").exchanges) == 2
    (root / "talks/two/new.sse").write_bytes(b":" * (2**20 - SIZE + 1))
    with pytest.raises(UsageError, match=r"exchange: bodies of 1048577 bytes, at most 1048576"):
        check_case(root / "talks/two")


def test_a_stall_is_a_silence_that_can_be_played(tmp_path: Path) -> None:
    """A read that times out in a session has the ending `stall`, whose silence has no end."""
    root = write_session(tmp_path, CASE.replace('body = "new.sse"', 'body = "new.sse"\nending = "stall"'))
    assert check_case(root / "talks/two").needs == {"steps", "read-timeout"}


NAIVE = LABEL.replace("dispatched = 0", "dispatched = 0\nfails = true")
LABELS = {
    "nothing stated": (LABEL.replace("stored", "# stored"), r'no stored under \[contract\."strict/1"\]: a person'),
    "an attempt less": (LABEL[: LABEL.index("attempt.b")], r"attempt: states \['a'\], the case makes \['a', 'b'\]"),
    "an attempt more": (LABEL + 'attempt.c = { decision = "open" }\n', r"attempt: states \['a', 'b', 'c'\]"),
    "no decision": (LABEL.replace('{ decision = "superseded" }', "{}"), r"attempt\.a: 'decision' is a required"),
    "a decision that is none": (LABEL.replace('"accepted" }', '"kept" }'), r"decision: 'kept' is not one of"),
    "no writes": (LABEL.replace("writes = 1", ""), r"'writes' is a required property"),
    "a tool run": (LABEL.replace("dispatched = 0", "dispatched = 1"), r"dispatched: 0 was expected"),
    "fails, owned": (NAIVE, r"fails: belongs to a naive contract only"),
}


@pytest.mark.parametrize("name", LABELS)
def test_a_label_that_does_not_fit(tmp_path: Path, name: str) -> None:
    """A label is refused that leaves something out, or states an attempt that the case does not make."""
    label, message = LABELS[name]
    with pytest.raises(UsageError, match=rf"talks/two/label\.toml: .*{message}"):
        freeze(write_session(tmp_path, label=label), "talks")


def test_a_naive_contract_needs_fails(tmp_path: Path) -> None:
    """Under a naive contract the label says whether the control has to fail."""
    root = write_session(tmp_path)
    with (root / "contracts/strict-1.toml").open("a") as file:
        file.write('\n[attempts]\npolicy = "naive"\n')
    with pytest.raises(UsageError, match="fails: is missing: say whether"):
        freeze(root, "talks")
    (root / "talks/two/label.toml").write_text(NAIVE, encoding="utf-8")
    freeze(root, "talks")


def test_a_session_label_belongs_to_a_session(tmp_path: Path) -> None:
    """A case of one attempt cannot have the label of a session."""
    root = write_session(tmp_path, CASE[: CASE.index('\n[[exchange]]\nbody = "new')])
    with pytest.raises(UsageError, match="no outcome under"):
        freeze(root, "talks")


def test_the_index_has_every_body(tmp_path: Path) -> None:
    """The index names the bodies of a session in the order of its exchanges."""
    root = write_session(tmp_path)
    freeze(root, "talks")
    assert index_text(root).count('"file": "old.sse"') == 1
    assert index_text(root).index('"old.sse"') < index_text(root).index('"new.sse"')


def new(root: Path, *words: str) -> int:
    """Make a case from the session by the command line, in this process."""
    return main(["case", "new", "mine/again", "--from", "talks/two", "--cases", str(root), *words])


def test_a_new_case_from_a_session(tmp_path: Path) -> None:
    """A case made from a session has all its bodies and steps, and a label that names what to state."""
    root = write_session(tmp_path)
    assert new(root, "--replace", "old", "older") == 0
    case = load_case(root / "mine/again")
    assert [exchange.body for exchange in case.exchanges] == [body("older"), body("new")]
    assert len(case.steps) == 5
    label = (root / "mine/again/label.toml").read_text("utf-8")
    assert tomllib.loads(label)["contract"] == {"strict/1": {}}
    assert '# attempt.b = { outcome = "", decision = "" }' in label
    with pytest.raises(UsageError, match="no stored under"):
        freeze(root, "mine")


def test_a_cut_that_a_step_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cut before a byte until which a step reads is refused, and nothing is left behind."""
    root = write_session(tmp_path)
    assert new(root, "--cut", "9") == 2
    assert "step 2 (read): until_bytes: 10 is outside the body of 9 bytes" in capsys.readouterr().err
    assert not (root / "mine").exists()


def test_a_changed_body_of_a_session(tmp_path: Path) -> None:
    """A byte of any body is frozen."""
    root = write_session(tmp_path)
    freeze(root, "talks")
    edit(root / "talks/two/new.sse", "new", "now")
    with pytest.raises(UsageError, match=r"two/new\.sse: has sha256"):
        load_suite(root, "talks")
