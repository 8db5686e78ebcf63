"""The exact bytes of an accepted answer, and their hash.

A payload is the canonical JSON of the assistant's message. Whether a turn may have one is asked of
`History`, the one place that knows what enters it; this file knows no store.
"""

import hashlib
import json
from typing import cast

from ..history import History, Message, ToolCall
from ..reader import Settled
from ..strict_json import Json, canonical


def answer(turn: Settled) -> Message | None:
    """Give the message that a turn would add to a history, or None where it may add nothing."""
    history = History()
    return history.messages[-1] if history.accept("", turn) else None


def visible(turn: Settled) -> Message:
    """Give what a turn held when it was settled, whether it may enter a history or not."""
    message = Message(role="assistant", content=turn.preview)
    if turn.calls:
        message["tool_calls"] = [
            ToolCall(id=call.id, name=call.name or "", arguments=call.arguments) for call in turn.calls
        ]
    return message


def spell(message: Message) -> bytes:
    """Spell a message as canonical JSON: ASCII, sorted names, no white space, no line end."""
    return canonical(cast("Json", message)).encode("ascii")


def unspell(payload: bytes) -> Message:
    """Read a message back from its payload."""
    return cast("Message", json.loads(payload))


def sha256(payload: bytes) -> str:
    """Give the hash of a payload, in hexadecimal."""
    return hashlib.sha256(payload).hexdigest()
