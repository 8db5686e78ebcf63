"""The target `json`: one byte of depth (0 is 64), then a text that both strict readers take or refuse.

Bytes that are no UTF-8 never reach a reader of JSON: the framings judge them.
"""

from tests.witnesses import json_by_auditor, json_by_client

from .choices import Choices

HEAD_BYTES = 1


def deviation(data: bytes) -> str | None:
    """Say how the two readers differ; None where they take the same value, or both refuse."""
    choices = Choices(data)
    depth = choices.byte() or 64
    try:
        text = choices.rest().decode()
    except UnicodeDecodeError:
        return None
    ours, theirs = json_by_client(text, depth), json_by_auditor(text, depth)
    return None if ours == theirs else f"the client reads {ours}, the auditor {theirs}"
