"""Anthropic Messages: named events around indexed content blocks, ended by `message_stop`.

    https://platform.claude.com/docs/en/build-with-claude/streaming
    message_start, (content_block_start, content_block_delta*, content_block_stop)*, message_delta, message_stop

A block that ended is not a message that ended: the stop reason comes in `message_delta`, and the
end is `message_stop`. Pings may stand anywhere; new event types are to be tolerated.
"""

from ..signals import Kind, Signal, error, finish, plain, reasoning, text
from . import Dialect, shape
from .named import Readers, read_named
from .shape import Object

_TOOL = "tool_use"


def read(event: str, value: Object) -> list[Signal]:
    """Read one event by its type; the event field has to say the same."""
    _, found = read_named(event, value, _READERS)
    return plain(Kind.UNKNOWN) if found is None else found


def _message_start(value: Object) -> list[Signal]:
    shape.object_at(value, "message")
    return plain(Kind.START)


def _block_start(value: Object) -> list[Signal]:
    block, content = shape.integer(value, "index"), shape.object_at(value, "content_block")
    kind = shape.text(content, "type")
    found = [Signal(kind=Kind.OPEN, value=kind, block=block)]
    if kind == "text":
        found += text(shape.maybe_text(content, "text"), block=block)
    elif kind == _TOOL:
        call_id, name = shape.text(content, "id"), shape.text(content, "name")
        found.append(Signal(kind=Kind.TOOL, block=block, call=block, id=call_id, name=name))
    return found


def _block_delta(value: Object) -> list[Signal]:
    block, delta = shape.integer(value, "index"), shape.object_at(value, "delta")
    kind = shape.text(delta, "type")
    if kind == "text_delta":
        return text(shape.text(delta, "text"), block=block)
    if kind == "thinking_delta":
        return reasoning(shape.text(delta, "thinking"), block=block)
    if kind == "input_json_delta":
        fragment = shape.text(delta, "partial_json")
        return [Signal(kind=Kind.TOOL, block=block, call=block, value=fragment, only_in=_TOOL)]
    return plain(Kind.UNKNOWN)


def _block_stop(value: Object) -> list[Signal]:
    return [Signal(kind=Kind.CLOSE, block=shape.integer(value, "index"))]


def _message_delta(value: Object) -> list[Signal]:
    reason = shape.maybe_text(shape.object_at(value, "delta"), "stop_reason")
    found = plain(Kind.USAGE) if shape.maybe_object(value, "usage") is not None else []
    return found if reason is None else [*found, finish(reason)]


_READERS: Readers = {
    "message_start": _message_start,
    "content_block_start": _block_start,
    "content_block_delta": _block_delta,
    "content_block_stop": _block_stop,
    "message_delta": _message_delta,
    "message_stop": lambda _: plain(Kind.DONE),
    "ping": lambda _: plain(Kind.META),
    "error": error,
}

DIALECT = Dialect(read=read, path="/messages", starts=True, empty_arguments=True, text_at=("delta", "text"))
