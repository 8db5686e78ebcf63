"""Gemini `streamGenerateContent?alt=sse`: each event is a whole response, and none is the last.

    https://ai.google.dev/api/generate-content (GenerateContentResponse, Candidate)
    event = { candidates: [ { content: { parts: [ part ] }, finishReason?, index? } ], usageMetadata? }

There is no terminal event: a candidate ends with its `finishReason`, and that nothing follows is
proved by closed HTTP framing alone. A blocked prompt ends the turn before any candidate.
"""

from collections.abc import Iterator

from ..signals import NEW_CALL, Kind, Signal, error, finish, plain, reasoning, text
from ..strict_json import canonical
from . import Dialect, shape
from .shape import Object


def read(_: str, value: Object) -> list[Signal]:
    """Read one response."""
    if value.get("error") is not None:
        return error(value["error"])
    feedback = shape.maybe_object(value, "promptFeedback")
    blocked = shape.maybe_text(feedback or {}, "blockReason")
    if blocked is not None:
        return [finish(f"prompt:{blocked}")]
    candidates = shape.maybe_objects(value, "candidates")
    usage = shape.maybe_object(value, "usageMetadata")
    if candidates is None and feedback is None and usage is None:
        return plain(Kind.UNKNOWN)
    found = [signal for candidate in candidates or [] for signal in _candidate_or_meta(candidate)]
    return found + (plain(Kind.USAGE) if usage is not None else [])


def _candidate_or_meta(value: Object) -> list[Signal]:
    """Read a candidate; one without any signal is still one that the contract may refuse."""
    return list(_candidate(value)) or [Signal(kind=Kind.META, candidate=shape.maybe_integer(value, "index") or 0)]


def _candidate(value: Object) -> Iterator[Signal]:
    candidate = shape.maybe_integer(value, "index") or 0
    content = shape.maybe_object(value, "content") or {}
    reason = shape.maybe_text(value, "finishReason")
    for part in shape.maybe_objects(content, "parts") or []:
        yield from _part(part, candidate)
    if reason:
        yield finish(reason, candidate)


def _part(part: Object, candidate: int) -> list[Signal]:
    written, call = shape.maybe_text(part, "text"), shape.maybe_object(part, "functionCall")
    thought = part.get("thought") is True
    found = reasoning(written, candidate=candidate) if thought else text(written, candidate=candidate)
    if call is not None:
        if call.get("willContinue") is True or call.get("partialArgs") is not None:
            raise shape.wrong("a function call whose arguments come in parts")
        whole = Signal(
            kind=Kind.TOOL,
            candidate=candidate,
            call=NEW_CALL,
            id=shape.maybe_text(call, "id"),
            name=shape.text(call, "name"),
            value=canonical(shape.maybe_object(call, "args") or {}),
        )
        found.append(whole)
    return found


DIALECT = Dialect(
    read=read,
    path="/models/fixture:streamGenerateContent?alt=sse",
    text_at=("candidates", 0, "content", "parts", 0, "text"),
    unread=frozenset({("responseId",)}),
)
