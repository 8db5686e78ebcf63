"""`present.py`: the words and the table for a person, from what the auditor said and nothing else."""

import copy
import io
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import present
from harness.present import cells_wide, fit, plain, rows, summary, table, visible

TRIAL: dict[str, Any] = {
    "trial": "frozen/seven-byte@frozen-text/1",
    "suite": "frozen",
    "case": "seven-byte",
    "contract": "frozen-text/1",
    "dialect": "openai-chat",
    "title": "GOOD",
    "verdict": "AGREE",
    "status": 200,
    "content_type": "text/event-stream",
    "read_cap": 7,
    "http_chunk_offsets": [],
    "cancel_after_utf16": None,
    "read_timeout_ms": 1000,
    "stall_ms": None,
    "body_bytes": 253,
    "body_sha256": "f457",
    "derived": {"outcome": "COMPLETE", "preview": "你好", "history_size": 4, "committed": True, "reads": 37},
    "claim": {"outcome": "COMPLETE", "preview": "你好", "history_size": 4, "committed": True, "reads": 37},
}
FOUND: dict[str, Any] = {
    "trials": [TRIAL],
    "findings": [],
    "notes": [],
    "coverage": {"planned": 1, "of": 22, "partial": True},
    "totals": {
        "trials": 1,
        "complete": 1,
        "refused": 0,
        "loopback_requests": 1,
        "provider_requests": 0,
        "verdicts": {"AGREE": 1},
    },
}


def found(**changes: Any) -> dict[str, Any]:
    """Give an audit of one trial, changed."""
    whole = copy.deepcopy(FOUND)
    whole["trials"][0] |= changes
    return whole


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(audit: dict[str, Any], out: io.StringIO | None = None) -> list[str]:
    """Print a table; give its lines."""
    out = out or io.StringIO()
    table(audit, out)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("abc", 3),
        ("你好，", 6),
        ("Java 🌱", 7),
        ("ｆｕｌｌ", 8),
        ("ﾊﾝ", 2),
        ("e\u0301", 1),
        ("한글", 4),
        ("→…“”", 4),
    ],
)
def test_cells(text: str, cells: int) -> None:
    """CJK, full width and emoji take two cells; a combining mark none."""
    assert cells_wide(text) == cells


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("one too many", 11, "one too ma…"),
        ("你好你好", 8, "你好你好"),
        ("你好你好", 7, "你好你…"),
        ("你好你好", 6, "你好…"),
        ("a\nb\x1b[2Jc", 24, "a\\nb\\x1b[2Jc"),
        ("\ud800", 24, "\\ud800"),
        ("x" * 100_000, 5, "xxxx…"),
        ("你" * 50_000, 5, "你你…"),
    ],
)
def test_fit(text: str, width: int, shown: str) -> None:
    """A text is cut at its cells, and the cut is shown."""
    assert fit(text, width) == shown


@settings(deadline=None)
@given(st.text(), st.integers(2, 30))
def test_fit_always_fits(text: str, width: int) -> None:
    """Whatever a preview holds, it takes no more cells than it may, on one line."""
    shown = fit(text, width)
    assert cells_wide(shown) <= width
    assert shown.isprintable()


@pytest.mark.parametrize(
    "code", [0, 7, 8, 9, 10, 13, 27, 127, 0x85, 0x9B, 0x200B, 0x202E, 0x2028, 0x2066, 0xFEFF, 0xD800]
)
def test_visible(code: int) -> None:
    """What moves the cursor, ends the line or turns the writing round is escaped."""
    shown = visible(f"a{chr(code)}b")
    assert shown.startswith("a\\")
    assert shown.isascii()
    assert unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Cs")


def test_visible_leaves_what_can_be_seen() -> None:
    """Letters of any script and emoji are shown as they are."""
    assert visible("Grüße, 你好 🌱 \\n") == "Grüße, 你好 🌱 \\n"


def test_table() -> None:
    """A row has the case, the claim, the history before and after, and the verdict."""
    head, row = printed(FOUND)
    assert head.split() == ["case", "outcome", "HTTP", "cap", "reads", "preview", "history", "verdict"]
    assert row == "seven-byte  COMPLETE   200    7     37  你好     2 → 4    AGREE"


def test_columns_stand_under_each_other() -> None:
    """A column begins at the same cell in every line, with wide characters before it too."""
    audit = copy.deepcopy(FOUND)
    other = copy.deepcopy(TRIAL)
    other["claim"]["preview"] = "plain text that is too long for its column"
    audit["trials"].append(other)
    words = ("verdict", "AGREE", "AGREE")
    starts = {cells_wide(text[: text.index(word)]) for text, word in zip(printed(audit), words, strict=True)}
    assert len(starts) == 1


@pytest.mark.parametrize(
    ("claim", "shown"),
    [
        ({"history_size": 2, "committed": False}, " 2 "),
        ({"history_size": 4, "committed": True}, " 2 → 4 "),
        ({"history_size": 0, "committed": False}, " 2 → 0 "),
        ({"history_size": 3, "committed": False}, " 2 → 3 "),
        ({"history_size": None, "committed": None}, " - "),
    ],
)
def test_history(claim: dict[str, Any], shown: str) -> None:
    """The history is shown before and after wherever it changed."""
    assert shown in printed(found(claim=TRIAL["claim"] | claim))[1]


def test_no_claim() -> None:
    """A trial without a claim has a row, and its verdict in plain words."""
    row = printed(found(claim=None, verdict="NO_CLAIM"))[1]
    assert row.endswith("NO_CLAIM: no claim")
    assert row.count(" - ") >= 2


