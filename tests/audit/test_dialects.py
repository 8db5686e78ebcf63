"""The auditor's own reading of eight dialects under three contracts: docs/judging.md, rule by rule.

The bodies in tests/vectors/protocol/ are examples of what each provider sends, one a kind of ending; the
corner cases below are each written from the text of docs/judging.md alone.
"""

from __future__ import annotations

import itertools
import json
import random
import struct
import time
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import audit

ROOT = Path(__file__).resolve().parents[2]
BODIES = ROOT / "tests" / "vectors" / "protocol"


def document(name: str) -> dict[str, Any]:
    """A shipped contract as TOML has it."""
    file = ROOT / "cases" / "contracts" / (name.replace("/", "-") + ".toml")
    return tomllib.loads(file.read_text("utf-8"))


CONTRACTS = {name: audit.contract_of(document(name)) for name in ("frozen-text/1", "strict/1", "compat/1")}
STRICT, COMPAT = CONTRACTS["strict/1"], CONTRACTS["compat/1"]


def switched(contract: audit.Contract = STRICT, **changes: str) -> audit.Contract:
    """A contract with some switches turned."""
    return contract._replace(switch=contract.switch._replace(**changes))


def limited(**changes: int) -> audit.Contract:
    """strict/1 with some other limits."""
    return STRICT._replace(limits=STRICT.limits._replace(**changes))


def only_answers(dialect: str) -> audit.Contract:
    """strict/1, but that a dialect has no tools."""
    rules = {dialect: STRICT.dialects[dialect]._replace(results=["answer"])}
    return STRICT._replace(dialects=STRICT.dialects | rules)


def compact(value: object) -> bytes:
    """JSON as providers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse(*events: object) -> bytes:
    """An event stream without event fields; text is taken as it is."""
    data = [event.encode() if isinstance(event, str) else compact(event) for event in events]
    return b"".join(b"data: " + item + b"\n\n" for item in data)


def lines(*events: object) -> bytes:
    """Lines of JSON."""
    return b"".join(compact(event) + b"\n" for event in events)


def text_header(name: str, value: str) -> bytes:
    """A header whose value is a string."""
    raw = value.encode()
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(raw)) + raw


def frame(headers: bytes, payload: bytes, prelude_crc: int = 0, message_crc: int = 0) -> bytes:
    """A frame; the CRCs are right where they are not changed."""
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude) ^ prelude_crc) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message) ^ message_crc)


def named_frame(kind: str, payload: bytes) -> bytes:
    """An event frame as Bedrock sends it."""
    headers = text_header(":event-type", kind) + text_header(":message-type", "event")
    return frame(headers + text_header(":content-type", "application/json"), payload)


def frames(*events: tuple[str, object]) -> bytes:
    """A body of event frames."""
    return b"".join(named_frame(kind, compact(value)) for kind, value in events)


def judge(dialect: str, body: bytes, contract: audit.Contract = STRICT, **how: Any) -> audit.Reading:
    """A whole body, ended cleanly."""
    return audit.judge(body, dialect, contract, **how)


def outcome(dialect: str, body: bytes, contract: audit.Contract = STRICT, **how: Any) -> tuple[str, str, str | None]:
    """Outcome, preview and class."""
    reading = judge(dialect, body, contract, **how)
    return reading.outcome, "".join(reading.turn.texts), reading.turn.ending


def calls(dialect: str, body: bytes, contract: audit.Contract = STRICT) -> list[tuple[str | None, str, str]]:
    """The calls of a complete turn."""
    reading = judge(dialect, body, contract)
    assert (reading.outcome, reading.turn.ending) == ("COMPLETE", "tools")
    return [(call["id"], call["name"], call["arguments"]) for call in reading.turn.proposals()]


# ----------------------------------------------------------------------------------------------------
# The contracts
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTRACTS)
def test_shipped_contracts_are_readable(name: str) -> None:
    """Every shipped contract has the closed shape."""
    raw = (ROOT / "cases/contracts" / (name.replace("/", "-") + ".toml")).read_bytes()
    read, problem = audit.toml(raw, audit.CONTRACT_SHAPE)
    assert (read["name"], problem) == (name, "")


def test_switches_are_the_same_everywhere() -> None:
    """The table of switches and the fields of Switch are one list."""
    assert tuple(audit.SWITCHES) == audit.Switch._fields


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("switch.usage", "maybe"),
        ("switch.last_event", None),
        ("switch.more", "x"),
        ("dialect.ollama.framing", "xml"),
        ("dialect.ollama.results", ["truncated"]),
        ("dialect.ollama.terminal", None),
        ("dialect.ollama.reasons", {"stop": "done"}),
        ("history.answer", "withhold"),
        ("history.tools", "caller"),
        ("history.paused", "keep"),
        ("history.error", None),
        ("limits.json_depth", 257),
        ("limits.events", 0),
    ],
)
def test_contracts_are_closed(path: str, value: object) -> None:
    """Another key, another value, a missing one: not a contract."""
    changed = document("strict/1")
    *folders, last = path.split(".")
    holder = changed
    for folder in folders:
        holder = holder[folder]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    assert audit.CONTRACT_SHAPE(changed)


@pytest.mark.parametrize("rule", ["append", "append-marked", "withhold", "caller"])
def test_other_endings_may_have_any_rule(rule: str) -> None:
    """What may enter the history of what did not complete is the caller's matter."""
    changed = document("strict/1")
    changed["history"] |= dict.fromkeys(("truncated", "filtered", "paused", "error"), rule)
    assert audit.CONTRACT_SHAPE(changed) is None


# ----------------------------------------------------------------------------------------------------
# The examples
# ----------------------------------------------------------------------------------------------------

OSLO = '{"city":"Oslo"}'
FAMILIES = {
    "oai_chat": "openai-chat", "az": "openai-chat", "or": "openai-chat", "mis": "mistral",
    "oai_resp": "openai-responses", "ant": "anthropic", "gem": "gemini", "bed": "bedrock",
    "coh": "cohere", "oll": "ollama",
}  # fmt: skip
# file -> outcome, preview, class, raw reason, id of the one call
EXAMPLES: dict[str, tuple[str, str, str | None, str | None, str | None]] = {
    "oai_chat_text.sse": ("COMPLETE", "Hi!", "answer", "stop", None),
    "oai_chat_usage.sse": ("COMPLETE", "Hi", "answer", "stop", None),
    "oai_chat_tool.sse": ("COMPLETE", "", "tools", "tool_calls", "call_1"),
    "oai_chat_refusal.sse": ("INCOMPLETE_FINISH", "", "filtered", "stop", None),
    "oai_chat_filter.sse": ("INCOMPLETE_FINISH", "Par", "filtered", "content_filter", None),
    "oai_chat_error.sse": ("PROVIDER_ERROR", "Par", "error", None, None),
    "oai_resp_text.sse": ("COMPLETE", "Hi", "answer", "completed", None),
    "oai_resp_tool.sse": ("COMPLETE", "", "tools", "completed", "call_1"),
    "oai_resp_refusal.sse": ("INCOMPLETE_FINISH", "", "filtered", "completed", None),
    "oai_resp_incomplete.sse": ("INCOMPLETE_FINISH", "Par", "truncated", "max_output_tokens", None),
    "oai_resp_failed.sse": ("PROVIDER_ERROR", "", "error", None, None),
    "ant_text.sse": ("COMPLETE", "Hi!", "answer", "end_turn", None),
    "ant_tool.sse": ("COMPLETE", "", "tools", "tool_use", "toolu_1"),
    "ant_refusal.sse": ("INCOMPLETE_FINISH", "Hel", "filtered", "refusal", None),
    "ant_error.sse": ("PROVIDER_ERROR", "Hel", "error", None, None),
    "gem_text.sse": ("COMPLETE", "Hi!", "answer", "STOP", None),
    "gem_tool.sse": ("COMPLETE", "", "tools", "STOP", ""),
    "gem_safety.sse": ("INCOMPLETE_FINISH", "Par", "filtered", "SAFETY", None),
    "gem_prompt_block.sse": ("INCOMPLETE_FINISH", "", "filtered", "prompt:SAFETY", None),
    "gem_error.sse": ("PROVIDER_ERROR", "Par", "error", None, None),
    "bed_text.bin": ("COMPLETE", "Hi", "answer", "end_turn", None),
    "bed_tool.bin": ("COMPLETE", "", "tools", "tool_use", "t1"),
    "bed_guardrail.bin": ("INCOMPLETE_FINISH", "Sorry, blocked.", "filtered", "guardrail_intervened", None),
    "bed_exception.bin": ("PROVIDER_ERROR", "Par", "error", None, None),
    "bed_one_frame.bin": ("PROTOCOL", "", None, "end_turn", None),
    "mis_text.sse": ("COMPLETE", "Hi", "answer", "stop", None),
    "mis_tool.sse": ("COMPLETE", "", "tools", "tool_calls", "a1B2c3D4e"),
    "coh_text.sse": ("COMPLETE", "Hi", "answer", "COMPLETE", None),
    "coh_tool.sse": ("COMPLETE", "", "tools", "TOOL_CALL", "t1"),
    "oll_text.ndjson": ("COMPLETE", "Hi", "answer", "stop", None),
    "oll_tool.ndjson": ("COMPLETE", "", "tools", "stop", ""),
    "oll_error.ndjson": ("PROVIDER_ERROR", "Par", "error", None, None),
    "az_async_ok.sse": ("COMPLETE", "Hi", "answer", "stop", None),
    "az_async_block.sse": ("INCOMPLETE_FINISH", "Par", "filtered", "content_filter", None),
    "or_ok.sse": ("COMPLETE", "Hi", "answer", "stop", None),
    "or_mid_error.sse": ("PROVIDER_ERROR", "Par", "error", None, None),
}
WHOLE = [name for name, expected in EXAMPLES.items() if expected[0] == "COMPLETE"]


def dialect_of(name: str) -> str:
    """The dialect of an example."""
    return next(dialect for family, dialect in FAMILIES.items() if name.startswith(family))


def test_every_example_is_tried() -> None:
    """The folder and the table are one list."""
    assert sorted(path.name for path in BODIES.iterdir()) == sorted(EXAMPLES)
    assert {dialect_of(name) for name in EXAMPLES} == set(audit.DIALECTS)


