"""How each provider spells text, finish and end, as a tutorial would look for them.

Naive on purpose: members are taken where they are expected, and whatever is not there is skipped.
No order, no block, no checksum is looked at.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """What one event showed: text, a finish reason, and whether it was the last."""

    text: str = ""
    reason: str | None = None
    done: bool = False


Spelling = Callable[[dict[str, Any]], Seen]


def openai_chat(chunk: dict[str, Any]) -> Seen:
    """Join the deltas of all choices."""
    text, reason = "", None
    for choice in chunk.get("choices", []):
        content = choice.get("delta", {}).get("content") or ""
        text += content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        reason = choice.get("finish_reason") or reason
    return Seen(text, reason)


def openai_responses(event: dict[str, Any]) -> Seen:
    """Take text deltas, and the terminal event by its name."""
    kind = event.get("type", "")
    if kind == "response.output_text.delta":
        return Seen(event["delta"])
    ended = kind in ("response.completed", "response.incomplete")
    return Seen(reason=kind if ended else None, done=kind == "response.completed")


def anthropic(event: dict[str, Any]) -> Seen:
    """Take text deltas, the stop reason, and message_stop."""
    delta = event.get("delta", {})
    return Seen(delta.get("text", ""), delta.get("stop_reason"), event.get("type") == "message_stop")


def gemini(event: dict[str, Any]) -> Seen:
    """Join the parts of the first candidate; its finish reason is all the end there is."""
    candidates = event.get("candidates") or [{}]
    parts = candidates[0].get("content", {}).get("parts", [])
    reason = candidates[0].get("finishReason")
    return Seen("".join(part.get("text", "") for part in parts), reason, reason is not None)


def bedrock(event: dict[str, Any]) -> Seen:
    """Take text deltas and the stop reason, from the payloads alone."""
    reason = event.get("stopReason")
    return Seen(event.get("delta", {}).get("text", ""), reason, reason is not None)


def cohere(event: dict[str, Any]) -> Seen:
    """Take content deltas and message-end."""
    delta = event.get("delta", {})
    message = delta.get("message") or {}
    content = message.get("content")
    text = content.get("text", "") if isinstance(content, dict) else ""
    return Seen(text, delta.get("finish_reason"), event.get("type") == "message-end")


def ollama(line: dict[str, Any]) -> Seen:
    """Take the content and `done`."""
    done = bool(line.get("done"))
    return Seen(line.get("message", {}).get("content", ""), line.get("done_reason"), done)


SPELLINGS: dict[str, tuple[str, Spelling]] = {
    "anthropic": ("/messages", anthropic),
    "bedrock": ("/model/fixture/converse-stream", bedrock),
    "cohere": ("/chat", cohere),
    "gemini": ("/models/fixture:streamGenerateContent?alt=sse", gemini),
    "mistral": ("/chat/completions", openai_chat),
    "ollama": ("/chat", ollama),
    "openai-chat": ("/chat/completions", openai_chat),
    "openai-responses": ("/responses", openai_responses),
}


def payloads(body: bytes) -> Iterator[str]:
    """Cut Bedrock's frames by their lengths, trusting them; no checksum is looked at."""
    at = 0
    while at + 16 <= len(body):
        total, headers = int.from_bytes(body[at : at + 4], "big"), int.from_bytes(body[at + 4 : at + 8], "big")
        yield body[at + 12 + headers : at + total - 4].decode()
        at += max(total, 16)
