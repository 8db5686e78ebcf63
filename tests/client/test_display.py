"""What a screen shows and says, whatever comes and in whichever pieces."""

import inspect
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from client import History, load
from client.attempts import Committed, Coordinator, MemoryStore, Refused, Result, Superseded
from client.display import Display, DisplayPolicy, Screen, ScreenState, Shown

from .attempts.bodies import HEAD, whole

HOME = Path(__file__).parents[2]
ANSWER = "One. Two!\n三。Four 3.14 5"
SEGMENTS = ["One. ", "Two!\n", "三。", "Four 3.14 5"]


def committed(text: str = ANSWER) -> Committed:
    """Give what the coordinator says of an accepted answer."""
    attempt = Coordinator(MemoryStore(), load("strict/1"), "openai-chat").begin("task", "question")
    attempt.head(*HEAD)
    attempt.feed(whole(text))
    result = attempt.commit()
    assert isinstance(result, Committed)
    return result


def refused() -> Refused:
    """Give what the coordinator says of an answer that was cut."""
    attempt = Coordinator(MemoryStore(), load("strict/1"), "openai-chat").begin("task", "question")
    result = attempt.commit()
    assert isinstance(result, Refused)
    return result


SUPERSEDED = Superseded(attempt_id="a", why="replaced")


def displays(*, approve: bool = True) -> dict[str, Display]:
    """Give a display of each policy."""
    return {
        "immediate": Display(),
        "segments": Display(DisplayPolicy.SEGMENTS, lambda _: approve),
        "full": Display(DisplayPolicy.FULL),
    }


def seen(screen: Screen) -> tuple[str, str, int]:
    """Give text, state and what is held back of a screen."""
    return screen.text.characters, screen.state.value, screen.held_code_points


def fed(display: Display, text: str, size: int) -> list[str]:
    """Show a text in pieces of a size; give what was seen after each."""
    found = []
    for start in range(0, len(text), size):
        display.show(text[start : start + size])
        found.append(display.screen.text.characters)
    return found


def test_immediate_shows_each_piece() -> None:
    """Immediate: every piece is seen as it comes, and is generating."""
    display = Display()
    assert seen(display.screen) == ("", "generating", 0)
    display.show("On")
    display.show("e")
    assert seen(display.screen) == ("One", "generating", 0)


def test_full_shows_nothing_before_the_answer() -> None:
    """Full: nothing is seen, and how much is held back is said, until the answer is accepted."""
    display = Display(DisplayPolicy.FULL)
    assert set(fed(display, ANSWER, 3)) == {""}
    assert seen(display.screen) == ("", "generating", len(ANSWER))
    display.settle(committed())
    assert seen(display.screen) == (ANSWER, "accepted", 0)


@pytest.mark.parametrize("size", range(1, len(ANSWER) + 1))
def test_segments_do_not_depend_on_the_cuts(size: int) -> None:
    """Segments: the same segments are asked for, in order and whole, however the text was cut."""
    asked: list[str] = []

    def approve(segment: str) -> bool:
        asked.append(segment)
        return True

    display = Display(DisplayPolicy.SEGMENTS, approve)
    steps = fed(display, ANSWER, size)
    assert all(after.startswith(before) for before, after in pairwise(steps))
    assert asked == SEGMENTS[:-1]
    assert seen(display.screen) == ("".join(SEGMENTS[:-1]), "generating", len(SEGMENTS[-1]))


def test_a_refused_segment_holds_back_all_after_it() -> None:
    """Segments: a refused one is not seen, nor is what follows, also where the answer is accepted."""
    display = Display(DisplayPolicy.SEGMENTS, lambda segment: "Two" not in segment)
    fed(display, ANSWER, 2)
    assert seen(display.screen) == ("One. ", "generating", len(ANSWER) - 5)
    display.settle(committed())
    assert seen(display.screen) == ("One. ", "accepted", len(ANSWER) - 5)


@pytest.mark.parametrize(("refused_word", "seen_text"), [("nothing", ANSWER), ("Four", "".join(SEGMENTS[:-1]))])
def test_the_last_segment_is_asked_for_as_well(refused_word: str, seen_text: str) -> None:
    """Segments: what follows the last boundary is seen only if it is approved, when the answer is accepted."""
    display = Display(DisplayPolicy.SEGMENTS, lambda segment: refused_word not in segment)
    fed(display, ANSWER, 4)
    display.settle(committed())
    assert display.screen.text.characters == seen_text


@pytest.mark.parametrize("policy", displays())
def test_a_refused_attempt_is_interrupted(policy: str) -> None:
    """What was seen of an attempt that came to nothing stays, as interrupted; what was held back stays held."""
    display = displays()[policy]
    display.show("One. Tw")
    before = display.screen
    display.settle(refused())
    assert display.screen.state is ScreenState.INTERRUPTED
    assert (display.screen.text, display.screen.held_code_points) == (before.text, before.held_code_points)


@pytest.mark.parametrize("policy", displays())
def test_a_superseded_attempt_is_withdrawn(policy: str) -> None:
    """Nothing is seen of an attempt whose place another one has."""
    display = displays()[policy]
    display.show("One. Tw")
    display.settle(SUPERSEDED)
    assert seen(display.screen)[:2] == ("", "withdrawn")


