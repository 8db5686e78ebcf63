"""OpenAI Chat Completions: a data-only event stream of chunks, ended by `[DONE]`.

    https://github.com/openai/openai-openapi (createChatCompletion, CreateChatCompletionStreamResponse)
    chunk  = { choices: [ choice ] | [], usage?, ... } | { error: ... }
    choice = { index: 0, delta: { role?, content?, tool_calls?, refusal? }, finish_reason? }

Unknown members have no effect. An event is judged whole before it takes effect, so an event
that is refused for its shape leaves no text behind.
"""

from ..framer import Event
from ..outcomes import PROTOCOL, Fault
from ..signals import Kind, Signal
from ..strict_json import Json, parse

_DONE = "[DONE]"


def signals(event: Event, max_depth: int) -> list[Signal] | Fault:
    """Read one event into signals; a Fault for JSON that is none and for a shape that is no chunk."""
    if event.data == _DONE:
        return [Signal(Kind.DONE)]
    chunk = parse(event.data, max_depth)
    if isinstance(chunk, Fault):
        return chunk
    if not isinstance(chunk, dict):
        return _protocol("an event that is no JSON object")
    if chunk.get("error") is not None:
        return [Signal(Kind.ERROR, str(chunk["error"]))]
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) > 1:
        return _protocol("choices is not a list of at most one")
    return _choice(choices[0]) if choices else [Signal(Kind.META)]


def _choice(choice: Json) -> list[Signal] | Fault:
    if not isinstance(choice, dict):
        return _protocol("a choice that is no object")
    index, delta, reason = choice.get("index"), choice.get("delta"), choice.get("finish_reason")
    if type(index) is not int or index != 0:
        return _protocol("a choice whose index is not 0")
    if not isinstance(delta, dict):
        return _protocol("a choice without a delta object")
    if reason is not None and not isinstance(reason, str):
        return _protocol("a finish_reason that is no string")
    content = _delta(delta)
    if isinstance(content, Fault):
        return content
    if isinstance(content, Signal):
        return [content]
    found = [Signal(Kind.TEXT, content)] if content else []
    if reason is not None:
        found.append(Signal(Kind.FINISH, reason))
    return found or [Signal(Kind.META)]


def _delta(delta: dict[str, Json]) -> str | Signal | Fault:
    """Give the delta's text, or the one signal that outranks it."""
    if delta.get("role") not in (None, "assistant"):
        return _protocol("a delta of another role than assistant")
    content = delta.get("content")
    if content is not None and not isinstance(content, str):
        return _protocol("a delta whose content is no string")
    if delta.get("tool_calls") is not None or delta.get("function_call") is not None:
        return Signal(Kind.TOOL)
    if delta.get("refusal") not in (None, ""):
        return Signal(Kind.REFUSAL)
    return content or ""


def _protocol(why: str) -> Fault:
    return Fault(outcome=PROTOCOL, why=why)
