"""How a watched answer looks: one moment of it as the rows of a frame, or as one line. Pure; it writes nothing.

Each state has a word, a mark and an edge of its own, so that no two look alike without colour: what is
interrupted has a broken edge and says that it is no answer, at every place where an accepted one says that it is.
"""

from dataclasses import dataclass

from .attempts import Committed, Result
from .contract import Contract
from .display import Screen, ScreenState
from .outcomes import COMPLETE
from .reader import Settled
from .terminal import harmless, rows, tail

_RED, _GREEN, _YELLOW, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"

# How long a text is on the line of a plain moment, in cells.
_TAIL_CELLS = 40


@dataclass(frozen=True, kw_only=True)
class Look:
    """What tells a state from the others: mark, the edge beside its text, colour."""

    mark: str
    edge: str
    colour: str


LOOKS = {
    ScreenState.GENERATING: Look(mark="●", edge="│", colour=_YELLOW),
    ScreenState.INTERRUPTED: Look(mark="✗", edge="┊", colour=_RED),
    ScreenState.WITHDRAWN: Look(mark="⊘", edge=" ", colour=_YELLOW),
    ScreenState.ACCEPTED: Look(mark="✓", edge="┃", colour=_GREEN),
}


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What there is to see of an attempt between two reads."""

    screen: Screen
    reads: int
    consumed_bytes: int
    events: int
    turn: str


@dataclass(frozen=True, kw_only=True)
class Size:
    """What a terminal holds, in cells."""

    width: int
    height: int


def frame(moment: Moment, size: Size, *, colour: bool) -> list[str]:
    """Give the rows of a live frame, none wider than the terminal: the end of the text, the state, the counters."""
    look, width = LOOKS[moment.screen.state], max(size.width - 4, 8)
    text = moment.screen.text.characters
    shown = rows(text[-width * size.height :], width)[-max(size.height - 3, 1) :]
    cursor = "▌" if moment.screen.state is ScreenState.GENERATING else ""
    edged = [f"{look.edge} {row}" for row in [*shown[:-1], shown[-1] + cursor]]
    said = rows(f"{look.mark} {moment.screen.state}  {counters(moment)}", size.width - 1)[0].rstrip()
    return [*edged, painted(said, look, colour=colour)]


def line(moment: Moment) -> str:
    """Give a moment as one plain line."""
    look, state = LOOKS[moment.screen.state], moment.screen.state
    text = tail(moment.screen.text.characters, _TAIL_CELLS)
    return f"{look.mark} {state:<11}  {counters(moment)}  {look.edge} {text}".rstrip()


def counters(moment: Moment) -> str:
    """Say what was read so far, and how many code points are held back."""
    held = moment.screen.held_code_points
    return (
        f"reads {moment.reads:>4}  bytes {moment.consumed_bytes:>6}  events {moment.events:>3}  "
        f"turn {moment.turn:<8}" + (f"  held {held:>3}" if held else "")
    )


def whole(screen: Screen, width: int) -> list[str]:
    """Give all of the text at the end, beside the edge of its state."""
    edge = LOOKS[screen.state].edge
    return [f"{edge} {row}".rstrip() for row in rows(screen.text.characters, max(width - 4, 8))]


def verdict(screen: Screen, result: Result, before: int, after: int) -> str:
    """Say in words what the text on the screen is worth now; `before` and `after` count the history's entries."""
    mark = LOOKS[screen.state].mark
    if isinstance(result, Committed):
        return f"{mark} ACCEPTED: the answer is in the history, {before} → {after} entries"
    return f"{mark} {screen.state.upper()}: this is no answer; the history stays at {after} entries"


def painted(text: str, look: Look, *, colour: bool) -> str:
    """Colour a text as its state, where colour is wanted."""
    return f"{look.colour}{text}{_RESET}" if colour else text


def reason(result: Result, turn: Settled | None, transport_end: str) -> str:
    """Say why it ended: the outcome, the turn's own words, and what the provider and the transport said."""
    if isinstance(result, Committed):
        outcome, why = COMPLETE, turn.why if turn else ""
    else:
        outcome, why = result.outcome, result.why
    said = f"finish reason {turn.finish_reason!r}" if turn and turn.finish_reason is not None else "no finish reason"
    return harmless(f"{outcome}: {why} ({said}, transport {transport_end})")


def rule(contract: Contract, dialect: str, reason_class: str | None) -> str:
    """Say what the contract asks of this dialect, and what it does with the class of the ending."""
    rules, switches = contract.dialects[dialect], contract.switches
    good = [reason for reason, named in rules.reasons.items() if named in rules.results]
    if rules.terminal == "closed-framing":
        then = "closed HTTP framing" + (" or the end" if switches["close_delimited"] == "complete" else "")
    else:
        then = rules.terminal + (" or a clean end" if switches["finish_without_terminal"] == "complete" else "")
    words = f"{contract.name} asks {dialect} for a finish reason ({', '.join(good)}), then {then}"
    return words if reason_class is None else f"{words}; class {reason_class}: {contract.history[reason_class]}"
