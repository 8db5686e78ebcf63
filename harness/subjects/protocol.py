"""The messages that a subject sends: which keys they have, and of which type.

Every claim of every trial passes here, so the check is a table and a loop: jsonschema, which
checks what people write, costs more than the trial itself. `schemas/ready.json`,
`claim.json` and `stepped.json` state the same for other programs, and a test holds the two together.
"""

import re
from collections.abc import Mapping
from typing import Any

PROTOCOL = "endmark.subject/1"

TRANSPORT_ENDS = frozenset({"left", "eof", "short-body", "reset", "bad-framing", "timeout", "refused"})

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEXT, _LIST, _OBJECT, _COUNT = (str,), (list,), (dict,), (int,)
_MAYBE_TEXT, _MAYBE_COUNT, _MAYBE_OBJECT = (str, type(None)), (int, type(None)), (dict, type(None))

_Form = Mapping[str, tuple[type, ...]]

READY: _Form = {
    "kind": _TEXT,
    "protocol": _TEXT,
    "name": _TEXT,
    "version": _TEXT,
    "language": _TEXT,
    "dialects": _LIST,
    "capabilities": _LIST,
}
CLAIM: _Form = {
    "kind": _TEXT,
    "trial": _TEXT,
    "history": _LIST,
    "preview": _TEXT,
    "raised": _MAYBE_OBJECT,
    "hints": _OBJECT,
}
CLAIM_OPTIONAL: _Form = {
    "outcome": _MAYBE_TEXT,
    "status": _MAYBE_COUNT,
    "reads": _MAYBE_COUNT,
    "consumed_bytes": _MAYBE_COUNT,
    "consumed_sha256": _MAYBE_TEXT,
    "transport_end": _MAYBE_TEXT,
    "class": _MAYBE_TEXT,
    "dispatched": _MAYBE_COUNT,
}
MESSAGE: _Form = {"role": _TEXT, "content": _TEXT}
MESSAGE_OPTIONAL: _Form = {"tool_calls": _LIST}
TOOL_CALL: _Form = {"id": _MAYBE_TEXT, "name": _TEXT, "arguments": _TEXT}
RAISED: _Form = {"type": _TEXT, "chain": _LIST, "message": _TEXT}
STEPPED: _Form = {"kind": _TEXT, "trial": _TEXT, "journal": _OBJECT}
JOURNAL: _Form = {
    "do": _TEXT,
    "attempt": _MAYBE_TEXT,
    "result": _MAYBE_TEXT,
    "outcome": _MAYBE_TEXT,
    "consumed_bytes": _COUNT,
    "reads": _COUNT,
    "preview": _TEXT,
    "display": _TEXT,
    "state": _TEXT,
    "stored": _COUNT,
}
RESULTS = frozenset({"committed", "refused", "superseded", "denied", None})
STATES = frozenset({"idle", "generating", "interrupted", "withdrawn", "accepted"})

_COUNTS = 2**53  # the records hold no larger integer
_NAME_CHARS, _TYPE_CHARS, _HISTORY_ENTRIES, _CHAIN_TYPES, _LIST_ENTRIES = 100, 200, 1000, 20, 50


