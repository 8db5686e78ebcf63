"""What a dialect makes of an event: the small set of signals that every provider is reduced to.

A signal is about the turn, in one provider-free word. Which signals a turn may hold, and in
which order, is the turn's table and the contract; this file only names them.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kinds of signal."""

    TEXT = "text"
    META = "meta"
    FINISH = "finish"
    DONE = "done"
    ERROR = "error"
    TOOL = "tool"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Signal:
    """One signal; the value is the text of TEXT, the raw reason of FINISH, the words of ERROR."""

    kind: Kind
    value: str = ""