@pytest.mark.parametrize("contract", ["strict/1", "compat/1"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, contract: str) -> None:
    """Every example ends as its provider's documentation says, under both contracts."""
    body, expected = (BODIES / name).read_bytes(), EXAMPLES[name]
    reading = judge(dialect_of(name), body, CONTRACTS[contract])
    turn = reading.turn
    assert (reading.outcome, "".join(turn.texts), turn.ending, turn.reason) == expected[:4]
    assert turn.unknown_events == 0
    if expected[4] is not None:
        assert turn.proposals() == [{"id": expected[4] or None, "name": "get_weather", "arguments": OSLO}]


@pytest.mark.parametrize("name", WHOLE)
def test_truncated_example(name: str) -> None:
    """One byte less than the terminal evidence is never COMPLETE, however the body ends."""
    body, dialect = (BODIES / name).read_bytes(), dialect_of(name)
    last = next(step.event.dispatch for step in judge(dialect, body).steps if step.after in ("finished", "COMPLETE"))
    if dialect != "gemini":
        settled = judge(dialect, body).settled_at
        assert settled is not None
        last = settled
    for size in range(last):
        reading = judge(dialect, body[:size])
        assert reading.outcome == "INCOMPLETE_STREAM", size
        assert reading.settled_at is None
    for size in (*range(last - 3, last), len(body)):
        for end in ("short-body", "reset", "bad-framing"):
            found = judge(dialect, body[:size], end=end).outcome
            assert found == ("INCOMPLETE_STREAM" if size < last or dialect == "gemini" else "COMPLETE")


@pytest.mark.parametrize("name", WHOLE)
def test_truncated_example_under_compat(name: str) -> None:
    """compat/1 asks for the finish, and for a clean end where there is no terminal event."""
    body, dialect = (BODIES / name).read_bytes(), dialect_of(name)
    steps = judge(dialect, body).steps
    finish = next((s.event.dispatch for s in steps if s.after in ("finished", "COMPLETE")), None)
    assert finish is not None
    for size in range(finish):
        assert judge(dialect, body[:size], COMPAT).outcome == "INCOMPLETE_STREAM", size
    assert judge(dialect, body[:finish], COMPAT).outcome == "COMPLETE"
    # Where the finish is the terminal event as well, nothing that ends the body later can change it.
    at_once = steps[-1].before != "finished" and steps[-1].after == "COMPLETE"
    for end in ("short-body", "reset", "bad-framing"):
        expected = "COMPLETE" if at_once else "INCOMPLETE_STREAM"
        assert judge(dialect, body[:finish], COMPAT, end=end).outcome == expected


@pytest.mark.parametrize("name", WHOLE)
def test_flipped_bits(name: str) -> None:
    """No damaged body makes the auditor fall over; a damaged frame is never accepted."""
    body, dialect = (BODIES / name).read_bytes(), dialect_of(name)
    settled = judge(dialect, body).settled_at or len(body)
    dice = random.Random(name)
    for _ in range(150):
        at = dice.randrange(settled)
        changed = body[:at] + bytes([body[at] ^ 1 << dice.randrange(8)]) + body[at + 1 :]
        for contract in (STRICT, COMPAT):
            reading = judge(dialect, changed, contract)
            assert reading.outcome in audit.OUTCOMES
            assert dialect != "bedrock" or reading.outcome in ("PROTOCOL", "INCOMPLETE_STREAM")


def other_values(value: Any, dice: random.Random) -> Any:
    """The same JSON with one value or member changed somewhere."""
    odd: list[Any] = [None, True, False, 0, -1, 1, 1.5, "", "x", [], {}, [None], [[]], [{}], {"a": {}}]
    if isinstance(value, dict) and value and dice.random() < 0.8:
        name = dice.choice(list(value))
        rest = {other: value[other] for other in value if other != name}
        return rest if dice.random() < 0.2 else {**rest, name: other_values(value[name], dice)}
    if isinstance(value, list) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        return [*value[:at], other_values(value[at], dice), *value[at + 1 :]]
    return dice.choice(odd)


@pytest.mark.parametrize("name", EXAMPLES)
def test_other_values(name: str) -> None:
    """No value in any place makes the auditor fall over: a dialect refuses it, or it has no effect."""
    dialect = dialect_of(name)
    events = [step.event for step in judge(dialect, (BODIES / name).read_bytes()).steps]
    dice = random.Random(name)
    for event in events:
        for _ in range(60 if event.data != "[DONE]" else 0):
            data = compact(other_values(json.loads(event.data), dice))
            try:
                signals = audit.DIALECTS[dialect].read(event._replace(data=data.decode()), 64)
            except audit.Offence:
                continue
            assert {signal.kind for signal in signals} <= set(audit.SIGNALS)
            assert all(type(signal.value) is str for signal in signals)


# ----------------------------------------------------------------------------------------------------
# Small bodies of every dialect
# ----------------------------------------------------------------------------------------------------


def choice(delta: object = None, reason: str | None = None, index: int = 0) -> dict[str, Any]:
    """A chunk of one choice."""
    return {"choices": [{"index": index, "delta": delta or {}, "finish_reason": reason}]}


def say(text: str, index: int = 0) -> dict[str, Any]:
    """A chunk with text."""
    return choice({"content": text}, index=index)


def tool(call: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    """A chunk with a fragment of a call."""
    return choice({"tool_calls": [call]}, reason)


def chat_call(arguments: str | None, name: str | None = "f", **more: Any) -> bytes:
    """A whole turn with one call."""
    call = {"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}, **more}
    return sse(tool(call), choice(None, "tool_calls"), "[DONE]")


STOP = choice(None, "stop")

# dialect -> events up to the content, one with the text "a", events up to completion
TEXT: dict[str, tuple[list[Any], Any, list[Any]]] = {
    "openai-chat": ([], say("a"), [STOP, "[DONE]"]),
    "mistral": ([], say("a"), [STOP, "[DONE]"]),
    "openai-responses": (
        [
            {"type": "response.created"},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
        ],
        {"type": "response.output_text.delta", "output_index": 0, "delta": "a"},
        [
            {"type": "response.output_item.done", "output_index": 0, "item": {"status": "completed"}},
            {"type": "response.completed", "response": {"status": "completed"}},
        ],
    ),
    "anthropic": (
        [
            {"type": "message_start", "message": {}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        ],
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
    ),
    "gemini": (
        [],
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        [{"candidates": [{"finishReason": "STOP"}]}],
    ),
    "bedrock": (
        [("messageStart", {"role": "assistant"}), ("contentBlockStart", {"contentBlockIndex": 0})],
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}}),
        [("contentBlockStop", {"contentBlockIndex": 0}), ("messageStop", {"stopReason": "end_turn"})],
    ),
    "cohere": (
        [
            {"type": "message-start"},
            {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text"}}}},
        ],
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "a"}}}},
        [{"type": "content-end", "index": 0}, {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}],
    ),
    "ollama": (
        [],
        {"message": {"role": "assistant", "content": "a"}, "done": False},
        [{"done": True, "done_reason": "stop"}],
    ),
}
WRITERS = {"bedrock": frames, "ollama": lines}
# dialect -> an event that it does not know, one that reports an error
STRANGE: dict[str, tuple[Any, Any]] = {
    "openai-chat": ({"object": "ping"}, {"error": {}}),
    "mistral": ({"choices": None}, {"error": "x"}),
    "openai-responses": ({"type": "later"}, {"type": "error", "code": "x"}),
    "anthropic": ({"type": "later"}, {"type": "error", "error": {}}),
    "gemini": ({"later": 1}, {"error": {"code": 503}}),
    "bedrock": (("later", {}), None),
    "cohere": ({"type": "later"}, None),
    "ollama": ({"model": "m"}, {"error": "x"}),
}
DIALECTS = list(TEXT)


def write(dialect: str, events: list[Any]) -> bytes:
    """The events of a dialect in its framing."""
    writer: Any = WRITERS.get(dialect, sse)
    return bytes(writer(*events))


def turn_of(dialect: str, texts: int = 1, between: list[Any] | None = None, end: int | None = None) -> bytes:
    """A turn with so many texts "a", something after them, and its end as far as `end`."""
    before, text, after = TEXT[dialect]
    return write(dialect, [*before, *[text] * texts, *(between or []), *after[:end]])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_smallest_answer(dialect: str) -> None:
    """The least that every dialect accepts."""
    for contract in (STRICT, COMPAT):
        assert outcome(dialect, turn_of(dialect, 2), contract) == ("COMPLETE", "aa", "answer")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_empty_completion(dialect: str) -> None:
    """Neither text nor a call at the completion."""
    assert outcome(dialect, turn_of(dialect, 0)) == ("UNSUPPORTED_OUTCOME", "", None)
    assert outcome(dialect, turn_of(dialect, 0), switched(empty_completion="accept"))[0] == "COMPLETE"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_end(dialect: str) -> None:
    """Text without a finish is incomplete, whatever the contract."""
    for contract in (STRICT, COMPAT):
        assert outcome(dialect, turn_of(dialect, end=0), contract) == ("INCOMPLETE_STREAM", "a", None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unknown_event(dialect: str) -> None:
    """Tolerated and counted, or PROTOCOL."""
    body = turn_of(dialect, between=[STRANGE[dialect][0]])
    assert outcome(dialect, body) == ("COMPLETE", "a", "answer")
    assert judge(dialect, body).turn.unknown_events == 1
    assert outcome(dialect, body, switched(unknown_event="protocol")) == ("PROTOCOL", "a", None)


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if STRANGE[dialect][1]])
def test_error_event(dialect: str) -> None:
    """An error settles in every state: new, open, finished."""
    before, text, after = TEXT[dialect]
    error = STRANGE[dialect][1]
    for events in ([], [*before, text], [*before, text, *after[:-1]]):
        assert outcome(dialect, write(dialect, [*events, error, *after]))[0] == "PROVIDER_ERROR"
    if dialect == "gemini":
        assert outcome(dialect, turn_of(dialect) + sse(error))[0] == "PROVIDER_ERROR"


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if audit.DIALECTS[dialect].starts])
def test_new(dialect: str) -> None:
    """Before its start a turn knows meta and errors alone; a second start is PROTOCOL."""
    before, text, after = TEXT[dialect]
    assert outcome(dialect, write(dialect, [*before[1:], text, *after]))[0] == "PROTOCOL"
    assert outcome(dialect, write(dialect, [before[0], *before, text, *after]))[0] == "PROTOCOL"
    assert outcome(dialect, write(dialect, [STRANGE[dialect][0], *before, text, *after]))[0] == "COMPLETE"
    assert outcome(dialect, write(dialect, after[-1:]))[0] == "PROTOCOL"


BLOCKS = ["openai-responses", "anthropic", "bedrock", "cohere"]


