"""A session of fuzzing, with an engine of a few lines in the place of atheris; and what is done with a find."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from client import load
from fuzz import __main__ as command
from fuzz import frames, session
from fuzz.choices import Choices, Ends, cut, cut_around, limited, switched
from fuzz.growth import held_bytes
from fuzz.seeds import bodies, dictionary
from fuzz.shrink import shrink
from fuzz.targets import TARGETS
from tests.witnesses import items_by_auditor

STRICT = load("strict/1")

# Progress as libFuzzer words it; `{rest}` decides how this engine ends.
STUB = r"""
import signal, sys
options = dict(word[1:].split("=", 1) for word in sys.argv[2:] if word.startswith("-"))
print("#2\tINITED cov: 5 ft: 6 corp: 7/8b exec/s: 0 rss: 50Mb")
print("#4096\tDONE   cov: 81 ft: 197 corp: 36/3770b lim: 4096 exec/s: 12 rss: 52Mb", flush=True)
{rest}
"""
FINDS = r"""
print("\n === Uncaught Python exception: ===\nAssertionError: the client reads 1, the auditor None\nTraceback")
open(options["exact_artifact_path"], "wb").write(b"found")
sys.exit(77)
"""
HANGS = """
print("==1== ERROR: libFuzzer: timeout after 10 seconds", file=sys.stderr)
open(options["exact_artifact_path"], "wb").write(b"slow")
sys.exit(70)
"""
GOES_ON = "signal.pause()"
IS_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\nwhile True: signal.pause()"


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep corpus and finds below a folder of the test."""
    monkeypatch.setattr(session, "CORPUS", tmp_path / "corpus")
    monkeypatch.setattr(session, "FOUND", tmp_path / "found")