@pytest.mark.parametrize("field", ["outcome", "preview"])
def test_a_claim_cannot_move_the_cursor(field: str) -> None:
    """A subject's words reach the terminal escaped."""
    row = printed(found(claim=TRIAL["claim"] | {field: "\x1b[2J\n\u202e"}))
    assert len(row) == 2
    assert row[1].isprintable()
    assert "\\x1b[2J\\n\\u202e" in row[1]


def test_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour goes to a terminal alone, and not where NO_COLOR asks for none."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert printed(FOUND, Terminal())[1].startswith("\x1b[32m")
    assert printed(found(verdict="FALSE_COMMIT"), Terminal())[1].startswith("\x1b[31m")
    assert printed(FOUND, Terminal())[1].endswith("\x1b[0m")
    assert "\x1b" not in "".join(printed(FOUND))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(printed(FOUND, Terminal()))


def test_plain_words() -> None:
    """Every verdict of the format has plain words, and an unknown one is shown as it is."""
    verdicts = ["AGREE", "FALSE_COMMIT", "FALSE_WITHHOLD", "ALTERED", "NON_STRICT", "OVER_STRICT", "MISREPORTED"]
    verdicts += ["NO_CLAIM", "UNSUPPORTED", "NOT_DELIVERED", "LABEL_CONFLICT"]
    assert set(present._PLAIN) == set(verdicts)
    assert plain("FALSE_COMMIT") == "kept a broken answer"
    assert plain("NEW") == "NEW"


def test_summary() -> None:
    """The summary counts trials and verdicts, and says what part of the suite was run."""
    first, second = summary(FOUND)
    assert "1 trial (PARTIAL 1 of 22)" in first
    assert "1 loopback request" in first
    assert "0 provider requests" in first
    assert second == "verdicts: 1 AGREE"


def test_summary_of_findings() -> None:
    """Findings and notes are lines of their own, escaped."""
    finding = {"code": "SHA256", "place": "data/x", "text": "bad \x1b[31m\nvalue", "witness": ""}
    lines = list(summary(FOUND | {"findings": [finding], "notes": [finding | {"code": "NOTE"}]}))
    assert lines[2:] == ["SHA256  data/x  bad \\x1b[31m\\nvalue", "NOTE  data/x  bad \\x1b[31m\\nvalue"]


def test_rows() -> None:
    """A row for machines has the keys of the original experiment; of conditions only those that there are."""
    (row,) = rows(FOUND)
    assert (row["id"], row["bytes"], row["reads"], row["committed"]) == ("seven-byte", 253, 37, True)
    assert not row.keys() & {"cancel_after_utf16_units", "stall_ms", "read_timeout_ms"}
    (row,) = rows(found(cancel_after_utf16=3))
    assert row["cancel_after_utf16_units"] == 3
    (row,) = rows(found(stall_ms=400, read_timeout_ms=100))
    assert (row["stall_ms"], row["read_timeout_ms"]) == (400, 100)
    (row,) = rows(found(claim=None))
    assert (row["outcome"], row["preview"], row["verdict"]) == (None, None, "AGREE")


def test_complain(capsys: pytest.CaptureFixture[str]) -> None:
    """A complaint is one line on stderr, whatever it quotes."""
    present.complain("x\ny\x1b[0m")
    assert capsys.readouterr().err == "endmark: x\\ny\\x1b[0m\n"


def a_session(**changes: Any) -> dict[str, Any]:
    """Give a trial of two attempts, as the auditor says it; changed in what is claimed."""
    derived = {
        "stored": ["new"],
        "writes": 1,
        "dispatched": 0,
        "display": "new",
        "state": "accepted",
        "outcome": "COMPLETE",
        "attempts": {
            "b": {"outcome": "COMPLETE", "decision": "accepted"},
            "a": {"outcome": "INCOMPLETE_STREAM", "decision": "refused"},
        },
    }
    return found(status=None, body_bytes=None, body_sha256=None, derived=derived, claim=derived | changes)


def test_a_session_in_words() -> None:
    """The row of a session says how each attempt ended, what is shown, and how many answers are kept."""
    (_, line) = printed(a_session())
    assert line.split("  ")[:2] == ["seven-byte", "a refused (INCOMPLETE_STREAM), b accepted"]
    assert line.split()[-7:] == ["-", "7", "-", "new", "1", "kept", "AGREE"]


def test_a_session_that_keeps_less_than_it_wrote() -> None:
    """Where an answer was taken out, or written more than once, both numbers are said."""
    assert "0 kept of 2" in printed(a_session(stored=[], writes=2))[1]


def test_a_session_without_a_claim() -> None:
    """A session without a claim has dashes."""
    whole = a_session()
    whole["trials"][0] |= {"claim": None, "verdict": "NO_CLAIM"}
    assert printed(whole)[1].split() == ["seven-byte", "-", "-", "7", "-", "-", "NO_CLAIM:", "no", "claim"]
    assert rows(whole)[0]["stored"] is None


def test_the_row_of_a_session() -> None:
    """A row of --json has what was claimed of a session, and nothing of a single body."""
    (row,) = rows(a_session())
    assert row.keys() == {
        *("id", "body", "read_cap", "stored", "writes", "dispatched", "display", "state", "attempts", "verdict"),
    }
    assert (row["stored"], row["attempts"]["a"]["decision"]) == (["new"], "refused")
