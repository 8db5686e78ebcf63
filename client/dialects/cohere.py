"""Cohere v2 chat: named events around content and tool calls, ended by `message-end`.

    https://docs.cohere.com/v2/docs/streaming
    message-start, (content-start, content-delta*, content-end | tool-call-start, ...)*, message-end

`message-end` carries the reason, so it is finish and end in one. Contents and calls count from 0
each; here a call's block is moved out of the way of the contents'.
"""

from ..signals import Kind, Signal, finish, plain, reasoning, text
from . import Dialect, shape
from .named import Readers, read_named
from .shape import Object

# Block numbers of calls begin here, contents stay below.
_CALL_BLOCKS = 1_000_000


def read(event: str, value: Object) -> list[Signal]:
    """Read one event by its type; the event field has to say the same."""
    _, found = read_named(event, value, _READERS)
    return plain(Kind.UNKNOWN) if found is None else found


def _content_start(value: Object) -> list[Signal]:
    block, content = shape.integer(value, "index"), shape.object_at(value, "delta", "message", "content")
    kind = shape.maybe_text(content, "type") or ""
    return [Signal(kind=Kind.OPEN, value=kind, block=block), *_written(content, block)]


def _content_delta(value: Object) -> list[Signal]:
    block, content = shape.integer(value, "index"), shape.object_at(value, "delta", "message", "content")
    return _written(content, block)


def _written(content: Object, block: int) -> list[Signal]:
    written = text(shape.maybe_text(content, "text"), block=block)
    return written + reasoning(shape.maybe_text(content, "thinking"), block=block)


def _content_end(value: Object) -> list[Signal]:
    return [Signal(kind=Kind.CLOSE, block=shape.integer(value, "index"))]


def _tool_plan(value: Object) -> list[Signal]:
    return reasoning(shape.maybe_text(shape.object_at(value, "delta", "message"), "tool_plan"))


def _call_start(value: Object) -> list[Signal]:
    index, call = shape.integer(value, "index"), shape.object_at(value, "delta", "message", "tool_calls")
    call_id, function = shape.text(call, "id"), shape.object_at(call, "function")
    name, fragment = shape.text(function, "name"), shape.maybe_text(function, "arguments") or ""
    block = _CALL_BLOCKS + index
    opened = Signal(kind=Kind.OPEN, value="tool", block=block)
    return [opened, Signal(kind=Kind.TOOL, block=block, call=index, id=call_id, name=name, value=fragment)]


def _call_delta(value: Object) -> list[Signal]:
    index = shape.integer(value, "index")
    function = shape.object_at(value, "delta", "message", "tool_calls", "function")
    fragment = shape.text(function, "arguments")
    return [Signal(kind=Kind.TOOL, block=_CALL_BLOCKS + index, call=index, value=fragment)]


def _call_end(value: Object) -> list[Signal]:
    return [Signal(kind=Kind.CLOSE, block=_CALL_BLOCKS + shape.integer(value, "index"))]


def _message_end(value: Object) -> list[Signal]:
    delta = shape.object_at(value, "delta")
    used = plain(Kind.USAGE) if shape.maybe_object(delta, "usage") is not None else []
    return [*used, finish(shape.text(delta, "finish_reason")), *plain(Kind.DONE)]


_READERS: Readers = {
    "message-start": lambda _: plain(Kind.START),
    "content-start": _content_start,
    "content-delta": _content_delta,
    "content-end": _content_end,
    "tool-plan-delta": _tool_plan,
    "tool-call-start": _call_start,
    "tool-call-delta": _call_delta,
    "tool-call-end": _call_end,
    "citation-start": lambda _: plain(Kind.META),
    "citation-end": lambda _: plain(Kind.META),
    "message-end": _message_end,
}

DIALECT = Dialect(
    read=read,
    path="/chat",
    markers={b"[DONE]": Kind.META},
    starts=True,
    text_at=("delta", "message", "content", "text"),
)
