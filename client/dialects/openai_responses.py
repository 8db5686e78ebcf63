"""OpenAI Responses: named events around output items, ended by one terminal event.

    https://github.com/openai/openai-openapi (createResponse, ResponseStreamEvent)
    created, (output_item.added, deltas..., output_item.done)*, completed | incomplete | failed

An item is a block. The terminal event carries status and reason, so it is finish and end in one; it
is trusted only where its status says the same as its name. There is no `[DONE]`; gateways send one
behind the end, where nothing is read any more, or before it, where it means nothing.
"""

from ..signals import INCOMPLETE, Kind, Signal, error, finish, plain, reasoning, refusal, text
from . import Dialect, shape
from .named import Readers, read_named
from .shape import Object

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_CUSTOM = "custom_tool_call"


def read(event: str, value: Object) -> list[Signal]:
    """Read one event by its type; the event field has to say the same."""
    kind, found = read_named(event, value, _READERS)
    if found is not None:
        return found
    return plain(Kind.META if kind.startswith("response.") or kind == "keepalive" else Kind.UNKNOWN)


def _added(value: Object) -> list[Signal]:
    block, item = shape.integer(value, "output_index"), shape.object_at(value, "item")
    kind = shape.text(item, "type")
    found = [Signal(kind=Kind.OPEN, value=kind, block=block)]
    if kind in _CALLS:
        call = Signal(
            kind=Kind.TOOL,
            block=block,
            call=block,
            id=shape.maybe_text(item, "call_id"),
            name=shape.maybe_text(item, "name"),
            value=shape.maybe_text(item, _CALLS[kind]) or "",
            free=kind == _CUSTOM,
        )
        found.append(call)
    return found


def _done(value: Object) -> list[Signal]:
    block, item = shape.integer(value, "output_index"), shape.object_at(value, "item")
    status = shape.maybe_text(item, "status")
    if status not in (None, "completed", "incomplete"):
        raise shape.wrong("an item that is done with another status than completed or incomplete")
    return [Signal(kind=Kind.CLOSE, block=block, value=INCOMPLETE if status == "incomplete" else "")]


def _text(value: Object) -> list[Signal]:
    return text(shape.text(value, "delta"), block=shape.integer(value, "output_index"))


def _refusal(value: Object) -> list[Signal]:
    return refusal(shape.text(value, "delta"), block=shape.integer(value, "output_index"))


def _reasoning(value: Object) -> list[Signal]:
    return reasoning(shape.text(value, "delta"), block=shape.integer(value, "output_index"))


def _arguments(value: Object) -> list[Signal]:
    block = shape.integer(value, "output_index")
    return [Signal(kind=Kind.TOOL, block=block, call=block, value=shape.text(value, "delta"))]


def _end(value: Object, status: str) -> list[Signal]:
    response = shape.object_at(value, "response")
    if shape.text(response, "status") != status:
        raise shape.wrong(f"response.{status} with the status {response['status']!r}")
    details = shape.maybe_object(response, "incomplete_details") or {}
    reason = shape.maybe_text(details, "reason") if status == "incomplete" else None
    used = plain(Kind.USAGE) if shape.maybe_object(response, "usage") is not None else []
    return [*used, finish(reason or status), *plain(Kind.DONE)]


_READERS: Readers = {
    "response.created": lambda _: plain(Kind.START),
    "error": error,
    "response.failed": error,
    "response.output_item.added": _added,
    "response.output_item.done": _done,
    "response.output_text.delta": _text,
    "response.refusal.delta": _refusal,
    "response.reasoning_text.delta": _reasoning,
    "response.reasoning_summary_text.delta": _reasoning,
    "response.function_call_arguments.delta": _arguments,
    "response.custom_tool_call_input.delta": _arguments,
    "response.completed": lambda value: _end(value, "completed"),
    "response.incomplete": lambda value: _end(value, "incomplete"),
}

DIALECT = Dialect(
    read=read,
    path="/responses",
    markers={b"[DONE]": Kind.META},
    starts=True,
    text_at=("delta",),
    unread=frozenset({("sequence_number",), ("obfuscation",), ("logprobs",)}),
)
