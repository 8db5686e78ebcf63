"""Amazon Bedrock ConverseStream: binary frames around indexed content blocks, ended by `messageStop`.

    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html
    messageStart, (contentBlockStart?, contentBlockDelta*, contentBlockStop)*, messageStop, metadata?

A text block has no start of its own: its first delta opens it. `metadata` follows the end and is
not waited for. Exceptions are frames of their own.
"""

from collections.abc import Callable

from ..signals import Kind, Signal, error, finish, plain, reasoning, text
from . import Dialect, shape
from .shape import Object

_TEXT, _TOOL, _OTHER = "text", "tool_use", "other"


def read(event: str, value: Object) -> list[Signal]:
    """Read one frame of a known type."""
    return _READERS[event](value)


def by_type(event: str) -> list[Signal] | None:
    """Read a frame whose payload does not matter: an exception, an error, or an unknown event."""
    if event.startswith(("exception/", "error/")):
        return error(event)
    return None if event in _READERS else plain(Kind.UNKNOWN)


def _block_start(value: Object) -> list[Signal]:
    block = shape.integer(value, "contentBlockIndex")
    tool = shape.maybe_object(shape.maybe_object(value, "start") or {}, "toolUse")
    if tool is None:
        return [Signal(kind=Kind.OPEN, value=_OTHER, block=block)]
    call_id, name = shape.text(tool, "toolUseId"), shape.text(tool, "name")
    call = Signal(kind=Kind.TOOL, block=block, call=block, id=call_id, name=name)
    return [Signal(kind=Kind.OPEN, value=_TOOL, block=block), call]


def _block_delta(value: Object) -> list[Signal]:
    block, delta = shape.integer(value, "contentBlockIndex"), shape.object_at(value, "delta")
    thought = shape.maybe_object(delta, "reasoningContent") or {}
    tool = shape.maybe_object(delta, "toolUse")
    opens = _TEXT if tool is None else None  # a tool's block has a start of its own
    found = text(shape.maybe_text(delta, "text"), block=block, opens=opens)
    if tool is not None:
        fragment = shape.maybe_text(tool, "input") or ""
        found.append(Signal(kind=Kind.TOOL, block=block, call=block, value=fragment))
    found += reasoning(shape.maybe_text(thought, "text"), block=block, opens=opens)
    return found or [Signal(kind=Kind.OPEN, value=_TEXT, block=block, opens=opens)]


def _block_stop(value: Object) -> list[Signal]:
    return [Signal(kind=Kind.CLOSE, block=shape.integer(value, "contentBlockIndex"))]


def _message_stop(value: Object) -> list[Signal]:
    return [finish(shape.text(value, "stopReason")), *plain(Kind.DONE)]


def _metadata(value: Object) -> list[Signal]:
    return plain(Kind.USAGE) if shape.maybe_object(value, "usage") is not None else []


_READERS: dict[str, Callable[[Object], list[Signal]]] = {
    "event/messageStart": lambda _: plain(Kind.START),
    "event/contentBlockStart": _block_start,
    "event/contentBlockDelta": _block_delta,
    "event/contentBlockStop": _block_stop,
    "event/messageStop": _message_stop,
    "event/metadata": _metadata,
}

DIALECT = Dialect(
    read=read,
    path="/model/fixture/converse-stream",
    by_type=by_type,
    starts=True,
    empty_arguments=True,
    text_at=("delta", "text"),
    unread=frozenset({("p",)}),  # padding against guesses by length
)
