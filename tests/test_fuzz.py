"""Every target of the fuzzing holds on what it begins with, and its oracle is seen to fail, without atheris."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from client import Contract, Reader, Settled
from client.events import Framer, Item
from client.outcomes import COMPLETE, Fault
from fuzz import archives, json_texts
from fuzz.framings import HEAD_BYTES
from fuzz.targets import TARGETS, inputs
from tests import witnesses

FOUND = sorted((Path(__file__).parent / "vectors" / "fuzz").glob("*/*"))


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_begins_with(target: str) -> None:
    """No seed, be it of a case or of a vector, shows a deviation."""
    begins = inputs(target)
    assert len(begins) > 40
    assert [(data, what) for data in begins if (what := TARGETS[target].deviation(data))] == []


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found(path: Path) -> None:
    """What fuzzing found once is found no more."""
    assert TARGETS[path.parent.name].deviation(path.read_bytes()) is None


# -- controls: each is wrong in one way, and the target has to say so


class Wrapped:
    """A framer that does right; what derives from it does one thing wrong."""

    right: Callable[[Contract], Framer]

    def __init__(self, contract: Contract) -> None:
        self.inner = type(self).right(contract)

    def feed(self, data: bytes) -> list[Item]:
        return self.inner.feed(data)

    def flush(self) -> list[Item]:
        return self.inner.flush()


class LosesCr(Wrapped):
    """Loses every CR."""

    def feed(self, data: bytes) -> list[Item]:
        return super().feed(data.replace(b"\r", b""))


class DropsAtCuts(Wrapped):
    """Takes an LF at the beginning of a piece for the second half of a CRLF."""

    def feed(self, data: bytes) -> list[Item]:
        return super().feed(data.removeprefix(b"\n"))


class EndsAtU2028(Wrapped):
    """Takes U+2028 for the end of a line."""

    def feed(self, data: bytes) -> list[Item]:
        return super().feed(data.replace("\u2028".encode(), b"\n"))


class TrustsChecksums(Wrapped):
    """Gives no fault, and nothing after one."""

    faulted = False

    def feed(self, data: bytes) -> list[Item]:
        items = [] if self.faulted else super().feed(data)
        events: list[Item] = [item for item in items if not isinstance(item, Fault)]
        self.faulted |= len(events) < len(items)
        return events


class IsLate(Wrapped):
    """Gives an event with the next piece, as a reader does that waits for more."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.late: list[Item] = []

    def feed(self, data: bytes) -> list[Item]:
        now, self.late = self.late, super().feed(data)
        return now


class Hoards(Wrapped):
    """Keeps every piece."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.kept: list[bytes] = []

    def feed(self, data: bytes) -> list[Item]:
        self.kept.append(bytes(bytearray(data)))
        return super().feed(data)


def framed_by(framer: type[Wrapped], framing: str, patch: pytest.MonkeyPatch) -> None:
    """Have the client frame in a wrong way."""
    patch.setattr(framer, "right", witnesses.FRAMERS[framing], raising=False)
    patch.setitem(witnesses.FRAMERS, framing, framer)


def reported(target: str) -> str | None:
    """Give the first deviation that a target's own seeds show."""
    return next(filter(None, map(TARGETS[target].deviation, inputs(target))), None)


@pytest.mark.parametrize(
    ("framing", "framer"),
    [
        ("sse", LosesCr),
        ("sse", DropsAtCuts),
        ("sse", IsLate),
        ("ndjson", LosesCr),
        ("ndjson", EndsAtU2028),
        ("ndjson", IsLate),
        ("eventstream", LosesCr),
        ("eventstream", TrustsChecksums),
        ("eventstream", IsLate),
    ],
)
def test_a_wrong_framer_is_reported(framing: str, framer: type[Wrapped], monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte lost, a fault swallowed, or an event that comes late, shows on the seeds already."""
    framed_by(framer, framing, monkeypatch)
    assert reported(framing)


@pytest.mark.parametrize(
    ("framing", "unit"), [("sse", b"data: x\n\n"), ("sse", b": comment\n"), ("ndjson", b"{}\n")], ids=str
)
def test_hoarding_is_reported(framing: str, unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A framer that keeps what it has read is reported, and one that does not is not, under tight limits."""
    tight = bytes([0, 0, 40, 40, 0, 0, 100, 100, 0])
    assert len(tight) == HEAD_BYTES
    data = tight + unit * (20_000 // len(unit))
    assert TARGETS[framing].deviation(data) is None
    framed_by(Hoards, framing, monkeypatch)
    assert "holds" in (TARGETS[framing].deviation(data) or "")


def test_a_parser_that_takes_a_name_twice_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that is lenient in anything else that a vector names."""

    def lenient(text: str, _: int) -> str | None:
        try:
            return json.dumps(json.loads(text))
        except ValueError:
            return None

    monkeypatch.setattr(json_texts, "json_by_client", lenient)
    assert "the auditor None" in (TARGETS["json"].deviation(b'\0{"a":1,"a":2}') or "")
    assert reported("json")


@pytest.mark.parametrize("text", ["1", "1.0", "true", "0.0", "-0.0", '"1"'])
def test_values_that_python_takes_for_equal_differ(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 1.0 and true, 0.0 and -0.0 are different answers."""
    monkeypatch.setattr(json_texts, "json_by_client", lambda *_: "1" if text != "1" else "1.0")
    assert TARGETS["json"].deviation(b"\0" + text.encode())


def test_a_reader_that_trusts_the_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of a hundred tutorials: what came is the answer."""

    class Trusting(Reader):
        def end(self, transport_end: str = "eof", *, is_framed: bool = True) -> Settled:
            return self.stop(COMPLETE, f"the stream ended ({transport_end}, {is_framed})")

    monkeypatch.setattr(witnesses, "Reader", Trusting)
    assert "outcome 'COMPLETE'" in (reported("turn") or "")


def test_a_reader_that_settles_late_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece later is one read later."""

    class Late(Reader):
        def feed(self, data: bytes) -> Settled | None:
            if self.settled is None:
                super().feed(data)
                return None
            return self.settled

    monkeypatch.setattr(witnesses, "Reader", Late)
    assert "settled_at" in (reported("turn") or "")


# What is put out of order in the auditor, and what the target says then.
BROKEN_AUDITOR: list[tuple[str, Callable[..., Any], str]] = [
    ("check_files", lambda *_: None, "behind the back"),
    ("stable_root", lambda *_: archives.small().stable_root, "the root still holds"),
    ("plain", lambda text: text + "\x1b", "the auditor prints"),
    ("check_seal", lambda archive: archive.found.add("E-SEAL", "x", "x", "x"), "a good archive has findings"),
]


@pytest.mark.parametrize(("name", "wrong", "said"), BROKEN_AUDITOR, ids=[row[0] for row in BROKEN_AUDITOR])
def test_a_wrong_auditor_is_reported(
    name: str, wrong: Callable[..., Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An auditor that misses a change, finds what is not there, or prints what it must not."""
    monkeypatch.setattr(witnesses.AUDIT, name, wrong)
    assert said in (reported("archive") or "")


def test_an_exception_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An auditor that raises is a find by itself, however its own command would word it."""
    court: ModuleType = witnesses.AUDIT
    monkeypatch.setattr(court, "check_run", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        reported("archive")
    monkeypatch.undo()
    assert TARGETS["archive"].deviation(b"") is None  # and the archive was made good again
