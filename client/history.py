"""The history: what the next request would send.

Preview is not history. The question and the answer enter together, only for a COMPLETE turn,
and one turn enters once. Nothing here reads a stream.
"""

from collections.abc import Iterable
from typing import TypedDict

from .reader import Settled


class Message(TypedDict):
    """One entry of a conversation."""

    role: str
    content: str


class History:
    """A conversation that holds finished turns only."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = [Message(role=m["role"], content=m["content"]) for m in messages]
        self._accepted: list[Settled] = []

    @property
    def messages(self) -> list[Message]:
        """A copy of the entries, oldest first."""
        return [Message(role=m["role"], content=m["content"]) for m in self._messages]

    def accept(self, question: str, turn: Settled) -> bool:
        """Append question and answer of a COMPLETE turn; say whether they entered.

        A turn that is not COMPLETE, or that has entered before, changes nothing.
        """
        answer = turn.answer
        if answer is None or any(known is turn for known in self._accepted):
            return False
        self._accepted.append(turn)
        self._messages += [
            Message(role="user", content=question),
            Message(role="assistant", content=answer),
        ]
        return True
