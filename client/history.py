"""The history: what the next request would send.

Preview is not history. The question and the answer enter together, only for a COMPLETE turn whose
class the contract appends, and one turn enters once. Nothing here reads a stream.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypedDict

from .outcomes import COMPLETE
from .reader import Settled


class ToolCall(TypedDict):
    """A proposed call; its arguments are JSON text, and nothing here runs it."""

    id: str | None
    name: str
    arguments: str


class Message(TypedDict):
    """One entry of a conversation."""

    role: str
    content: str
    tool_calls: NotRequired[list[ToolCall]]


class History:
    """A conversation that holds finished turns only."""

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self._messages: list[Message] = [_copy(message) for message in messages]
        self._accepted: list[Settled] = []

    @property
    def messages(self) -> list[Message]:
        """A copy of the entries, oldest first."""
        return [_copy(message) for message in self._messages]

    def accept(self, question: str, turn: Settled) -> bool:
        """Append question and answer of a COMPLETE turn; say whether they entered.

        A turn that is not COMPLETE, whose class the contract does not append, or that has entered
        before, changes nothing.
        """
        is_new = not any(known is turn for known in self._accepted)
        if turn.outcome != COMPLETE or turn.history_rule != "append" or not is_new:
            return False
        self._accepted.append(turn)
        self._messages += [Message(role="user", content=question), _answer(turn)]
        return True


def _answer(turn: Settled) -> Message:
    answer = Message(role="assistant", content=turn.preview)
    if turn.reason_class == "tools":
        answer["tool_calls"] = [
            ToolCall(id=call.id, name=call.name or "", arguments=call.arguments) for call in turn.calls
        ]
    return answer


def _copy(message: Mapping[str, Any]) -> Message:
    copied = Message(role=message["role"], content=message["content"])
    if "tool_calls" in message:
        copied["tool_calls"] = [
            ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"]) for call in message["tool_calls"]
        ]
    return copied
