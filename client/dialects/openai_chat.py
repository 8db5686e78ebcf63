"""OpenAI Chat Completions, with Azure's and OpenRouter's deviations: chunks, ended by `[DONE]`.

    https://github.com/openai/openai-openapi (createChatCompletion, CreateChatCompletionStreamResponse)
    chunk  = { choices: [ choice ], usage?, ... } | { error: ... }
    choice = { index, delta: { role?, content?, refusal?, tool_calls? }, finish_reason? }

Azure sends chunks without choices first and choices without a delta after the finish, and may
filter after `stop`; OpenRouter sends comments, and errors beside choices. Gateways put reasoning into
`reasoning_content` or `reasoning`. Providers that copy this protocol change a few spellings: they
override them in a class of their own.
"""

from collections.abc import Iterator

from ..signals import Kind, Signal, error, finish, plain, reasoning, refusal, text
from ..stencil import Place
from . import Dialect, shape
from .shape import Object

# The call of the older `function_call`, which has no number.
_FUNCTION_CALL = -1


class Chunks:
    """Reads chunks; the methods below `read` are what a provider may spell otherwise."""

    def read(self, event: str, chunk: Object) -> list[Signal]:
        """Read one chunk; errors come as an envelope, as an object of that name, or as an event of it."""
        if chunk.get("error") is not None or chunk.get("object") == "error" or event == "error":
            return error(chunk.get("error") or chunk.get("message"))
        choices = shape.maybe_objects(chunk, "choices")
        if choices is None:
            return plain(Kind.UNKNOWN)
        found = [signal for choice in choices for signal in self._choice_or_meta(choice)]
        return found + (plain(Kind.USAGE) if shape.maybe_object(chunk, "usage") is not None else [])

    def content(self, delta: Object, candidate: int) -> Iterator[Signal]:
        """Read the content of a delta."""
        yield from text(shape.maybe_text(delta, "content"), candidate=candidate)

    def arguments(self, function: Object) -> str:
        """Read one fragment of a call's arguments."""
        return shape.maybe_text(function, "arguments") or ""

    def call_index(self, call: Object, position: int) -> int:  # noqa: ARG002 - others count by position
        """Read which call a fragment belongs to."""
        return shape.integer(call, "index")

    def _choice_or_meta(self, choice: Object) -> list[Signal]:
        """Read a choice; one without any signal is still a candidate that the contract may refuse."""
        candidate = shape.integer(choice, "index")
        return list(self._choice(choice, candidate)) or [Signal(kind=Kind.META, candidate=candidate)]

    def _choice(self, choice: Object, candidate: int) -> Iterator[Signal]:
        delta = shape.maybe_object(choice, "delta") or {}
        reason = shape.maybe_text(choice, "finish_reason")
        if shape.maybe_text(delta, "role") not in (None, "assistant"):
            raise shape.wrong("a delta of another role than assistant")
        yield from reasoning(shape.maybe_text(delta, "reasoning_content"), candidate=candidate)
        yield from reasoning(shape.maybe_text(delta, "reasoning"), candidate=candidate)
        yield from self.content(delta, candidate)
        yield from refusal(shape.maybe_text(delta, "refusal"), candidate=candidate)
        yield from self._calls(delta, candidate)
        if reason is not None:
            yield finish(reason, candidate)

    def _calls(self, delta: Object, candidate: int) -> Iterator[Signal]:
        calls = shape.maybe_objects(delta, "tool_calls")
        if calls is not None and not calls:
            yield Signal(kind=Kind.TOOL, candidate=candidate)
        for position, call in enumerate(calls or []):
            function = shape.maybe_object(call, "function") or {}
            index, call_id = self.call_index(call, position), shape.maybe_text(call, "id")
            yield self._call(function, candidate, index, call_id)
        function_call = shape.maybe_object(delta, "function_call")
        if function_call is not None:
            yield self._call(function_call, candidate, _FUNCTION_CALL, None)

    def _call(self, function: Object, candidate: int, call: int, call_id: str | None) -> Signal:
        return Signal(
            kind=Kind.TOOL,
            candidate=candidate,
            call=call,
            id=call_id,
            name=shape.maybe_text(function, "name"),
            value=self.arguments(function),
        )


# What follows a delta's text without saying anything: padding against guesses by length, and token scores.
UNREAD = frozenset[Place]({("obfuscation",), ("choices", 0, "logprobs")})
TEXT_AT: Place = ("choices", 0, "delta", "content")

DIALECT = Dialect(
    read=Chunks().read,
    path="/chat/completions",
    markers={b"[DONE]": Kind.DONE},
    text_at=TEXT_AT,
    unread=UNREAD,
)