def engine(rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an engine that ends in this way in the place of atheris."""
    monkeypatch.setattr(session, "ENGINE", (sys.executable, "-c", STUB.replace("{rest}", rest)))


def test_nothing_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every target runs, has a row with its figures, and its seeds lie in its corpus."""
    engine("", monkeypatch)
    assert session.session(["json", "ndjson"], 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("json: 1 s, ")
    assert {"json: nothing found", "ndjson: nothing found"} <= set(lines)
    rows = {line.split()[0]: line.split()[2:] for line in lines[lines.index(session.table([])[0]) + 1 :]}
    assert rows == {name: ["4,096", "81", "36", "0"] for name in ("json", "ndjson")}
    assert len(list((tmp_path / "corpus" / "json").iterdir())) > 40


@pytest.mark.parametrize(("rest", "said"), [(FINDS, "the client reads 1"), (HANGS, "timeout after 10 seconds")])
def test_a_find(
    rest: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A find, or a hang, makes the exit code 1, is kept, and is named with the command that repeats it."""
    engine(rest, monkeypatch)
    assert session.session(["json"], 1) == 1
    (kept,) = (tmp_path / "found").iterdir()
    out = capsys.readouterr().out
    assert "json: FOUND" in out
    assert said in out
    assert f"-m fuzz repeat json {os.path.relpath(kept)}" in out


def test_an_engine_that_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An engine that ends by itself in another way has found nothing, and that is not success."""
    engine("import no_such_module", monkeypatch)
    assert session.session(["json"], 1) == 2
    assert "No module named 'no_such_module'" in capsys.readouterr().out


def test_an_engine_that_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An engine that does not end in time is ended, at last without asking, and that is not success."""
    engine(IS_DEAF, monkeypatch)
    monkeypatch.setattr(session, "GRACE_S", -1)
    monkeypatch.setattr(session, "INPUT_TIMEOUT_S", 0.5)
    assert session.session(["json"], 1) == 2
    assert "still going" in capsys.readouterr().out


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends what runs and still prints the table; the shell hears that it was no whole session."""
    engine(GOES_ON, monkeypatch)
    asleep, pressed = time.sleep, list[bool]()

    def interrupted(seconds: float) -> None:
        asleep(seconds)
        if not pressed and all("#4096" in path.read_text() for path in session.CORPUS.glob("*.log")):
            pressed.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    assert session.session(["json", "ndjson", "turn"], 600) == 130
    out = capsys.readouterr().out
    assert out.count("4,096") == 2
    assert "turn" not in out


# -- one find


def test_repeat_and_shrink(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`repeat` says what a file shows, `shrink` writes the smaller one; an exception is a find as well."""
    wrong = TARGETS["json"]._replace(deviation=lambda data: "is odd" if b"x" in data else None)
    monkeypatch.setitem(TARGETS, "json", wrong)
    file = tmp_path / "input"
    file.write_bytes(b"abc xyz")
    assert command.main(["repeat", "json", str(file)]) == 1
    assert command.main(["shrink", "json", str(file)]) == 1
    assert file.with_name("input.small").read_bytes() == b"x"
    assert capsys.readouterr().out.count("is odd") == 2
    file.write_bytes(b"abc")
    assert command.main(["repeat", "json", str(file)]) == 0
    assert command.main(["shrink", "json", str(file)]) == 2
    monkeypatch.setitem(TARGETS, "json", wrong._replace(deviation=lambda data: str(1 // len(data[3:]))))
    assert command.main(["repeat", "json", str(file)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_an_input_that_hangs(tmp_path: Path) -> None:
    """`repeat` ends where an input hangs, and says in which line."""
    code = """if True:
        import sys
        from fuzz import __main__ as command
        def hang(data):
            while True: pass
        command.HANGS_AFTER_S = 0.1
        command.TARGETS["json"] = command.TARGETS["json"]._replace(deviation=hang)
        command.main(["repeat", "json", sys.argv[1]])
    """
    (tmp_path / "input").write_bytes(b"x")
    words = [sys.executable, "-c", code, str(tmp_path / "input")]
    home = Path(__file__).parents[1]
    done = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "in hang" in done.stderr


def test_wrong_calls(capsys: pytest.CaptureFixture[str]) -> None:
    """A target that is none and a session without time are the caller's mistakes."""
    for words in (["run", "frobnicate"], ["run", "--seconds", "0"], []):
        with pytest.raises(SystemExit, match="2"):
            command.main(words)
    assert "frobnicate" in capsys.readouterr().err


def test_shrink_keeps_what_matters() -> None:
    """What has to stay stays, in its order; all else goes or becomes plain."""
    small = shrink(b"\x07noise<\x99\x98noise>", lambda data: b"<" in data and data.endswith(b">") and len(data) >= 5)
    assert small in (b"<\0\0\0>", b"\0\0\0<>", b"\0\0<\0>", b"\0<\0\0>")


# -- how an input is read


def test_zero_is_the_plain_choice() -> None:
    """No choices, and choices that are all 0, leave the contract as it is and the body whole."""
    for data in (b"", bytes(8)):
        assert limited(switched(STRICT, Choices(data)), Choices(data), events=1, line_utf16=8) == STRICT
        assert cut(b"abc", Choices(data)) == [b"abc"]


def test_choices() -> None:
    """Every bit turns one switch, every byte sets one limit, and what is left is the body."""
    turned = switched(STRICT, Choices(b"\xff\xff")).switches
    assert all(turned[name] != value for name, value in STRICT.switches.items())
    assert limited(STRICT, Choices(b"\x02\x03"), events=1, line_utf16=8).limits.line_utf16 == 24
    choices = Choices(b"\x01abc")
    assert (choices.byte(), choices.take(1), choices.rest(), choices.rest(), choices.byte()) == (1, b"a", b"bc", b"", 0)


def test_cuts() -> None:
    """Two sizes in turn; around each proof; and a proof falls to the end of its piece."""
    assert cut(b"abcdefg", Choices(b"\x01\x02")) == [b"a", b"bc", b"d", b"ef", b"g"]
    assert cut(b"abcdefg", Choices(b"\x03")) == [b"abc", b"defg"]
    pieces = cut_around(b"abcdefg", [3, None, 7])
    assert pieces == [b"ab", b"c", b"def", b"g"]
    assert [Ends(pieces).of(at) for at in (1, 2, 3, 4, 6, 7, None)] == [2, 2, 3, 6, 6, 7, None]


def test_frames() -> None:
    """Frames that are built or mended are good, and built ones say what their lines said."""
    lines = b'event/messageStart {"role":"assistant"}\nerror/x {}\nexception/y '
    built = frames.build(lines)
    items = items_by_auditor("eventstream", built, STRICT)
    assert frames.spell([(item.name, item.data or b"") for item in items]) == lines
    spoilt = bytearray(built)
    spoilt[8] ^= 1
    spoilt[-1] ^= 1
    assert items_by_auditor("eventstream", bytes(spoilt), STRICT)[0].name == "PROTOCOL"
    assert frames.mend(bytes(spoilt)) == built
    assert frames.mend(b"\0" * 20)[:8] == bytes(8)


def test_held_bytes() -> None:
    """What an object reaches counts once, through closures as well; classes and modules do not count."""
    one, text = [b"x" * 1000], "y" * 1000
    assert 1000 < held_bytes(one) < 1200
    assert held_bytes([one, one]) < 1300
    assert held_bytes(lambda: text) > 1000
    assert held_bytes([Path, sys]) < 200


def test_seeds_are_the_cases() -> None:
    """Every dialect is among the bodies, and the dictionary is one of libFuzzer's, no word longer than it takes."""
    assert {body.dialect for body in bodies()} == set(STRICT.dialects)
    words = dictionary().splitlines()
    assert len(words) > 200
    assert all(word.startswith('"\\x') and word.endswith('"') and len(word) <= 4 * 64 + 2 for word in words)