@pytest.mark.parametrize("policy", displays())
@pytest.mark.parametrize("ending", ["refused", "withdrawn", "committed"])
def test_late_text_changes_nothing(policy: str, ending: str) -> None:
    """Text that comes after the end is not seen, whatever the end was."""
    display = displays()[policy]
    display.show("One. ")
    if ending == "withdrawn":
        display.withdraw()
    else:
        display.settle(refused() if ending == "refused" else committed())
    before = display.screen
    display.show("late. ")
    assert display.screen == before


def test_the_accepted_answer_is_what_is_shown() -> None:
    """An accepted screen shows the answer that was committed, not what came before it."""
    display = Display()
    display.show("something else")
    display.settle(committed())
    assert seen(display.screen) == (ANSWER, "accepted", 0)


@pytest.mark.parametrize(
    ("calls", "state"),
    [
        (["interrupt", "superseded"], "interrupted"),
        (["interrupt", "refused"], "interrupted"),
        (["interrupt", "committed"], "accepted"),
        (["interrupt", "withdraw"], "withdrawn"),
        (["committed", "interrupt"], "accepted"),
        (["committed", "refused"], "accepted"),
        (["committed", "superseded"], "accepted"),
        (["committed", "withdraw"], "withdrawn"),
        (["withdraw", "committed"], "withdrawn"),
        (["withdraw", "interrupt"], "withdrawn"),
        (["superseded", "committed"], "withdrawn"),
    ],
)
def test_which_end_counts(calls: list[str], state: str) -> None:
    """A commit counts more than an interruption, withdrawing more than both, and nothing else is undone."""
    display = Display()
    display.show("One")
    ends: dict[str, Result] = {"refused": refused(), "superseded": SUPERSEDED, "committed": committed("One")}
    for call in calls:
        if call in ends:
            display.settle(ends[call])
        else:
            getattr(display, call)()
    assert display.screen.state.value == state


def test_only_an_answer_is_copied_bare() -> None:
    """Copying gives the bare text of an accepted answer; of everything else it says that it is none."""
    display = Display()
    display.show("One")
    assert display.screen.clipboard == "[generating: not an answer]\nOne"
    display.settle(refused())
    assert display.screen.clipboard == "[interrupted: not an answer]\nOne"
    display = Display()
    display.settle(committed())
    assert display.screen.clipboard == ANSWER


@pytest.mark.parametrize(
    ("policy", "approve"), [(DisplayPolicy.SEGMENTS, None), (DisplayPolicy.FULL, bool), (DisplayPolicy.IMMEDIATE, bool)]
)
def test_approve_belongs_to_segments(policy: DisplayPolicy, approve: type[bool] | None) -> None:
    """A policy that asks nobody takes no `approve`, and the one that asks needs it."""
    with pytest.raises(ValueError, match="`approve` belongs to segments"):
        Display(policy, approve)


def test_shown_text_does_not_say_itself() -> None:
    """Shown text prints as what it is, so that neither a log nor a command holds it by mistake."""
    assert f"{Shown('rm -rf /')} {Shown('rm')!r}" == "<shown: 8 code points> <shown: 2 code points>"


def test_shown_text_cannot_be_sent() -> None:
    """A message made of shown text cannot be spelt as a request."""
    history = History([{"role": "assistant", "content": Shown("half")}])
    with pytest.raises(TypeError, match="Shown is not JSON serializable"):
        json.dumps(history.messages)


def test_nothing_is_called_by_the_display() -> None:
    """The display is given one function, which judges a segment; updates call nobody and give nothing back."""
    assert list(inspect.signature(Display).parameters) == ["policy", "approve"]
    for method in (Display.show, Display.settle, Display.interrupt, Display.withdraw):
        assert inspect.signature(method).return_annotation is None


def test_many_small_pieces_take_linear_time() -> None:
    """A segment without an end in a hundred thousand pieces is put together once."""
    display = Display(DisplayPolicy.SEGMENTS, lambda _: True)
    for _ in range(100_000):
        display.show("x")
    display.show("。")
    assert len(display.screen.text.characters) == 100_001


WRONG = """
from client.attempts import Result
from client.display import Display, Screen, Shown
from client.history import Message
from client.attempts import Committed

def screen_is_no_answer(screen: Screen, display: Display, result: Committed) -> None:
    Message(role="assistant", content=result.message["content"])
    Message(role="assistant", content=screen.text)  # wrong: typeddict-item
    text: str = screen.text  # wrong: assignment
    display.settle(screen)  # wrong: arg-type
    display.settle(screen.text)  # wrong: arg-type
    "a" + screen.text  # wrong: operator
    display.show(screen.text)  # wrong: arg-type
    screen.text.characters.upper()
"""


def test_types_keep_screens_and_answers_apart(tmp_path: Path) -> None:
    """Mypy refuses shown text wherever an answer, a text or a result is asked for, and nothing else."""
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(program)]
    command += ["--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    expected = {
        (number, line.rpartition("wrong: ")[2])
        for number, line in enumerate(WRONG.splitlines(), 1)
        if "# wrong: " in line
    }
    found = {
        (int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]"))
        for line in done.stdout.splitlines()
        if ": error: " in line
    }
    assert found == expected, done.stdout + done.stderr
