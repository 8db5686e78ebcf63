"""How a watched answer looks: told apart without colour, and never wider than the terminal."""

import re
from itertools import combinations

import pytest

from client import Settled, load
from client.attempts import Coordinator, MemoryStore, Refused, Superseded
from client.display import Screen, ScreenState, Shown
from client.frames import LOOKS, Moment, Size, frame, line, reason, rule, verdict, whole
from client.outcomes import PROTOCOL, Outcome
from client.terminal import cells

from .test_display import committed

SIZE = Size(width=80, height=24)


def a_moment(state: ScreenState = ScreenState.GENERATING, text: str = "One. Two.", held: int = 0) -> Moment:
    """Give a moment of a state."""
    screen = Screen(text=Shown(text), state=state, held_code_points=held)
    return Moment(screen=screen, reads=12, consumed_bytes=84, events=1, turn="open")


@pytest.mark.parametrize(("one", "other"), list(combinations(ScreenState, 2)))
def test_no_two_states_look_alike_without_colour(one: ScreenState, other: ScreenState) -> None:
    """The same text and counters in two states differ in every row of a frame, and in a plain line."""
    first, second = (frame(a_moment(state), SIZE, colour=False) for state in (one, other))
    assert not set(first) & set(second)
    assert line(a_moment(one)) != line(a_moment(other))
    assert not set(whole(a_moment(one).screen, 80)) & set(whole(a_moment(other).screen, 80))
    assert LOOKS[one].mark != LOOKS[other].mark


@pytest.mark.parametrize("state", list(ScreenState))
def test_a_state_is_named(state: ScreenState) -> None:
    """Each frame and each line has the state's word."""
    assert state.value in frame(a_moment(state), SIZE, colour=False)[-1]
    assert state.value in line(a_moment(state))


def test_colour_only_adds() -> None:
    """A frame with colour says the same as one without."""
    painted = frame(a_moment(ScreenState.INTERRUPTED), SIZE, colour=True)
    assert any("\x1b[31m" in row for row in painted)
    plain = [re.sub(r"\x1b\[\d+m", "", row) for row in painted]
    assert plain == frame(a_moment(ScreenState.INTERRUPTED), SIZE, colour=False)


@pytest.mark.parametrize("width", [10, 20, 41, 80, 300])
def test_a_frame_fits_the_terminal(width: int) -> None:
    """No row is as wide as the terminal, and no frame as high, whatever the text is; its end is what is shown."""
    text = "你好，🌱 \x1b[2J" * 500 + "the end"
    found = frame(a_moment(text=text, held=10_000_000), Size(width=width, height=10), colour=False)
    assert all(cells(row) < width or width < 13 for row in found)
    assert len(found) < 10
    assert "".join(row[2:] for row in found[:-1]).replace("▌", "").endswith("end")


def test_held_text_is_counted() -> None:
    """How much is held back stands beside the counters, where anything is."""
    assert line(a_moment(held=9)).split("  held   9")[0] == line(a_moment()).split("  │")[0]


def test_a_line_has_the_end_of_the_text() -> None:
    """A plain line holds the last 40 cells of a longer text."""
    assert line(a_moment(text="x" * 100 + "end")).endswith("│ …" + "x" * 36 + "end")


def test_the_verdict_says_what_the_text_is_worth() -> None:
    """Only an accepted answer is called one; everything else says that it is none, whatever it looks like."""
    accepted, cut = a_moment(ScreenState.ACCEPTED).screen, a_moment(ScreenState.INTERRUPTED).screen
    refused = Refused(attempt_id="a", outcome=PROTOCOL, why="why", evidence=None)
    assert verdict(accepted, committed(), 2, 4) == "✓ ACCEPTED: the answer is in the history, 2 → 4 entries"
    assert verdict(cut, refused, 2, 2) == "✗ INTERRUPTED: this is no answer; the history stays at 2 entries"
    gone = a_moment(ScreenState.WITHDRAWN).screen
    assert verdict(gone, Superseded(attempt_id="a", why="late"), 2, 2).startswith("⊘ WITHDRAWN: this is no answer")


def test_the_reason_is_the_outcomes_own() -> None:
    """Outcome, why, the raw finish reason and the transport are said, and what a provider wrote is harmless."""
    turn = Settled(outcome=Outcome("PROTOCOL"), why="", preview="", finish_reason="\x1b[2J")
    refused = Refused(attempt_id="a", outcome=PROTOCOL, why="wrong\x07 order", evidence=None)
    said = "PROTOCOL: wrong\\x07 order (finish reason '\\x1b[2J', transport left)"
    assert reason(refused, turn, "left") == said
    assert reason(refused, None, "reset") == "PROTOCOL: wrong\\x07 order (no finish reason, transport reset)"
    attempt = Coordinator(MemoryStore(), load("strict/1"), "openai-chat").begin("t", "q")
    assert reason(attempt.commit(), attempt.settled, "left").startswith("INCOMPLETE_STREAM: ")


@pytest.mark.parametrize(
    ("contract", "dialect", "words"),
    [
        ("frozen-text/1", "openai-chat", "finish reason (stop), then [DONE]"),
        ("compat/1", "openai-chat", "finish reason (stop, tool_calls, function_call), then [DONE] or a clean end"),
        ("strict/1", "gemini", "finish reason (STOP), then closed HTTP framing"),
        ("compat/1", "gemini", "finish reason (STOP), then closed HTTP framing or the end"),
    ],
)
def test_the_rule_is_the_contracts(contract: str, dialect: str, words: str) -> None:
    """The rule says which reasons and which terminal event the contract asks for, and what a class leads to."""
    assert rule(load(contract), dialect, None) == f"{contract} asks {dialect} for a {words}"
    assert rule(load(contract), dialect, "truncated").endswith("; class truncated: withhold")
