"""What of a request may be archived: an allow-list, applied before anything is hashed.

Recorders that work by deny-list have leaked keys under names nobody thought of. Here a header or
a member of the JSON body is kept only if it is named below; of the rest, only the names are kept.
Host, path and query become placeholders, so ports and tokens never enter a record.
"""

import json

from .canonical import canonical

HEADERS = frozenset({"accept", "accept-encoding", "content-length", "content-type"})
MEMBERS = frozenset({"max_tokens", "messages", "model", "n", "stream", "stream_options", "temperature"})


def request_record(headers: list[tuple[str, str]], body: bytes) -> tuple[bytes, set[str]]:
    """Give the archived form of a request, and the names of what was left out of it."""
    kept = sorted((name.lower(), value) for name, value in headers if name.lower() in HEADERS)
    lines = ["POST {path} HTTP/1.1", "host: {host}", *(f"{name}: {value}" for name, value in kept), "", ""]
    left_out = {name.lower() for name, _ in headers} - HEADERS - {"host"}
    content, members = _body(body)
    return "\n".join(lines).encode("utf-8", "backslashreplace") + content, left_out | members


def _body(body: bytes) -> tuple[bytes, set[str]]:
    try:
        value = json.loads(body)
        if not isinstance(value, dict):
            return b"", {"body"}
        kept = canonical({name: member for name, member in value.items() if name in MEMBERS})
    except (ValueError, RecursionError):  # no JSON, or what canonical JSON cannot spell: NaN, 1e999
        return b"", {"body"} if body else set()
    return kept, {f"body.{name}" for name in value.keys() - MEMBERS}