def wrong_ready(message: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a `ready`, or None."""
    wrong = _wrong_form(message, READY)
    if wrong:
        return wrong
    if message["kind"] != "ready" or message["protocol"] != PROTOCOL:
        return f"needs kind 'ready' and protocol {PROTOCOL!r}"
    for key in ("name", "version", "language"):
        if not 0 < len(message[key]) <= _NAME_CHARS:
            return f"{key}: needs 1 to {_NAME_CHARS} characters"
    for key in ("dialects", "capabilities"):
        if not _are_texts(message[key], _LIST_ENTRIES):
            return f"{key}: needs a list of at most {_LIST_ENTRIES} strings"
    return None


def wrong_claim(message: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a `claim`, or None."""
    wrong = _wrong_form(message, CLAIM, CLAIM_OPTIONAL)
    if wrong:
        return wrong
    if len(message["history"]) > _HISTORY_ENTRIES:
        return f"history: more than {_HISTORY_ENTRIES} entries"
    for number, entry in enumerate(message["history"]):
        wrong = _wrong_message(entry)
        if wrong:
            return f"history[{number}]: {wrong}"
    return _wrong_raised(message["raised"]) or _wrong_values(message)


def wrong_stepped(step: Mapping[str, Any], message: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a `stepped` as the answer to this step, or None."""
    wrong = _wrong_form(message, STEPPED)
    if wrong:
        return wrong
    line = message["journal"]
    wrong = _wrong_form(line, JOURNAL) or _wrong_line(line)
    if wrong:
        return f"journal: {wrong}"
    if (line["do"], line["attempt"]) != (step["do"], step.get("attempt")):
        return f"journal: {line['do'][:20]!r} of {line['attempt']!r} answers another step"
    return None


def _wrong_line(line: Mapping[str, Any]) -> str | None:
    for key, known in (("result", RESULTS), ("state", STATES)):
        if line[key] not in known:
            return f"{key}: needs one of {', '.join(sorted(filter(None, known)))}"
    if len(line["outcome"] or "") > _NAME_CHARS:
        return f"outcome: more than {_NAME_CHARS} characters"
    for key in ("consumed_bytes", "reads", "stored"):
        if not 0 <= line[key] < _COUNTS:
            return f"{key}: needs to be at least 0 and below 2^53"
    return None


def _wrong_message(entry: object) -> str | None:
    wrong = _wrong_form(entry, MESSAGE, MESSAGE_OPTIONAL)
    if wrong or not isinstance(entry, dict):
        return wrong
    calls = entry.get("tool_calls", [])
    if len(calls) > _LIST_ENTRIES:
        return f"tool_calls: more than {_LIST_ENTRIES} entries"
    found = (_wrong_form(call, TOOL_CALL) for call in calls)
    return next((f"tool_calls: {wrong}" for wrong in found if wrong), None)


def _wrong_raised(raised: Mapping[str, Any] | None) -> str | None:
    if raised is None:
        return None
    wrong = _wrong_form(raised, RAISED)
    if wrong:
        return f"raised: {wrong}"
    if len(raised["type"]) > _TYPE_CHARS or not _are_texts(raised["chain"], _CHAIN_TYPES, _TYPE_CHARS):
        return f"raised: needs a type and a chain of at most {_CHAIN_TYPES} types, each of {_TYPE_CHARS} characters"
    return None


def _wrong_values(message: Mapping[str, Any]) -> str | None:
    reason = message["hints"].get("finish_reason")
    if not isinstance(reason, _MAYBE_TEXT):
        return "hints.finish_reason: needs a string or null"
    for key in ("outcome", "class"):
        if len(message.get(key) or "") > _NAME_CHARS:
            return f"{key}: more than {_NAME_CHARS} characters"
    for key in ("status", "reads", "consumed_bytes", "dispatched"):
        if not 0 <= (message.get(key) or 0) < _COUNTS:
            return f"{key}: needs to be at least 0 and below 2^53"
    digest = message.get("consumed_sha256")
    if digest is not None and not _SHA256.fullmatch(digest):
        return "consumed_sha256: needs 64 lower-case hex digits"
    if message.get("transport_end") not in TRANSPORT_ENDS | {None}:
        return f"transport_end: needs one of {', '.join(sorted(TRANSPORT_ENDS))}"
    return None


def _wrong_form(value: object, required: _Form, optional: _Form | None = None) -> str | None:
    if not isinstance(value, dict):
        return "needs an object"
    form = {**required, **(optional or {})}
    for key in required.keys() - value.keys():
        return f"{key!r} is missing"
    for key, member in value.items():
        if key not in form:
            return f"{key!r} is not a key of it"
        if not isinstance(member, form[key]) or isinstance(member, bool):
            return f"{key}: a value of the wrong type"
    return None


def _are_texts(values: list[Any], most: int, chars: int | None = None) -> bool:
    fits = (isinstance(value, str) and (chars is None or len(value) <= chars) for value in values)
    return len(values) <= most and all(fits)
