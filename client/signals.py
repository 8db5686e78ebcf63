"""What a dialect makes of an event: the small set of signals that every provider is reduced to.

A signal is about the turn, in provider-free words. Which signals a turn may hold, and in which
order, is the turn's table and the contract; this file only names them.
"""

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of signal."""

    START = "start"
    OPEN = "open"
    CLOSE = "close"
    TEXT = "text"
    REFUSAL = "refusal"
    REASONING = "reasoning"
    TOOL = "tool"
    FINISH = "finish"
    USAGE = "usage"
    META = "meta"
    UNKNOWN = "unknown"
    ERROR = "error"
    DONE = "done"


# The value of a close whose block the provider itself calls incomplete.
INCOMPLETE = "incomplete"

# A call of its own for a provider that sends calls whole and without a number.
NEW_CALL = -2


class Signal(NamedTuple):
    """One signal of one event.

    `value` is the text of text, refusal and reasoning, the fragment of a tool's arguments, the kind
    of an opened block, the raw reason of a finish, the words of an error.
    """

    kind: Kind
    value: str = ""
    candidate: int = 0
    block: int | None = None
    call: int | None = None  # of a tool; None for a list of calls that is there and empty
    id: str | None = None
    name: str | None = None
    free: bool = False  # the call's input is free text, not JSON
    opens: str | None = None  # a block never opened is opened as this kind
    only_in: str | None = None  # no effect in a block of another kind


def text(value: str | None, *, candidate: int = 0, block: int | None = None, opens: str | None = None) -> list[Signal]:
    """Give the signal of a text, or none where it is empty."""
    return _content(Kind.TEXT, value, candidate, block, opens)


def refusal(value: str | None, *, candidate: int = 0, block: int | None = None) -> list[Signal]:
    """Give the signal of a refusal, or none where it is empty."""
    return _content(Kind.REFUSAL, value, candidate, block, None)


def reasoning(
    value: str | None, *, candidate: int = 0, block: int | None = None, opens: str | None = None
) -> list[Signal]:
    """Give the signal of a reasoning text, or none where it is empty."""
    return _content(Kind.REASONING, value, candidate, block, opens)


def _content(kind: Kind, value: str | None, candidate: int, block: int | None, opens: str | None) -> list[Signal]:
    return [Signal(kind=kind, value=value, candidate=candidate, block=block, opens=opens)] if value else []


def finish(reason: str, candidate: int = 0) -> Signal:
    """Give the signal of a raw terminal reason."""
    return Signal(kind=Kind.FINISH, value=reason, candidate=candidate)


def plain(kind: Kind) -> list[Signal]:
    """Give the signal of a kind that carries nothing."""
    return [Signal(kind=kind)]


def error(value: object) -> list[Signal]:
    """Give the signal of a provider's error, with its own words."""
    return [Signal(kind=Kind.ERROR, value=str(value))]