@pytest.mark.parametrize("dialect", BLOCKS)
def test_blocks(dialect: str) -> None:
    """Close without open, reopen, content after close, finish with an open block."""
    before, text, after = TEXT[dialect]
    start, close, finish = before[:1], after[0], after[1:]
    assert outcome(dialect, write(dialect, [*start, close]))[0] == "PROTOCOL"
    assert outcome(dialect, write(dialect, [*before, text, close, close]))[0] == "PROTOCOL"
    assert outcome(dialect, write(dialect, [*before, text, close, text])) == ("PROTOCOL", "a", None)
    assert outcome(dialect, write(dialect, [*before, text, *finish])) == ("PROTOCOL", "a", None)
    for between in ([], [close]):
        assert outcome(dialect, write(dialect, [*before, text, *between, before[1], close, *finish]))[0] == "PROTOCOL"


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "cohere"])
def test_text_needs_an_open_block(dialect: str) -> None:
    """Nothing but a start opens a block."""
    before, text, after = TEXT[dialect]
    assert outcome(dialect, write(dialect, [before[0], text, *after])) == ("PROTOCOL", "", None)


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "cohere"])
def test_event_field(dialect: str) -> None:
    """An event field must be the type, or `message`, or not there."""
    before, text, after = TEXT[dialect]
    events = [*before, text, *after]
    fields = [(event["type"].encode(), sse(event)) for event in events]
    for name in (None, b"message", b""):
        body = b"".join(b"event: " + (kind if name is None else name) + b"\n" + event for kind, event in fields)
        assert outcome(dialect, body)[0] == "COMPLETE"
    assert outcome(dialect, b"event: ping\n" + fields[0][1])[0] == "PROTOCOL"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unlisted_reason(dialect: str) -> None:
    """A reason that is not in the allow-list is no success."""
    rules = {dialect: STRICT.dialects[dialect]._replace(reasons={})}
    contract = STRICT._replace(dialects=STRICT.dialects | rules)
    assert outcome(dialect, turn_of(dialect), contract) == ("UNSUPPORTED_OUTCOME", "a", None)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("truncated", "INCOMPLETE_FINISH"),
        ("filtered", "INCOMPLETE_FINISH"),
        ("paused", "INCOMPLETE_FINISH"),
        ("error", "PROVIDER_ERROR"),
        ("tools", "PROTOCOL"),
    ],
)
def test_classes(dialect: str, ending: str, expected: str) -> None:
    """What a class of ending makes of an answer without calls."""
    rules = STRICT.dialects[dialect]
    rules = rules._replace(reasons=dict.fromkeys(rules.reasons, ending))
    contract = STRICT._replace(dialects={dialect: rules})
    found = outcome(dialect, turn_of(dialect), contract)
    assert found == (expected, "a", None if ending == "tools" else ending)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cut_in_the_last_event(dialect: str) -> None:
    """The last event is discarded where the end cuts it."""
    body = turn_of(dialect)
    assert outcome(dialect, body[:-1])[0] == "INCOMPLETE_STREAM"
    if dialect not in ("bedrock", "gemini"):
        contract = switched(last_event="dispatch")
        reading = judge(dialect, body[: -1 if dialect == "ollama" else -2], contract)
        assert (reading.outcome, reading.settled_at) == ("COMPLETE", None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_required(dialect: str) -> None:
    """A completion without usage is incomplete under that switch."""
    assert outcome(dialect, turn_of(dialect), switched(usage="required")) == ("INCOMPLETE_STREAM", "a", None)


@pytest.mark.parametrize(
    ("dialect", "event"),
    [
        ("openai-chat", {"choices": [], "usage": {"total_tokens": 4}}),
        ("mistral", {"choices": [], "usage": {}}),
        ("gemini", {"usageMetadata": {}}),
        ("bedrock", ("metadata", {"usage": {}})),
        ("anthropic", {"type": "message_delta", "delta": {}, "usage": {}}),
    ],
)
def test_usage(dialect: str, event: Any) -> None:
    """Usage in an event of its own, before the finish."""
    assert outcome(dialect, turn_of(dialect, between=[event]), switched(usage="required"))[0] == "COMPLETE"


@pytest.mark.parametrize("name", ["oai_chat_usage.sse", "oai_resp_text.sse", "ant_text.sse", "gem_text.sse",
                                  "mis_text.sse", "coh_text.sse", "oll_text.ndjson", "or_ok.sse"])  # fmt: skip
def test_usage_of_examples(name: str) -> None:
    """Usage where providers send it: with the finish, after it, beside it."""
    body = (BODIES / name).read_bytes()
    assert outcome(dialect_of(name), body, switched(usage="required"))[0] == "COMPLETE"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_output_limit(dialect: str) -> None:
    """Text counts; exactly the limit passes."""
    assert outcome(dialect, turn_of(dialect, 3), limited(output_utf16=3))[0] == "COMPLETE"
    assert outcome(dialect, turn_of(dialect, 3), limited(output_utf16=2)) == ("LIMIT", "aa", None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cancel(dialect: str) -> None:
    """Cancelled from the preview."""
    assert outcome(dialect, turn_of(dialect, 3), cancel_after=2) == ("CANCELLED", "aa", None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_events_limit(dialect: str) -> None:
    """The event that makes too many is not looked at."""
    body = turn_of(dialect)
    count = len(judge(dialect, body).steps)
    assert outcome(dialect, body, limited(events=count))[0] == "COMPLETE"
    reading = judge(dialect, body, limited(events=count - 1))
    assert (reading.outcome, reading.settled_at, len(reading.steps)) == ("LIMIT", len(body), count - 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_object(dialect: str) -> None:
    """An event must hold a JSON object, strictly."""
    start = TEXT[dialect][0][:1]
    for text, expected in (
        ("[]", "PROTOCOL"),
        ("1", "PROTOCOL"),
        ("{", "INVALID_JSON"),
        ('{"a":1,"a":1}', "INVALID_JSON"),
    ):
        raw = text.encode()
        event = {"bedrock": named_frame("metadata", raw), "ollama": raw + b"\n"}.get(dialect, sse(text))
        assert outcome(dialect, write(dialect, start) + event)[0] == expected


# ----------------------------------------------------------------------------------------------------
# The end
# ----------------------------------------------------------------------------------------------------


def case(dialect: str, body: bytes, **changes: Any) -> audit.Case:
    """A case that serves `body` at once, as its dialect asks."""
    whole = audit.Case(
        title="", dialect=dialect, read_cap=7, read_timeout_ms=1000, cancel_after=None, status=200,
        content_type=STRICT.dialects[dialect].media_type, framing="chunked", chunk_ends=[], body=body,
        script=[("send_bytes", len(body))], ending="complete",
    )  # fmt: skip
    return whole._replace(**changes)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reads(dialect: str) -> None:
    """A terminal event needs no read that meets the end; a closed framing is that read."""
    body = turn_of(dialect)
    closed = dialect == "gemini"
    derived = audit.derive(case(dialect, body), STRICT)
    assert (derived.outcome, derived.committed, derived.consumed_bytes) == ("COMPLETE", True, len(body))
    assert derived.reads == -(-len(body) // 7) + closed
    assert derived.transport_end == ("eof" if closed else "left")


@pytest.mark.parametrize(
    ("framing", "ending", "strict", "compat"),
    [
        ("chunked", "complete", "COMPLETE", "COMPLETE"),
        ("content-length", "complete", "COMPLETE", "COMPLETE"),
        ("close", "complete", "INCOMPLETE_STREAM", "COMPLETE"),
        ("close", "fin", "INCOMPLETE_STREAM", "COMPLETE"),
        ("chunked", "fin", "INCOMPLETE_STREAM", "INCOMPLETE_STREAM"),
        ("content-length", "short-length", "INCOMPLETE_STREAM", "INCOMPLETE_STREAM"),
        ("chunked", "reset", "INCOMPLETE_STREAM", "INCOMPLETE_STREAM"),
        ("close", "reset", "INCOMPLETE_STREAM", "INCOMPLETE_STREAM"),
        ("chunked", "bad-chunk", "INCOMPLETE_STREAM", "INCOMPLETE_STREAM"),
        ("chunked", "stall", "READ_TIMEOUT", "READ_TIMEOUT"),
    ],
)
def test_closed_framing(framing: str, ending: str, strict: str, compat: str) -> None:
    """Where the end is the terminal, only a closed framing is one; of a closed connection contracts differ."""
    told = case("gemini", turn_of("gemini"), framing=framing, ending=ending)
    for contract, expected in ((STRICT, strict), (COMPAT, compat)):
        derived = audit.derive(told, contract)
        assert (derived.outcome, derived.preview) == (expected, "a")
        assert (derived.finish_reason, derived.ending) == ("STOP", "answer" if expected == "COMPLETE" else None)
        assert derived.committed is (expected == "COMPLETE")


def test_finish_without_terminal() -> None:
    """compat/1 takes a finish and a clean end for enough, also where closing is the framing."""
    body = sse(say("a"), STOP)
    for framing in audit.FRAMINGS:
        assert outcome("openai-chat", body, framing=framing) == ("INCOMPLETE_STREAM", "a", None)
        assert outcome("openai-chat", body, COMPAT, framing=framing) == ("COMPLETE", "a", "answer")
    for end in ("short-body", "reset", "bad-framing", "READ_TIMEOUT", "DEADLINE"):
        assert outcome("openai-chat", body, COMPAT, end=end)[0] != "COMPLETE"


def test_end_of_a_bad_call() -> None:
    """The completion at the end asks for the same as any other."""
    body = sse(tool({"index": 0, "function": {"name": "f", "arguments": "{"}}), choice(None, "tool_calls"))
    assert outcome("openai-chat", body, COMPAT)[0] == "INVALID_JSON"
    assert judge("openai-chat", body, COMPAT).settled_at is None


def test_terminal_without_finish() -> None:
    """compat/1 takes [DONE] alone, unless some candidate has finished; class by what there was."""
    chat = "openai-chat"
    assert outcome(chat, sse(say("a"), "[DONE]")) == ("PROTOCOL", "a", None)
    assert outcome(chat, sse(say("a"), "[DONE]"), COMPAT) == ("COMPLETE", "a", "answer")
    assert outcome(chat, sse("[DONE]"), COMPAT)[0] == "UNSUPPORTED_OUTCOME"
    call = tool({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}})
    assert outcome(chat, sse(say("a"), call, "[DONE]"), COMPAT) == ("COMPLETE", "a", "tools")
    refused = choice({"refusal": "no"})
    assert outcome(chat, sse(say("a"), refused, "[DONE]"), COMPAT) == ("INCOMPLETE_FINISH", "a", "filtered")
    both = sse(say("a"), say("b", 1), choice(None, "stop"), "[DONE]")
    assert outcome(chat, both, COMPAT) == ("PROTOCOL", "a", None)


def test_terminal_with_an_open_block() -> None:
    """An open block makes a terminal event PROTOCOL under every contract."""
    before, text, after = TEXT["anthropic"]
    body = sse(*before, text, {"type": "message_stop"})
    assert outcome("anthropic", body, COMPAT)[0] == "PROTOCOL"
    assert outcome("anthropic", sse(*before, text, after[0], after[2]), COMPAT) == ("COMPLETE", "a", "answer")


# ----------------------------------------------------------------------------------------------------
# Finish and candidates
# ----------------------------------------------------------------------------------------------------


def test_repeated_finish() -> None:
    """An equal reason is meta under `same`; another never."""
    same = sse(say("a"), STOP, STOP, "[DONE]")
    other = sse(say("a"), STOP, choice(None, "length"), "[DONE]")
    assert outcome("openai-chat", same) == ("PROTOCOL", "a", None)
    assert outcome("openai-chat", same, COMPAT) == ("COMPLETE", "a", "answer")
    for contract in (STRICT, COMPAT):
        assert outcome("openai-chat", other, contract)[0] == "PROTOCOL"
        assert judge("openai-chat", other, contract).turn.reason == "length"


def test_late_filter() -> None:
    """A filter after the finish, as Azure sends it, overrides the answer."""
    body = sse(say("a"), STOP, {"choices": [{"index": 0, "finish_reason": "content_filter"}]}, "[DONE]")
    for contract in (STRICT, COMPAT):
        assert outcome("openai-chat", body, contract) == ("INCOMPLETE_FINISH", "a", "filtered")
    assert outcome("openai-chat", body, switched(late_filter="protocol"))[0] == "PROTOCOL"
    gemini = turn_of("gemini") + sse({"promptFeedback": {"blockReason": "OTHER"}, "candidates": 7})
    assert outcome("gemini", gemini) == ("INCOMPLETE_FINISH", "a", "filtered")


def test_two_candidates() -> None:
    """Every candidate seen must finish; the preview is that of candidate 0."""
    chat = "openai-chat"
    both = [say("a"), say("b", 1), choice(None, "stop", 1)]
    assert outcome(chat, sse(*both, STOP, "[DONE]")) == ("COMPLETE", "a", "answer")
    assert outcome(chat, sse(*both, "[DONE]"))[0] == "PROTOCOL"
    assert outcome(chat, sse(*both), COMPAT)[0] == "INCOMPLETE_STREAM"
    assert outcome(chat, sse(*both, say("c", 1))) == ("PROTOCOL", "a", None)
    assert outcome(chat, sse(*both, say("c"), STOP, "[DONE]")) == ("COMPLETE", "ac", "answer")
    assert outcome(chat, sse(*both, STOP, "[DONE]"), switched(candidates="one")) == ("PROTOCOL", "a", None)
    one = {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {}}]}
    assert outcome(chat, sse(one), switched(candidates="one"))[:2] == ("PROTOCOL", "")
    assert outcome(chat, sse(one, STOP, "[DONE]"))[0] == "COMPLETE"


def test_candidate_0_is_not_there() -> None:
    """Text of another candidate is no answer."""
    body = sse(say("b", 1), choice(None, "stop", 1), "[DONE]")
    assert outcome("openai-chat", body) == ("UNSUPPORTED_OUTCOME", "", None)


def test_a_candidate_truncated() -> None:
    """The first candidate that ends badly settles the turn."""
    body = sse(say("a"), say("b", 1), choice(None, "stop"), choice(None, "length", 1), "[DONE]")
    assert outcome("openai-chat", body) == ("INCOMPLETE_FINISH", "a", "truncated")
    assert judge("openai-chat", body).turn.reason == "stop"


def test_candidate_after_all_have_finished() -> None:
    """In the state finished there is no more content, also of a new candidate; but there may be a finish."""
    assert outcome("openai-chat", sse(say("a"), STOP, say("b", 1)))[0] == "PROTOCOL"
    assert outcome("openai-chat", sse(say("a"), STOP, choice(None, "stop", 1), "[DONE]"))[0] == "COMPLETE"


def test_whole_events() -> None:
    """An event that is not allowed takes no effect, its text neither."""
    event = {"choices": [{"index": 0, "delta": {"content": "a", "tool_calls": []}}]}
    assert outcome("openai-chat", sse(event), only_answers("openai-chat")) == ("PROTOCOL", "", None)
    assert outcome("openai-chat", sse({"choices": [say("a")["choices"][0], 7]})) == ("PROTOCOL", "", None)


def test_refusal_and_reasoning() -> None:
    """Both are output and no text; content of a finished candidate is PROTOCOL."""
    thought = choice({"reasoning_content": "x", "reasoning": "y"})
    assert outcome("openai-chat", sse(thought, say("a"), STOP, "[DONE]")) == ("COMPLETE", "a", "answer")
    assert outcome("openai-chat", sse(thought, STOP, "[DONE]"))[0] == "UNSUPPORTED_OUTCOME"
    assert outcome("openai-chat", sse(thought, say("a"), STOP), limited(output_utf16=2))[:2] == ("LIMIT", "")
    assert outcome("openai-chat", sse(say("a"), STOP, thought))[0] == "PROTOCOL"
    assert outcome("openai-chat", sse(choice({"refusal": "no"})), only_answers("openai-chat"))[0] == "PROTOCOL"
    assert outcome("openai-chat", sse(choice({"refusal": ""}), say("a"), STOP, "[DONE]"))[0] == "COMPLETE"


def test_refusal_of_another_candidate() -> None:
    """Only the refusal of a candidate filters it."""
    other = choice({"refusal": "no"}, index=1)
    assert outcome("openai-chat", sse(say("a"), other, STOP, "[DONE]"))[0] == "PROTOCOL"  # 1 is not finished
    body = sse(say("a"), other, STOP, choice(None, "stop", 1), "[DONE]")
    assert outcome("openai-chat", body) == ("INCOMPLETE_FINISH", "a", "filtered")


# ----------------------------------------------------------------------------------------------------
# Tools
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["{}", ' {"a":[1,2.5,{"b":null}]}\n'])
def test_arguments(arguments: str) -> None:
    """Arguments are kept as the text that was sent."""
    assert calls("openai-chat", chat_call(arguments)) == [("c", "f", arguments)]


@pytest.mark.parametrize(
    "arguments",
    ["", None, "{", "[]", "1", "null", '"{}"', '{"a":1,"a":2}', "{}{}", '{"a":NaN}', '{"a":"\\ud800"}', "{'a':1}"],
)
def test_bad_arguments(arguments: str | None) -> None:
    """Arguments must be one strict JSON object at the completion, not before."""
    body = chat_call(arguments)
    assert judge("openai-chat", body).settled_at == len(body)
    for contract in (STRICT, COMPAT):
        assert outcome("openai-chat", body, contract) == ("INVALID_JSON", "", None)


def test_arguments_depth() -> None:
    """Arguments have the depth of the contract."""
    deep = '{"a":' * 64 + "1" + "}" * 64
    assert outcome("openai-chat", chat_call(deep))[0] == "COMPLETE"
    assert outcome("openai-chat", chat_call('{"a":' + deep + "}"))[0] == "INVALID_JSON"


@pytest.mark.parametrize("name", [None, ""])
def test_call_without_a_name(name: str | None) -> None:
    """A call nobody could dispatch."""
    assert outcome("openai-chat", chat_call("{}", name))[0] == "INVALID_JSON"


def test_fragments() -> None:
    """Calls are told apart by their index; id and name are set once."""
    a = {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a'}}
    b = {"index": 1, "id": "y", "function": {"name": "g", "arguments": "{}"}}
    end = [choice(None, "tool_calls"), "[DONE]"]
    rest = {"index": 0, "function": {"arguments": '":1}'}}
    assert calls("openai-chat", sse(tool(a), tool(b), tool(rest), *end)) == [("x", "f", '{"a":1}'), ("y", "g", "{}")]
    again = {**rest, "id": "x", "function": {"name": "f", "arguments": '":1}'}}
    assert calls("openai-chat", sse(tool(a), tool(again), *end)) == [("x", "f", '{"a":1}')]
    late = {"index": 2, "function": {"arguments": "{"}}
    named = {"index": 2, "id": "z", "function": {"name": "h", "arguments": "}"}}
    assert calls("openai-chat", sse(tool(late), tool(named), *end)) == [("z", "h", "{}")]
    for change in ({"id": "z"}, {"function": {"name": "g"}}, {"id": ""}):
        assert outcome("openai-chat", sse(tool(a), tool({**rest, **change})))[0] == "PROTOCOL"


def test_function_call() -> None:
    """The older member is one call without an id."""
    first = choice({"function_call": {"name": "f", "arguments": "{"}})
    body = sse(first, choice({"function_call": {"arguments": "}"}}, "function_call"), "[DONE]")
    assert calls("openai-chat", body) == [(None, "f", "{}")]


def test_stop_with_a_call() -> None:
    """An answer with a call is of the class tools; tools without a call are PROTOCOL."""
    call = tool({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}})
    assert outcome("openai-chat", sse(say("a"), call, STOP, "[DONE]")) == ("COMPLETE", "a", "tools")
    assert outcome("openai-chat", sse(say("a"), choice(None, "tool_calls"), "[DONE]")) == ("PROTOCOL", "a", None)
    both = sse(call, say("b", 1), STOP, choice(None, "tool_calls", 1))
    assert outcome("openai-chat", both)[0] == "PROTOCOL"
    refused = sse(call, choice({"refusal": "no"}), STOP, "[DONE]")
    assert outcome("openai-chat", refused) == ("INCOMPLETE_FINISH", "", "filtered")


def test_empty_list_of_calls() -> None:
    """It adds nothing and is a tool signal."""
    empty = choice({"tool_calls": []})
    assert outcome("openai-chat", sse(empty, say("a"), STOP, "[DONE]")) == ("COMPLETE", "a", "answer")
    assert outcome("openai-chat", sse(empty, choice(None, "tool_calls")))[0] == "PROTOCOL"
    assert outcome("openai-chat", sse(say("a"), STOP, empty))[0] == "PROTOCOL"
    assert outcome("openai-chat", sse(empty, say("a")), only_answers("openai-chat"))[0] == "PROTOCOL"


def test_results() -> None:
    """A class that is not among the results."""
    rules = {"openai-chat": STRICT.dialects["openai-chat"]._replace(results=["tools"])}
    body = sse(say("a"), STOP, "[DONE]")
    assert outcome("openai-chat", body, STRICT._replace(dialects=rules)) == ("UNSUPPORTED_OUTCOME", "a", None)


def test_arguments_count() -> None:
    """Names and ids are no output, arguments are."""
    assert outcome("openai-chat", chat_call("{}"), limited(output_utf16=2))[0] == "COMPLETE"
    assert outcome("openai-chat", chat_call("{ }"), limited(output_utf16=2))[0] == "LIMIT"


def test_a_fragment_that_is_too_long_opens_no_call() -> None:
    """It is not added, and neither is the call whose first signal it would have been, nor a wrong id in it heard."""
    first, other = ({"index": 0, "id": name, "function": {"name": "f", "arguments": "{}"}} for name in ("c", "d"))
    reading = judge("openai-chat", sse(tool(first)), limited(output_utf16=1))
    assert (reading.outcome, reading.turn.calls) == ("LIMIT", {})
    assert outcome("openai-chat", sse(tool(first), tool(other)), limited(output_utf16=3))[0] == "LIMIT"


def test_a_call_that_gets_another_id_takes_no_name() -> None:
    """What offends takes no effect: the name beside another id is not the call's."""
    named = {"index": 0, "id": "d", "function": {"name": "f"}}
    reading = judge("openai-chat", sse(tool({"index": 0, "id": "c"}), tool(named)))
    assert (reading.outcome, [(call.id, call.name) for call in reading.turn.calls.values()]) == (
        "PROTOCOL",
        [("c", None)],
    )


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": {}},
        {"tool_calls": [7]},
        {"tool_calls": [{}]},
        {"tool_calls": [{"index": -1}]},
        {"tool_calls": [{"index": True}]},
        {"tool_calls": [{"index": 0, "id": 1}]},
        {"tool_calls": [{"index": 0, "function": "f"}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": {}}}]},
        {"tool_calls": [{"index": 0, "function": {"name": 1}}]},
        {"function_call": []},
        {"function_call": {"arguments": 1}},
        {"reasoning_content": 1},
        {"reasoning": {}},
        {"content": [{"type": "text", "text": "a"}]},
        {"role": "user"},
    ],
)
def test_malformed_delta(delta: dict[str, Any]) -> None:
    """What is there must be of its type."""
    assert outcome("openai-chat", sse(choice(delta)))[0] == "PROTOCOL"


# ----------------------------------------------------------------------------------------------------
# What single dialects have of their own
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_flat_errors(dialect: str) -> None:
    """An error may be an object of that name, or an event of that type; its data is JSON all the same."""
    for event in (sse({"object": "error", "message": "x"}), b"event: error\n" + sse({"message": "x", "choices": 7})):
        assert outcome(dialect, sse(say("a")) + event) == ("PROVIDER_ERROR", "a", "error")
    assert outcome(dialect, b"event: error\n" + sse("boom"))[0] == "INVALID_JSON"
    assert outcome(dialect, b"event: later\n" + sse({"object": "later"}, say("a"), STOP, "[DONE]"))[0] == "COMPLETE"


def test_mistral_content() -> None:
    """Content may be a list; thinking is no text, other parts have no effect."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "reference"}]},
        {"type": "text", "text": "a"},
        {"type": "image_url"},
        {"type": "text", "text": "b"},
    ]
    body = sse(choice({"content": parts}), STOP, "[DONE]")
    assert outcome("mistral", body) == ("COMPLETE", "ab", "answer")
    assert outcome("mistral", body, limited(output_utf16=3))[0] == "LIMIT"
    bad: list[Any] = [7, {}, {"type": "text"}, {"type": "thinking"}, {"type": "thinking", "thinking": [{"text": 1}]}]
    for part in bad:
        assert outcome("mistral", sse(choice({"content": [part]})))[0] == "PROTOCOL"


def test_mistral_calls() -> None:
    """Arguments may be an object; a call without an index has its position."""
    whole = {"id": "a", "function": {"name": "f", "arguments": {"b": 1, "a": "ä"}}}
    other = {"id": "b", "function": {"name": "g", "arguments": "{}"}}
    body = sse(choice({"tool_calls": [whole, other]}, "tool_calls"), "[DONE]")
    assert calls("mistral", body) == [("a", "f", '{"a":"\\u00e4","b":1}'), ("b", "g", "{}")]
    assert outcome("openai-chat", body)[0] == "PROTOCOL"
    assert outcome("mistral", sse(tool({"function": {"name": "f", "arguments": []}})))[0] == "PROTOCOL"
    assert outcome("mistral", sse(say("a"), choice(None, "error"))) == ("PROVIDER_ERROR", "a", "error")


def item(index: int, **members: Any) -> dict[str, Any]:
    """An item that opens."""
    return {"type": "response.output_item.added", "output_index": index, "item": members}


def closed(index: int, status: str | None = "completed") -> dict[str, Any]:
    """An item that is done."""
    return {"type": "response.output_item.done", "output_index": index, "item": {"status": status}}


def response(kind: str, **members: Any) -> dict[str, Any]:
    """A terminal event."""
    return {"type": "response." + kind, "response": {"status": kind, **members}}


CREATED = {"type": "response.created", "response": {}}


def test_responses_calls() -> None:
    """Function calls are JSON, custom calls are free text; both may begin in the item."""
    body = sse(
        CREATED,
        item(0, type="function_call", call_id="a", name="f", arguments="{"),
        item(1, type="custom_tool_call", call_id="b", name="g", input="free "),
        {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": "text {"},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "}"},
        closed(1),
        closed(0, None),
        response("completed"),
    )
    assert calls("openai-responses", body) == [("a", "f", "{}"), ("b", "g", "free text {")]
    assert outcome("openai-responses", body, only_answers("openai-responses"))[0] == "PROTOCOL"
    bare = sse(CREATED, item(0, type="custom_tool_call", call_id="b"), closed(0), response("completed"))
    assert outcome("openai-responses", bare)[0] == "INVALID_JSON"


def test_responses_ends() -> None:
    """The status must be that of the event; a reason that is not there is `incomplete`."""
    text = {"type": "response.output_text.delta", "output_index": 0, "delta": "a"}
    start = [CREATED, item(0, type="message"), text, closed(0, "incomplete")]

    def ends(*events: Any) -> tuple[str, str, str | None]:
        return outcome("openai-responses", sse(*start, *events))

    assert ends(response("incomplete", incomplete_details={"reason": "content_filter"}))[2] == "filtered"
    assert ends(response("incomplete", incomplete_details={"reason": "steered"}))[2] == "paused"
    for details in (None, {}, {"reason": None}):
        assert ends(response("incomplete", incomplete_details=details)) == ("UNSUPPORTED_OUTCOME", "a", None)
    assert ends(response("incomplete", incomplete_details=7))[0] == "PROTOCOL"
    assert ends({"type": "response.completed", "response": {"status": "incomplete"}})[0] == "PROTOCOL"
    assert ends({"type": "response.completed", "response": {}})[0] == "PROTOCOL"
    assert ends({"type": "response.failed"}) == ("PROVIDER_ERROR", "a", "error")
    assert ends("[DONE]")[0] == "INCOMPLETE_STREAM"
    assert ends(response("completed")) == ("PROTOCOL", "a", None)  # an item was closed as incomplete
    whole = sse(CREATED, item(0, type="message"), {"type": "response.queued"}, text, {"type": "keepalive"}, closed(0))
    assert outcome("openai-responses", whole + sse("[DONE]", response("completed")))[0] == "COMPLETE"
    assert outcome("openai-responses", sse(CREATED, item(0, type="message"), closed(0, "failed")))[0] == "PROTOCOL"


def test_responses_call_closed_as_incomplete() -> None:
    """A call that was cut is none, whatever the response says afterwards."""
    call = item(0, type="function_call", call_id="a", name="f", arguments="{}")
    assert (
        outcome("openai-responses", sse(CREATED, call, closed(0, "incomplete"), response("completed")))[0] == "PROTOCOL"
    )
    refused = {"type": "response.refusal.delta", "output_index": 0, "delta": "no"}
    body = sse(CREATED, item(0, type="message"), refused, closed(0, "incomplete"), response("completed"))
    assert outcome("openai-responses", body) == ("INCOMPLETE_FINISH", "", "filtered")


def test_responses_refusal() -> None:
    """A refusal makes a completed response filtered."""
    refusal = {"type": "response.refusal.delta", "output_index": 0, "delta": "no"}
    body = sse(CREATED, item(0, type="message"), refusal, closed(0), response("completed"))
    assert outcome("openai-responses", body) == ("INCOMPLETE_FINISH", "", "filtered")


def block(index: int, **members: Any) -> dict[str, Any]:
    """A block that opens."""
    return {"type": "content_block_start", "index": index, "content_block": members}


def block_delta(index: int, kind: str, **members: Any) -> dict[str, Any]:
    """A delta in a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def block_stop(index: int) -> dict[str, Any]:
    """A block that closes."""
    return {"type": "content_block_stop", "index": index}


def anthropic(*events: Any, reason: str = "end_turn") -> bytes:
    """A whole message."""
    start = {"type": "message_start", "message": {}}
    finish = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return sse(start, *events, finish, {"type": "message_stop"})


def test_anthropic_empty_arguments() -> None:
    """A call without any non-empty fragment has the arguments {}."""
    use = block(1, type="tool_use", id="t", name="f", input={})
    for fragments in ([], [""], ["", ""], ["{", "}"]):
        deltas = [block_delta(1, "input_json_delta", partial_json=fragment) for fragment in fragments]
        body = anthropic(use, *deltas, block_stop(1), reason="tool_use")
        assert calls("anthropic", body) == [("t", "f", "{}")]
    cut = anthropic(use, block_delta(1, "input_json_delta", partial_json='{"a"'), block_stop(1), reason="tool_use")
    assert outcome("anthropic", cut) == ("INVALID_JSON", "", None)


def test_anthropic_input_of_the_server() -> None:
    """Input of another block than tool_use has no effect; of a block that is not open it is PROTOCOL."""
    delta = block_delta(0, "input_json_delta", partial_json="{")
    text = [block(1, type="text", text="a"), block_stop(1)]
    body = anthropic(block(0, type="server_tool_use", id="s", name="web"), delta, block_stop(0), *text)
    assert outcome("anthropic", body) == ("COMPLETE", "a", "answer")
    assert outcome("anthropic", body, only_answers("anthropic"))[0] == "COMPLETE"
    assert outcome("anthropic", anthropic(delta))[0] == "PROTOCOL"
    assert (
        outcome("anthropic", anthropic(block(0, type="tool_use", id="s", name="f"), block_stop(0), delta))[0]
        == "PROTOCOL"
    )


def test_anthropic_deltas() -> None:
    """Thinking is no text; other deltas are unknown and counted."""
    body = anthropic(
        block(0, type="thinking", thinking=""),
        block_delta(0, "thinking_delta", thinking="hm"),
        block_delta(0, "signature_delta", signature="x"),
        block_stop(0),
        block(1, type="text"),
        {"type": "ping"},
        block_delta(1, "text_delta", text="a"),
        block_stop(1),
    )
    reading = judge("anthropic", body)
    assert (reading.outcome, reading.turn.texts, reading.turn.unknown_events) == ("COMPLETE", ["a"], 1)
    assert outcome("anthropic", body, switched(unknown_event="protocol"))[0] == "PROTOCOL"


@pytest.mark.parametrize(
    "event",
    [
        {"index": 0},
        {"type": 7},
        {"type": "message_start"},
        {"type": "content_block_start", "index": -1, "content_block": {"type": "text"}},
        {"type": "content_block_start", "index": 0.0, "content_block": {"type": "text"}},
        {"type": "content_block_start", "content_block": {"type": "text"}},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": 0, "content_block": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "x"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "x"}},
        {"type": "content_block_delta", "index": 9, "delta": {}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta"}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "input_json_delta", "partial_json": {}}},
        {"type": "content_block_stop"},
        {"type": "message_delta"},
        {"type": "message_delta", "delta": {"stop_reason": 1}},
    ],
)
def test_malformed_anthropic(event: dict[str, Any]) -> None:
    """What must be there is there."""
    assert outcome("anthropic", sse({"type": "message_start", "message": {}}, event))[0] == "PROTOCOL"


def test_anthropic_pause() -> None:
    """A pause is no completion and nothing is kept."""
    body = anthropic(block(0, type="text", text="a"), block_stop(0), reason="pause_turn")
    derived = audit.derive(case("anthropic", body), STRICT)
    assert (derived.outcome, derived.ending, derived.committed) == ("INCOMPLETE_FINISH", "paused", False)


def part(*parts: Any, **members: Any) -> dict[str, Any]:
    """An event with one candidate."""
    return {"candidates": [{"content": {"parts": list(parts)}, **members}]}


def test_gemini_parts() -> None:
    """Thoughts are no text; every call is a new one; an empty reason is none."""
    body = sse(
        part({"text": "hm", "thought": True}, {"text": "a", "thought": False}, {"inlineData": {}}, finishReason=""),
        part({"functionCall": {"name": "f", "args": {"b": [1.5], "a": "ä"}, "id": "1"}}),
        part({"functionCall": {"name": "f"}}, {"functionCall": {"name": "g", "args": None}}, finishReason="STOP"),
        {"usageMetadata": {}},
        {"promptFeedback": {}},
    )
    assert calls("gemini", body) == [("1", "f", '{"a":"\\u00e4","b":[1.5]}'), (None, "f", "{}"), (None, "g", "{}")]
    assert outcome("gemini", body)[1] == "a"


@pytest.mark.parametrize("mark", [{"willContinue": True}, {"partialArgs": []}, {"partialArgs": [{}], "args": {}}])
def test_gemini_calls_in_parts(mark: dict[str, Any]) -> None:
    """Arguments in parts must not be taken for whole."""
    assert outcome("gemini", sse(part({"functionCall": {"name": "f", **mark}})))[0] == "PROTOCOL"
    whole = {"name": "f", "willContinue": False, "partialArgs": None}
    assert calls("gemini", sse(part({"functionCall": whole}, finishReason="STOP"))) == [(None, "f", "{}")]


def test_gemini_ends() -> None:
    """Errors are errors although a call was there; [DONE] is no JSON; a reason of another candidate."""
    call = part({"functionCall": {"name": "f", "args": {}}}, finishReason="MALFORMED_FUNCTION_CALL")
    assert outcome("gemini", sse(call)) == ("PROVIDER_ERROR", "", "error")
    assert outcome("gemini", sse(part({"text": "a"}, finishReason="NEW_REASON")))[0] == "UNSUPPORTED_OUTCOME"
    assert outcome("gemini", turn_of("gemini") + sse("[DONE]"))[0] == "INVALID_JSON"
    assert outcome("gemini", sse({"promptFeedback": {"blockReason": "NEW"}}))[0] == "UNSUPPORTED_OUTCOME"
    two = sse(part({"text": "a"}), part({"text": "b"}, index=1), part(finishReason="STOP"))
    assert outcome("gemini", two)[0] == "INCOMPLETE_STREAM"
    assert outcome("gemini", two + sse(part(index=1, finishReason="STOP"))) == ("COMPLETE", "a", "answer")
    assert outcome("gemini", turn_of("gemini") + sse(part({"text": "b"})))[0] == "PROTOCOL"


@pytest.mark.parametrize(
    "event",
    [
        {"candidates": {}},
        {"candidates": [7]},
        {"candidates": [{"index": -1}]},
        {"candidates": [{"content": []}]},
        {"candidates": [{"content": {"parts": {}}}]},
        {"candidates": [{"finishReason": 1}]},
        {"promptFeedback": 1},
        {"promptFeedback": {"blockReason": 1}},
        {"usageMetadata": 1},
        part(7),
        part({"text": 1}),
        part({"functionCall": {}}),
        part({"functionCall": {"name": "f", "args": "{}"}}),
        part({"functionCall": {"name": "f", "id": 1}}),
    ],
)
def test_malformed_gemini(event: dict[str, Any]) -> None:
    """What is there must be of its type."""
    assert outcome("gemini", sse(event))[0] == "PROTOCOL"


def converse(*events: tuple[str, object], reason: str = "end_turn") -> bytes:
    """A whole message."""
    return frames(("messageStart", {"role": "assistant"}), *events, ("messageStop", {"stopReason": reason}))


def converse_delta(index: int, **delta: Any) -> tuple[str, object]:
    """A delta in a block."""
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}


def converse_stop(index: int) -> tuple[str, object]:
    """A block that closes."""
    return "contentBlockStop", {"contentBlockIndex": index}


def converse_tool(index: int) -> tuple[str, object]:
    """A block that is a call."""
    return "contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}


def test_bedrock_blocks() -> None:
    """A first delta opens a block, but for that of a call; an empty text opens one too."""
    body = converse(
        converse_delta(0, reasoningContent={"text": "hm"}),
        converse_delta(0, reasoningContent={"signature": "x"}),
        converse_stop(0),
        converse_delta(1, text=""),
        converse_delta(1, text="a"),
        converse_stop(1),
    )
    assert outcome("bedrock", body) == ("COMPLETE", "a", "answer")
    assert outcome("bedrock", converse(converse_delta(0, text="a")))[0] == "PROTOCOL"
    assert outcome("bedrock", converse(converse_delta(0, text="")))[0] == "PROTOCOL"
    assert outcome("bedrock", converse(converse_delta(0, text=""), converse_stop(0)))[0] == "UNSUPPORTED_OUTCOME"
    closed_again = [converse_delta(0, text="a"), converse_stop(0), converse_delta(0, text="b")]
    assert outcome("bedrock", converse(*closed_again))[:2] == ("PROTOCOL", "a")
    assert outcome("bedrock", converse(converse_delta(0, toolUse={"input": "{}"})))[0] == "PROTOCOL"
    started = [("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {}}}), converse_delta(0, text="a")]
    assert outcome("bedrock", converse(*started, converse_stop(0)))[0] == "COMPLETE"


def test_bedrock_calls() -> None:
    """Fragments join; none at all is {}."""
    pieces = [converse_delta(0, toolUse={"input": piece}) for piece in ('{"a":', "1}")]
    body = converse(converse_tool(0), *pieces, converse_stop(0), reason="tool_use")
    assert calls("bedrock", body) == [("t", "f", '{"a":1}')]
    assert calls("bedrock", converse(converse_tool(0), converse_stop(0), reason="tool_use")) == [("t", "f", "{}")]
    cut = converse(converse_tool(0), pieces[0], converse_stop(0), reason="tool_use")
    assert outcome("bedrock", cut)[0] == "INVALID_JSON"


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("contentBlockStart", {}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {"name": "f"}}}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "f"}}}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": 7}),
        ("contentBlockDelta", {"contentBlockIndex": 0}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": 1}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": "x"}}),
        ("contentBlockStop", {}),
        ("messageStop", {}),
        ("metadata", {"usage": 1}),
    ],
)
def test_malformed_bedrock(kind: str, event: dict[str, Any]) -> None:
    """What must be there is there."""
    assert outcome("bedrock", frames(("messageStart", {}), (kind, event)))[0] == "PROTOCOL"


