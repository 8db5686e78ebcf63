"""Mistral chat: OpenAI's chunks with typed content, and calls that may arrive whole.

https://docs.mistral.ai/api/#tag/chat (CompletionChunk)
content   = string | [ { type: "text", text } | { type: "thinking", thinking: [...] } | ... ]
arguments = string | object
"""

from collections.abc import Iterator

from ..signals import Kind, Signal, reasoning, text
from ..strict_json import canonical
from . import Dialect, shape
from .openai_chat import TEXT_AT, Chunks
from .shape import Object


class MistralChunks(Chunks):
    """What Mistral spells in its own way."""

    def content(self, delta: Object, candidate: int) -> Iterator[Signal]:
        """Read a string, or a list of typed parts of which two have an effect, each joined."""
        if not isinstance(delta.get("content"), list):
            yield from super().content(delta, candidate)
            return
        texts, thoughts = list[str](), list[str]()
        for part in shape.maybe_objects(delta, "content") or []:
            kind = shape.text(part, "type")
            if kind == "text":
                texts.append(shape.text(part, "text"))
            elif kind == "thinking":
                thoughts += [shape.maybe_text(thought, "text") or "" for thought in shape.objects(part, "thinking")]
        yield from reasoning("".join(thoughts), candidate=candidate)
        yield from text("".join(texts), candidate=candidate)

    def arguments(self, function: Object) -> str:
        """Read a string, or an object that is whole."""
        whole = function.get("arguments")
        return canonical(whole) if isinstance(whole, dict) else super().arguments(function)

    def call_index(self, call: Object, position: int) -> int:
        """Read the index, or take the call's position in the list."""
        index = shape.maybe_integer(call, "index")
        return position if index is None else index


DIALECT = Dialect(
    read=MistralChunks().read,
    path="/chat/completions",
    markers={b"[DONE]": Kind.DONE},
    text_at=TEXT_AT,
    unread=frozenset({("p",)}),
)
