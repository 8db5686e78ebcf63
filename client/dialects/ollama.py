"""Ollama's native chat: one JSON object a line, the last of which says `"done": true`.

    https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
    line = { message: { role, content, thinking?, tool_calls? }, done: false } | { done: true, done_reason, ... }

A server that stops early may close a clean stream without that line. Calls arrive whole and have no
number. Errors after the first line are a line `{"error": ...}`.
"""

from ..signals import NEW_CALL, Kind, Signal, error, finish, plain, reasoning, text
from ..strict_json import canonical
from . import Dialect, shape
from .shape import Object


def read(_: str, value: Object) -> list[Signal]:
    """Read one line."""
    if value.get("error") is not None:
        return error(value["error"])
    message = shape.maybe_object(value, "message")
    if message is None and value.get("done") is None:
        return plain(Kind.UNKNOWN)
    done = value.get("done")
    if not isinstance(done, bool):
        raise shape.wrong("done is no boolean")
    return _message(message or {}) + (_done(value) if done else [])


def _message(message: Object) -> list[Signal]:
    if shape.maybe_text(message, "role") not in (None, "assistant"):
        raise shape.wrong("a message of another role than assistant")
    found = reasoning(shape.maybe_text(message, "thinking")) + text(shape.maybe_text(message, "content"))
    return found + [_call(call) for call in shape.maybe_objects(message, "tool_calls") or []]


def _call(call: Object) -> Signal:
    function = shape.object_at(call, "function")
    arguments = shape.maybe_object(function, "arguments") or {}
    return Signal(kind=Kind.TOOL, call=NEW_CALL, name=shape.text(function, "name"), value=canonical(arguments))


def _done(value: Object) -> list[Signal]:
    used = plain(Kind.USAGE) if shape.maybe_integer(value, "eval_count") is not None else []
    return [*used, finish(shape.maybe_text(value, "done_reason") or ""), *plain(Kind.DONE)]


DIALECT = Dialect(
    read=read,
    path="/chat",
    text_at=("message", "content"),
    unread=frozenset({("created_at",)}),
)