def test_bedrock_errors() -> None:
    """Exceptions and errors are errors whatever they hold, before the start as well."""
    thrown = text_header(":message-type", "exception") + text_header(":exception-type", "throttlingException")
    failed = text_header(":message-type", "error") + text_header(":error-code", "500")
    for headers in (thrown, failed, text_header(":message-type", "error")):
        for payload in (b"", b"{", b"{}"):
            reading = judge("bedrock", frame(headers, payload))
            assert (reading.outcome, reading.steps[0].signals) == ("PROVIDER_ERROR", ["error"])
    types = [judge("bedrock", frame(h, b"")).steps[0].event.type for h in (thrown, failed)]
    assert types == ["exception/throttlingException", "error/500"]
    assert judge("bedrock", frame(text_header(":message-type", "error"), b"")).steps[0].event.type == "error/"


def cohere(*events: Any, reason: str = "COMPLETE") -> bytes:
    """A whole message."""
    return sse({"type": "message-start"}, *events, {"type": "message-end", "delta": {"finish_reason": reason}})


def cohere_call(kind: str, index: int, **members: Any) -> dict[str, Any]:
    """A piece of a call."""
    return {"type": f"tool-call-{kind}", "index": index, "delta": {"message": {"tool_calls": members}}}


def test_cohere_calls() -> None:
    """Calls are blocks beside those of content; a call needs its arguments."""
    start = cohere_call("start", 0, id="t", function={"name": "f", "arguments": "{"})
    delta, end = cohere_call("delta", 0, function={"arguments": "}"}), {"type": "tool-call-end", "index": 0}
    plan = {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "hm"}}}
    content = {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": "a"}}}}
    body = cohere(plan, content, start, delta, end, {"type": "content-end", "index": 0}, reason="TOOL_CALL")
    assert calls("cohere", body) == [("t", "f", "{}")]
    assert outcome("cohere", body)[1] == "a"
    assert outcome("cohere", cohere(start, end, reason="TOOL_CALL"))[0] == "INVALID_JSON"
    assert outcome("cohere", cohere(start, reason="TOOL_CALL"))[0] == "PROTOCOL"
    assert outcome("cohere", cohere(delta))[0] == "PROTOCOL"
    assert outcome("cohere", cohere(end))[0] == "PROTOCOL"
    assert outcome("cohere", cohere(start, end, start))[0] == "PROTOCOL"


def test_cohere_ends() -> None:
    """[DONE] is nothing; errors are reasons; citations are nothing."""
    body = turn_of("cohere", between=["[DONE]", {"type": "citation-start"}, {"type": "citation-end"}])
    assert outcome("cohere", body)[0] == "COMPLETE"
    before, text, after = TEXT["cohere"]
    for reason in ("ERROR", "TIMEOUT"):
        end = {"type": "message-end", "delta": {"finish_reason": reason, "error": "x"}}
        assert outcome("cohere", sse(*before, text, after[0], end)) == ("PROVIDER_ERROR", "a", "error")
    assert outcome("cohere", sse(*before, text, after[0], {"type": "message-end", "delta": {}}))[0] == "PROTOCOL"


def test_cohere_thinking() -> None:
    """Thinking is no text, in the start of its block neither."""
    thought = {"type": "content-start", "index": 1, "delta": {"message": {"content": {"thinking": "hm"}}}}
    body = turn_of("cohere", between=[thought, {"type": "content-end", "index": 1}])
    assert outcome("cohere", body) == ("COMPLETE", "a", "answer")


def test_ollama_lines() -> None:
    """Calls come whole; done without a reason is no success; everything may be in one line."""
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    one = {
        "message": {"content": "a", "thinking": "hm", "tool_calls": [call, call]},
        "done": True,
        "done_reason": "stop",
    }
    assert calls("ollama", lines(one)) == [(None, "f", '{"a":1}'), (None, "f", '{"a":1}')]
    assert judge("ollama", lines(one)).steps[0].signals == ["reasoning", "text", "tool", "tool", "finish", "done"]
    assert outcome("ollama", lines({"done": True}))[0] == "UNSUPPORTED_OUTCOME"
    assert outcome("ollama", lines({"done": True, "done_reason": "load"}))[0] == "UNSUPPORTED_OUTCOME"
    said = {"message": {"content": "a"}, "done": True, "done_reason": "length"}
    assert outcome("ollama", lines(said)) == ("INCOMPLETE_FINISH", "a", "truncated")
    bad: list[Any] = [
        {"message": {"content": "a"}},
        {"message": {}, "done": None},
        {"done": 1},
        {"message": {"role": "user"}, "done": False},
        {"message": {"tool_calls": [{}]}, "done": False},
        {"message": {"tool_calls": [{"function": {}}]}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "done": False},
        {"done": True, "done_reason": 7},
        {"done": True, "eval_count": "7"},
    ]
    for event in bad:
        assert outcome("ollama", lines(event))[0] == "PROTOCOL"


# ----------------------------------------------------------------------------------------------------
# Framing: lines of JSON
# ----------------------------------------------------------------------------------------------------


def test_ndjson_lines() -> None:
    """CRLF, blank lines, and nothing but LF ends a line."""
    body = turn_of("ollama")
    assert outcome("ollama", body.replace(b"\n", b"\r\n"))[0] == "COMPLETE"
    assert outcome("ollama", b"\n\r\n" + body.replace(b"\n", b"\n\n\r\n"))[0] == "COMPLETE"
    assert outcome("ollama", body.replace(b"\n", b"\r"))[0] == "INCOMPLETE_STREAM"
    assert outcome("ollama", b" \n")[0] == "INVALID_JSON"
    assert outcome("ollama", b"\r\r\n")[0] == "INVALID_JSON"
    assert outcome("ollama", b"\xef\xbb\xbf" + body)[0] == "INVALID_JSON"
    told = lines({"message": {"content": "\u2028\u2029\x85"}, "done": True, "done_reason": "stop"})
    assert outcome("ollama", told) == ("COMPLETE", "\u2028\u2029\x85", "answer")


def test_ndjson_events() -> None:
    """An event is a line, its LF included."""
    first, second = (step.event for step in judge("ollama", b"\n" + turn_of("ollama").replace(b"\n", b"\r\n")).steps)
    assert (first.start, first.type) == (1, "message")
    assert first.end == first.dispatch == second.start
    assert not first.data.endswith("\r")


def test_ndjson_limits() -> None:
    """A line counts its units, its LF not; the length of an event is not looked at."""
    body = turn_of("ollama")
    longest = max(len(line) for line in body.splitlines())
    assert outcome("ollama", body, limited(line_utf16=longest, event_utf16=1))[0] == "COMPLETE"
    reading = judge("ollama", body, limited(line_utf16=longest - 1))
    assert (reading.outcome, reading.settled_at) == ("LIMIT", longest)
    assert outcome("ollama", body, limited(input_utf16=len(body)))[0] == "COMPLETE"
    assert outcome("ollama", body, limited(input_utf16=len(body) - 1)) == ("LIMIT", "a", None)


def test_ndjson_cut_line() -> None:
    """Under `dispatch` the end of the body ends a line; only a clean end does."""
    body = turn_of("ollama")[:-1]
    dispatch = switched(last_event="dispatch")
    derived = audit.derive(case("ollama", body), dispatch)
    assert (derived.outcome, derived.transport_end, derived.reads) == ("COMPLETE", "eof", -(-len(body) // 7) + 1)
    assert derived.steps[-1].event.end == len(body)
    assert outcome("ollama", body, dispatch, end="reset")[0] == "INCOMPLETE_STREAM"
    assert outcome("ollama", body[:-1], dispatch)[0] == "INVALID_JSON"
    assert outcome("ollama", body + b"\r", dispatch)[0] == "COMPLETE"
    assert outcome("ollama", body[: body.index(b"\n")] + b"\r\n", dispatch)[0] == "INCOMPLETE_STREAM"


# ----------------------------------------------------------------------------------------------------
# Framing: event streams, what switches change
# ----------------------------------------------------------------------------------------------------


def test_sse_cut_event() -> None:
    """Under `dispatch` the end of the body ends line and event, wherever it cuts."""
    dispatch = switched(last_event="dispatch")
    body = sse(say("a"), STOP, "[DONE]")
    for tail in (b"", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r"):
        reading = judge("openai-chat", body[:-2] + tail, dispatch)
        at_end = tail not in (b"\n\n", b"\r\r")
        assert (reading.outcome, reading.settled_at is None) == ("COMPLETE", at_end)
        assert reading.steps[-1].event.end <= len(body)
    assert outcome("openai-chat", body[:-3], dispatch)[0] == "INVALID_JSON"
    assert outcome("openai-chat", body[:-2], dispatch, end="short-body")[0] == "INCOMPLETE_STREAM"
    assert outcome("openai-chat", body[:-2], dispatch, end="READ_TIMEOUT")[0] == "READ_TIMEOUT"
    changed = dispatch._replace(limits=STRICT.limits._replace(event_utf16=100))
    reading = judge("openai-chat", sse(say("a")) + b"data: " + b"x" * 101, changed)
    assert (reading.outcome, reading.settled_at) == ("LIMIT", None)


def test_cut_character_is_never_dropped_from_a_whole_line() -> None:
    """A terminal event followed by half a character is not that event."""
    body = sse(say("a"), STOP, "[DONE]")[:-2] + b"\xe4\xbd"
    assert outcome("openai-chat", body, switched(last_event="dispatch"))[0] == "INCOMPLETE_STREAM"
    lenient = switched(COMPAT, last_event="dispatch", finish_without_terminal="incomplete")
    assert outcome("openai-chat", body, lenient)[0] == "INVALID_JSON"


def test_replace() -> None:
    """U+FFFD for every maximal subpart, as the Encoding standard has it; in any line."""
    for raw, text in (
        (b"\xff", "\ufffd"),
        (b"\xe4\xbd", "\ufffd"),
        (b"\xf0\x9f\x8c", "\ufffd"),
        (b"\xe0\x80", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xc3\xc3\xa4", "\ufffdä"),
    ):
        body = sse(say("@")).replace(b"@", raw) + b": \xff\n" + sse(STOP, "[DONE]")
        assert outcome("openai-chat", body, COMPAT) == ("COMPLETE", text, "answer")
        assert outcome("openai-chat", body)[0] == "INVALID_UTF8"
        told = lines({"message": {"content": "@"}, "done": True, "done_reason": "stop"}).replace(b"@", raw)
        assert outcome("ollama", told, COMPAT) == ("COMPLETE", text, "answer")
    assert outcome("openai-chat", sse(say("a")) + b"\xff\n\xe4", COMPAT)[0] == "INCOMPLETE_STREAM"


def test_replaced_characters_count() -> None:
    """A replaced character is one unit; it is there when the byte after it shows it."""
    contract = COMPAT._replace(limits=COMPAT.limits._replace(input_utf16=4))
    for raw, at in ((b"abcd\xff", 5), (b"abcd\xe4\xbd\n", 7), (b"abc\xffx", 5), (b"ab\xff\xe4\xbdx", 6)):
        assert judge("openai-chat", raw, contract).settled_at == at
    assert judge("openai-chat", b"abcd\xe4\xbd", contract).outcome == "INCOMPLETE_STREAM"
    contract = COMPAT._replace(limits=COMPAT.limits._replace(line_utf16=2))
    for raw, at in ((b"\xff\xe4\xbd\nab\xf0\x9f\n", 9), (b"ab\xff", 3), (b"ab\xf0\x9f\xff", 5)):
        assert judge("openai-chat", raw, contract).settled_at == at
        assert judge("ollama", b"\n" + raw.replace(b"\n", b"\n\n"), contract).outcome in ("LIMIT", "INVALID_JSON")


def test_characters_are_those_of_the_decoder() -> None:
    """The expression for one character and Python's decoder divide bytes alike."""
    dice = random.Random(1)
    some = [0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC3, 0xE0, 0xE4, 0xED, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]
    for _ in range(3000):
        raw = bytes(dice.choices(some, k=dice.randrange(12)))
        pieces = [match[0] for match in audit.CHARACTER.finditer(raw)]
        assert b"".join(pieces) == raw
        assert "".join(audit.lossy(piece) for piece in pieces) == audit.lossy(raw)
        assert all(len(audit.lossy(piece)) == 1 for piece in pieces)
        for limit in range(len(raw)):
            over = audit.excess(raw, limit)
            fits = [n for n in range(len(pieces) + 1) if audit.units("".join(map(audit.lossy, pieces[:n]))) <= limit]
            assert (over is None) == (fits[-1] == len(pieces))
            assert over is None or over[0] == len(b"".join(pieces[: fits[-1]]))


# ----------------------------------------------------------------------------------------------------
# Framing: frames with checksums
# ----------------------------------------------------------------------------------------------------

EVENT = text_header(":message-type", "event") + text_header(":event-type", "later")


def settled(body: bytes, contract: audit.Contract = STRICT) -> tuple[str, int | None]:
    """Outcome of frames, and the offset that proves it."""
    reading = judge("bedrock", body, contract)
    return reading.outcome, reading.settled_at


def test_frame_checksums() -> None:
    """A wrong prelude shows with its 12th byte, a wrong message with its last."""
    good = named_frame("messageStart", b"{}")
    for bit in range(32):
        assert settled(good + frame(EVENT, b"{}", prelude_crc=1 << bit)) == ("PROTOCOL", len(good) + 12)
        bad = frame(EVENT, b"{}", message_crc=1 << bit)
        assert settled(good + bad + good) == ("PROTOCOL", len(good) + len(bad))
    assert settled(frame(EVENT, b"{}", prelude_crc=1)[:11]) == ("INCOMPLETE_STREAM", None)
    assert settled(frame(EVENT, b"{}", prelude_crc=1)[:12]) == ("PROTOCOL", 12)


def prelude(size: int, headers: int) -> bytes:
    """A prelude with a good checksum."""
    raw = struct.pack(">II", size, headers)
    return raw + struct.pack(">I", zlib.crc32(raw))


@pytest.mark.parametrize(
    ("size", "headers", "expected"),
    [
        (0, 0, "PROTOCOL"),
        (15, 0, "PROTOCOL"),
        (16, 1, "PROTOCOL"),
        (16, 2**32 - 1, "PROTOCOL"),
        (100, 85, "PROTOCOL"),
        (100, 84, "INCOMPLETE_STREAM"),
        (16, 0, "INCOMPLETE_STREAM"),
        (16 + 131_072, 131_072, "INCOMPLETE_STREAM"),
        (16 + 131_073, 131_073, "LIMIT"),
        (16 + 25_165_824, 0, "INCOMPLETE_STREAM"),
        (16 + 25_165_825, 0, "LIMIT"),
        (2**32 - 1, 0, "LIMIT"),
    ],
)
def test_frame_lengths(size: int, headers: int, expected: str) -> None:
    """Lengths that cannot be, and lengths that are too long."""
    at = None if expected == "INCOMPLETE_STREAM" else 12
    assert settled(prelude(size, headers)) == (expected, at)


def header(name: bytes, kind: int, value: bytes) -> bytes:
    """Any header."""
    return bytes([len(name)]) + name + bytes([kind]) + value


@pytest.mark.parametrize(
    "headers",
    [
        header(b"", 0, b""),
        header(b"\xff", 0, b""),
        header(b"a", 10, b""),
        header(b"a", 255, b""),
        header(b"a", 2, b""),
        header(b"a", 8, b"1234567"),
        header(b"a", 9, b"123456789012345"),
        header(b"a", 6, b"\x00"),
        header(b"a", 6, b"\x00\x05abcd"),
        header(b"a", 7, b"\x00\x01\xff"),
        header(b"a", 7, b"\x00\x02\xc3"),
        b"\x05abc",
        b"\x01",
        b"\x03abc",
        header(b"a", 0, b"") + header(b"a", 1, b""),
    ],
)
def test_malformed_headers(headers: bytes) -> None:
    """A header that is no header is PROTOCOL, with the last byte of its frame."""
    for whole in (EVENT + headers, headers + EVENT, headers):
        body = frame(whole, b"{}")
        assert settled(body) == ("PROTOCOL", len(body))


def test_header_types() -> None:
    """Every type of value is read over; their names are told apart."""
    values = {0: b"", 1: b"", 2: b"1", 3: b"12", 4: b"1234", 5: b"12345678", 6: b"\x00\x02\xff\xff",
              7: b"\x00\x02\xc3\xa4", 8: b"12345678", 9: b"1234567890123456"}  # fmt: skip
    headers = b"".join(header(b"h%d" % kind, kind, value) for kind, value in values.items())
    reading = judge("bedrock", frame(headers + EVENT, "ä".encode() and b"{}"))
    assert reading.outcome == "INCOMPLETE_STREAM"
    assert reading.steps[0].event.type == "event/later"


@pytest.mark.parametrize(
    "headers",
    [
        b"",
        text_header(":message-type", "event"),
        text_header(":message-type", "exception"),
        text_header(":message-type", "later") + text_header(":event-type", "x"),
        text_header(":message-type", "") + text_header("", "x")[:0],
        header(b":message-type", 6, b"\x00\x05event") + text_header(":event-type", "x"),
        text_header(":message-type", "event") + header(b":event-type", 6, b"\x00\x01x"),
        text_header(":message-type", "event") + text_header(":exception-type", "x"),
        text_header(":event-type", "x"),
    ],
)
def test_frames_without_a_name(headers: bytes) -> None:
    """A frame must say what it is."""
    assert settled(frame(headers, b"{}"))[0] == "PROTOCOL"


def test_frame_payload() -> None:
    """UTF-8 under every contract; then its length; then its JSON."""
    bad = frame(EVENT, b'{"a":"\xff"}')
    for contract in (STRICT, COMPAT):
        assert settled(bad, contract) == ("INVALID_UTF8", len(bad))
    assert settled(frame(EVENT, b'{"a":"\xe4"}'))[0] == "INVALID_UTF8"
    body = frame(EVENT, '{"a":"🌱"}'.encode())
    assert settled(body, limited(event_utf16=10))[0] == "INCOMPLETE_STREAM"
    assert settled(body, limited(event_utf16=9)) == ("LIMIT", len(body))
    assert settled(named_frame("messageStart", b""))[0] == "INVALID_JSON"
    assert settled(frame(EVENT, b""))[0] == "INCOMPLETE_STREAM"  # what is unknown is not looked at


def test_frame_offences_in_order() -> None:
    """Checksum, headers, UTF-8, length, name."""
    bad_headers, bad_text = header(b"", 0, b""), b"\xff" * 20
    tight = limited(event_utf16=10)
    assert settled(frame(EVENT, bad_text, message_crc=1), tight)[0] == "PROTOCOL"
    assert settled(frame(bad_headers, bad_text), tight)[0] == "PROTOCOL"
    assert settled(frame(b"", bad_text), tight)[0] == "INVALID_UTF8"
    assert settled(frame(b"", b"x" * 20), tight)[0] == "LIMIT"
    assert settled(frame(b"", b"x"), tight)[0] == "PROTOCOL"


def test_frame_input() -> None:
    """Input counts bytes; the byte that exceeds it dispatches nothing."""
    body = turn_of("bedrock")
    assert settled(body, limited(input_utf16=len(body))) == ("COMPLETE", len(body))
    assert settled(body, limited(input_utf16=len(body) - 1)) == ("LIMIT", len(body))
    assert settled(body + b"x", limited(input_utf16=len(body))) == ("COMPLETE", len(body))
    assert settled(body, limited(input_utf16=5)) == ("LIMIT", 6)


@pytest.mark.parametrize("contract", [STRICT, COMPAT, switched(last_event="dispatch")])
def test_cut_frames(contract: audit.Contract) -> None:
    """A frame that the end cuts is nothing, also where lines are ended by it."""
    body = turn_of("bedrock")
    last = judge("bedrock", body).steps[-1].event.start
    for size in range(last, len(body)):
        assert outcome("bedrock", body[:size], contract) == ("INCOMPLETE_STREAM", "a", None)


def test_frame_events() -> None:
    """Frames follow one another; an event has the text of its payload and its type."""
    body = (BODIES / "bed_text.bin").read_bytes()
    events = [step.event for step in judge("bedrock", body).steps]
    assert [event.type for event in events] == [
        "event/messageStart",
        "event/contentBlockDelta",
        "event/contentBlockStop",
        "event/messageStop",
    ]
    assert events[1].data == '{"contentBlockIndex":0,"delta":{"text":"Hi"}}'
    for event, following in itertools.pairwise(events):
        assert event.end == event.dispatch == following.start


# ----------------------------------------------------------------------------------------------------
# Before the body
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_type(dialect: str) -> None:
    """Another content type is refused, or ignored."""
    told = case(dialect, turn_of(dialect), content_type="text/plain")
    assert audit.derive(told, STRICT).outcome == "CONTENT_TYPE"
    assert audit.derive(told, COMPAT).outcome == "COMPLETE"
    assert audit.derive(told._replace(status=503), COMPAT).outcome == "HTTP_503"


# ----------------------------------------------------------------------------------------------------
# Verdicts
# ----------------------------------------------------------------------------------------------------

EARLIER = [{"role": "user", "content": "earlier"}]
ASKED = {"role": "user", "content": "question"}


def claimed(
    told: audit.Case,
    added: list[dict[str, Any]],
    contract: str = "strict/1",
    aware: bool = True,
    others: tuple[str, ...] = (),
    claim: dict[str, Any] | None = None,
) -> str:
    """The verdict about a claim, where the labels are right."""
    labels = []
    for name in (contract, *others):
        derived = audit.derive(told, CONTRACTS[name])
        label = audit.Label(derived.outcome, derived.preview, derived.committed, "spec", derived.ending)
        labels.append(label)
    names = ("outcome", "finish_reason", "class", "dispatched", "transport_end", "status", "reads",
             "consumed_bytes", "consumed_sha256", "raised")  # fmt: skip
    blank = {**dict.fromkeys(names), **(claim or {})}
    suite = audit.Suite([contract, *others], set(), EARLIER, "question")
    trial = audit.Trial(
        id="s/c@" + contract,
        place="",
        record={"delivered": True, "claim": blank, "no_claim": None, "requests": []},
        volatile=None,
        suite=suite,
        case=told,
        contract=CONTRACTS[contract],
        label=labels[0],
        labels=labels,
        derived=audit.derive(told, CONTRACTS[contract]),
        aware=aware,
        history=[*EARLIER, *added],
        preview=None,
    )
    return audit.verdict_of(trial)[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_verdicts_of_examples(name: str) -> None:
    """Right is AGREE; a kept part of what was refused is FALSE_COMMIT; nothing kept of a good one is the reverse."""
    told = case(dialect_of(name), (BODIES / name).read_bytes())
    derived = audit.derive(told, STRICT)
    answer: dict[str, Any] = {"role": "assistant", "content": derived.preview}
    if derived.ending == "tools":
        answer["tool_calls"] = derived.proposals
    kept, empty = claimed(told, [ASKED, answer]), claimed(told, [])
    expected = ("AGREE", "FALSE_WITHHOLD") if derived.committed else ("FALSE_COMMIT", "AGREE")
    assert (kept, empty) == expected
    assert claimed(told, [ASKED, {"role": "assistant", "content": "other"}]) == "ALTERED"
    assert claimed(told, [] if not derived.committed else [ASKED, answer], claim={"dispatched": 1}) == "FALSE_COMMIT"
    assert claimed(told, [] if not derived.committed else [ASKED, answer], claim={"dispatched": 0}) == "AGREE"


def test_verdict_of_a_class() -> None:
    """A claimed class is judged where the subject knows the contract."""
    told = case("anthropic", (BODIES / "ant_refusal.sse").read_bytes())
    assert claimed(told, [], claim={"class": "filtered"}) == "AGREE"
    assert claimed(told, [], claim={"class": "answer"}) == "MISREPORTED"
    assert claimed(told, [], aware=False, claim={"class": "answer"}) == "AGREE"


def test_verdicts_without_a_contract() -> None:
    """Who was told no contract is held to what all contracts have in common."""
    body = sse(say("a"), STOP)
    told = case("openai-chat", body)
    answer = {"role": "assistant", "content": "a"}
    for contract, other in itertools.permutations(("strict/1", "compat/1")):
        assert claimed(told, [ASKED, answer], contract, False, (other,)) == "NON_STRICT"
        assert claimed(told, [], contract, False, (other,)) == "OVER_STRICT"
    assert claimed(told, [ASKED, answer], "strict/1", True, ("compat/1",)) == "FALSE_COMMIT"
    assert claimed(told, [ASKED, answer], "compat/1", True, ("strict/1",)) == "AGREE"
    for texts, end, kept in ((1, None, "AGREE"), (1, 0, "FALSE_COMMIT")):
        told = case("openai-chat", turn_of("openai-chat", texts, end=end))
        assert claimed(told, [ASKED, answer], "strict/1", False, ("compat/1",)) == kept


def test_verdicts_of_calls() -> None:
    """Kept calls must be those that were sent; a library may spell arguments in another way."""
    told = case("openai-chat", chat_call('{"a": 1}'))

    def kept(aware: bool, **changes: Any) -> str:
        call = {"id": "c", "name": "f", "arguments": '{"a": 1}', **changes}
        return claimed(told, [ASKED, {"role": "assistant", "content": "", "tool_calls": [call]}], aware=aware)

    assert kept(True) == kept(False) == "AGREE"
    assert (kept(True, arguments='{"a":1}'), kept(False, arguments='{"a":1}')) == ("ALTERED", "AGREE")
    for name, value in (("arguments", '{"a":true}'), ("arguments", "{"), ("name", "g"), ("id", None)):
        assert kept(False, **{name: value}) == "ALTERED"
    assert claimed(told, [ASKED, {"role": "assistant", "content": ""}]) == "ALTERED"


def test_claims_hold_calls() -> None:
    """The closed shape of a claimed history."""
    call = {"id": None, "name": "f", "arguments": "{}"}
    assert audit.HISTORY([{"role": "assistant", "content": "", "tool_calls": [call]}]) is None
    changes: list[dict[str, Any]] = [{"id": 1}, {"arguments": {}}, {"more": 1}]
    for change in changes:
        assert audit.HISTORY([{"role": "assistant", "content": "", "tool_calls": [{**call, **change}]}])
    assert audit.MESSAGES([{"role": "assistant", "content": "", "tool_calls": []}])


# ----------------------------------------------------------------------------------------------------
# Time
# ----------------------------------------------------------------------------------------------------

MANY = 20_000
LONG = 1 << 20
# name -> dialect, a body that a careless reading takes quadratic time for
HEAVY: dict[str, tuple[str, Callable[[], bytes]]] = {
    "one long line": ("openai-chat", lambda: sse(say("x" * 4 * LONG), STOP, "[DONE]")),
    "a line that never ends": ("ollama", lambda: b"x" * 4 * LONG),
    "many data lines": ("openai-chat", lambda: b"data:\n" * 10 * MANY + sse(say("a"), STOP, "[DONE]")),
    "many events": ("openai-chat", lambda: sse(say("x")) * MANY + sse(STOP, "[DONE]")),
    "many blank lines": ("openai-chat", lambda: b"\n" * 10 * MANY + sse(say("a"), STOP, "[DONE]")),
    "many fragments": ("openai-chat", lambda: sse(tool({"index": 0, "function": {"arguments": " "}})) * MANY),
    "many calls": ("gemini", lambda: sse(part(*[{"functionCall": {"name": "f"}}] * MANY, finishReason="STOP"))),
    "many candidates": ("openai-chat", lambda: sse(*[say("x", index) for index in range(MANY)])),
    "many blocks": (
        "bedrock",
        lambda: frames(("messageStart", {}), *[converse_delta(index, text="x") for index in range(MANY)]),
    ),
    "one long frame": ("bedrock", lambda: named_frame("later", compact({"a": "x" * 4 * LONG}))),
    "many headers": ("bedrock", lambda: frame(b"".join(header(b"%d" % n, 0, b"") for n in range(15_000)), b"") * 10),
    "long arguments": ("openai-chat", lambda: chat_call('{"a":"' + "\\u00e4" * LONG + '"}')),
    "many brackets": ("openai-chat", lambda: sse("[" * LONG)),
}


@pytest.mark.parametrize("name", HEAVY)
def test_linear(name: str) -> None:
    """Megabytes are judged in seconds."""
    dialect, make = HEAVY[name]
    body = make()
    before = time.process_time()
    judge(dialect, body)
    audit.lenient_text(body, dialect, STRICT.dialects[dialect].framing)
    assert time.process_time() - before < 6


@pytest.mark.parametrize("contract", [STRICT, COMPAT])
@pytest.mark.parametrize("piece", [b"\n", b"x\xff", "ä\n".encode()])
def test_linear_offences(contract: audit.Contract, piece: bytes) -> None:
    """The place of an offence is found in linear time, also among replaced characters."""
    contract = contract._replace(limits=contract.limits._replace(input_utf16=20 * MANY))
    body = piece * 30 * MANY
    before = time.process_time()
    assert judge("openai-chat", body, contract).outcome in ("LIMIT", "INVALID_UTF8")
    assert time.process_time() - before < 6
