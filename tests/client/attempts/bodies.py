"""Small bodies for the attempts' tests."""

import json

HEAD = (200, "text/event-stream")


def event(delta: dict[str, object], finish: str | None = None) -> bytes:
    """Give one event of the dialect openai-chat."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def pieces(text: str, finish: str = "stop") -> list[bytes]:
    """Give the parts of a whole body: its text, its finish, its terminal event."""
    return [event({"content": text}), event({}, finish), b"data: [DONE]\n\n"]


def whole(text: str, finish: str = "stop") -> bytes:
    """Give a whole body."""
    return b"".join(pieces(text, finish))


def call(arguments: str, finish: str = "tool_calls") -> bytes:
    """Give a whole body that proposes one call."""
    function = {"name": "update_ticket", "arguments": arguments}
    return (
        event({"tool_calls": [{"index": 0, "id": "c1", "function": function}]})
        + event({}, finish)
        + b"data: [DONE]\n\n"
    )


ERROR = b'data: {"error": {"message": "overloaded"}}\n\n'
