"""The auditor's own reading of a body: docs/judging.md under frozen-text/1, fact by fact.

Three sources of truth: the archived facts of the original experiment, its 53 checks of JSON spelling,
and the corner cases below, each written from the text of the two pages in docs/ alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import audit

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"
FROZEN = json.loads((VECTORS / "frozen-22.json").read_text("utf-8"))
SPELLING = json.loads((VECTORS / "json-spelling-53.json").read_text("utf-8"))

FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def delta(text: str, reason: str | None = None) -> bytes:
    """One event with text, spelt as the frozen bodies spell it."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


GOOD = delta("你好，") + delta("Java 🌱") + FINISH + DONE


def contract(**limits: int) -> audit.Contract:
    """The contract frozen-text/1, with some of its limits changed."""
    document = tomllib.loads((ROOT / "cases/contracts/frozen-text-1.toml").read_text("utf-8"))
    return audit.contract_of({**document, "limits": {**document["limits"], **limits}})


def case(body: bytes, **changes: Any) -> audit.Case:
    """A case that serves `body` at once and is read seven bytes at a time."""
    plain = audit.Case(
        title="",
        dialect="openai-chat",
        read_cap=7,
        read_timeout_ms=1000,
        cancel_after=None,
        status=200,
        content_type="text/event-stream",
        framing="chunked",
        chunk_ends=[],
        body=body,
        script=[("send_bytes", len(body))],
        ending="complete",
    )
    return plain._replace(**changes)


def read(body: bytes, limits: dict[str, int] | None = None, **changes: Any) -> audit.Derived:
    """What is right for a body."""
    return audit.derive(case(body, **changes), contract(**(limits or {})))


def outcome(body: bytes, limits: dict[str, int] | None = None, **changes: Any) -> tuple[str, str, int | None]:
    """Outcome, preview and the offset that proves it, which must be the same for every cap."""
    results = [read(body, limits, **changes, read_cap=cap) for cap in (1, 2, 3, 7, 10, 10_000)]
    seen = {(result.outcome, result.preview, result.settled_at) for result in results}
    assert len(seen) == 1
    return seen.pop()


# ----------------------------------------------------------------------------------------------------
# The archived facts
# ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> audit.Archive:
    """The shipped cases, read as an archive holds them."""
    found = audit.Findings()
    archive = audit.scan(str(ROOT / "cases"), found)
    assert found.findings == []
    return archive


@pytest.mark.parametrize("fact", FROZEN["cases"], ids=[fact["id"] for fact in FROZEN["cases"]])
def test_frozen_case(fact: dict[str, Any], shipped: audit.Archive) -> None:
    """Every value derived from a shipped case equals the archived fact."""
    folder = f"frozen/{fact['id']}/"
    loaded = audit.load_case(shipped, folder)
    label = audit.load_label(shipped, folder, "frozen-text/1")
    assert isinstance(loaded, audit.Case)
    assert label is not None
    derived = audit.derive(loaded, contract())
    assert hashlib.sha256(loaded.body).hexdigest() == fact["sha256"]
    assert len(loaded.body) == fact["bytes"]
    assert (loaded.status, loaded.content_type) == (fact["status"], fact["content_type"])
    assert (loaded.chunk_ends, loaded.read_cap) == (fact["http_chunk_offsets"], fact["read_cap"])
    assert loaded.cancel_after == fact.get("cancel_after_utf16_units")
    assert (derived.outcome, derived.preview) == (fact["outcome"], fact["preview"])
    assert (derived.reads, derived.committed) == (fact["reads"], fact["committed"])
    assert 2 + 2 * derived.committed == fact["history_size"]
    assert (label.outcome, label.preview, label.committed) == (
        derived.outcome,
        derived.preview,
        derived.committed,
    )
    assert shipped.found.findings == []


def test_frozen_limits() -> None:
    """The shipped contract has the limits of the archived facts."""
    limits, facts = contract().limits, FROZEN["limits"]
    assert (limits.line_utf16, limits.event_utf16) == (facts["line_utf16_units"], facts["event_utf16_units"])
    assert limits.input_utf16 == facts["input_utf16_units"]
    assert limits.output_utf16 == facts["output_utf16_units"]
    assert (limits.events, limits.json_depth) == (facts["data_events"], facts["json_depth"])
    assert limits.deadline_ms == 1000 * facts["processing_deadline_s"]


def test_pins_are_the_shipped_manifests() -> None:
    """The constants are the digests of the manifests in the checkout."""
    for name, digest in audit.SUITES.items():
        manifest = ROOT / "cases" / name / "manifest-sha256.txt"
        assert hashlib.sha256(manifest.read_bytes()).hexdigest() == digest
    manifest = ROOT / "cases" / "contracts" / "manifest-sha256.txt"
    assert hashlib.sha256(manifest.read_bytes()).hexdigest() == audit.CONTRACTS


# ----------------------------------------------------------------------------------------------------
# JSON spelling
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", SPELLING["refused"], ids=[check["what"] for check in SPELLING["refused"]])
def test_spelling_refused(check: dict[str, str]) -> None:
    """No other spelling of a token is JSON."""
    with pytest.raises(audit.NotStrictError):
        audit.strict_json(check["text"], 16)


@pytest.mark.parametrize("check", SPELLING["accepted"], ids=[check["what"] for check in SPELLING["accepted"]])
def test_spelling_accepted(check: dict[str, str]) -> None:
    """Every spelling that RFC 8259 allows is JSON."""
    assert audit.strict_json(check["text"], 16) == json.loads(check["text"])


def test_spelling_stream() -> None:
    """A string over two data lines holds a raw line feed, which is no JSON."""
    stream = SPELLING["refused_stream"]
    assert outcome(stream["body"].encode())[:2] == (stream["outcome"], stream["preview"])


@pytest.mark.parametrize(
    "document",
    [
        '{"a":{"b":1,"b":2}}',
        '{"a":1,"\\u0061":2}',
        '"\\ud800"',
        '{"\\udc00":1}',
        '["\\udc00\\ud800"]',
        '"\\ud83c\\u0041"',
        "1e309",
        "-1e309",
        "1" + "0" * 309,
        "-1" + "0" * 400,
        "1" * 5000,
        "17976931348623158" + "9" * 292,
        "Infinity",
        "[-Infinity]",
        "\ufeff{}",
        "{}\x0b",
        "{}\u00a0",
        "1 2",
        "",
        '"',
        '"\\',
        "\u0661",
        "1\u0661",
    ],
)
def test_not_strict(document: str) -> None:
    """Duplicate names, lone surrogates, numbers beyond the doubles and foreign white space are refused."""
    with pytest.raises(audit.NotStrictError):
        audit.strict_json(document, 16)


@pytest.mark.parametrize(
    "document",
    [
        '"\\ud83c\\udf31"',
        "1.7976931348623157e308",
        "1e-400",
        "-0",
        "9" * 308,
        "1" * 309,
        "-" + "1" * 309,
        '"\\\\ud800"',
        '{"a":{"a":{}}}',
    ],
)
def test_strict(document: str) -> None:
    """Surrogate pairs, the largest double, underflow to zero and equal names in two objects pass."""
    audit.strict_json(document, 16)


def test_digits_setting() -> None:
    """Large integers are judged alike whatever Python's own limit of digits is."""
    before = sys.get_int_max_str_digits()
    try:
        for digits in (640, 0):
            sys.set_int_max_str_digits(digits)
            assert audit.strict_json("1" * 309, 16) == int("1" * 309)
            with pytest.raises(audit.NotStrictError):
                audit.strict_json("1" * 5000, 16)
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth(opening: str) -> None:
    """The outermost container is depth 1; exactly the limit passes, one more does not."""
    closing = "]" if opening == "[" else "}"
    inner = "" if opening == "[" else "1"
    audit.strict_json(opening * 16 + inner + closing * 16, 16)
    with pytest.raises(audit.NotStrictError):
        audit.strict_json(opening * 17 + inner + closing * 17, 16)


def test_depth_after_a_shallow_part() -> None:
    """What was closed again does not count for what comes after it."""
    audit.strict_json("[[],[],[],[[]]]", 3)
    with pytest.raises(audit.NotStrictError):
        audit.strict_json("[[],[],[],[[[]]]]", 3)


def test_brackets_in_strings() -> None:
    """Brackets inside strings do not nest, after an escaped quote neither."""
    audit.strict_json('["[[[[\\"[[[[{{"]', 1)


def test_no_recursion() -> None:
    """Nesting far beyond Python's recursion limit is refused like any other."""
    with pytest.raises(audit.NotStrictError):
        audit.strict_json("[" * 1_000_000, 16)


# ----------------------------------------------------------------------------------------------------
# UTF-8
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "offence"),
    [
        (b"\xc3\x28", 2),
        (b"\x80", 1),
        (b"\xc0\x80", 1),
        (b"\xc1", 1),
        (b"\xe0\x80", 2),
        (b"\xe0\x9f\xbf", 2),
        (b"\xed\xa0\x80", 2),
        (b"\xe4\xbd\x0a", 3),
        (b"\xf0\x8f", 2),
        (b"\xf0\x9f\x8c\x28", 4),
        (b"\xf4\x90", 2),
        (b"\xf5", 1),
        (b"\xff", 1),
        (b"\xc3\xc3\xa4", 2),
    ],
)
@pytest.mark.parametrize("before", [b"", "ä🌱".encode()])
def test_invalid_utf8(before: bytes, tail: bytes, offence: int) -> None:
    """The offence is at the byte that cannot continue the sequence."""
    assert outcome(before + tail) == ("INVALID_UTF8", "", len(before) + offence)


@pytest.mark.parametrize("tail", [b"\xc3", b"\xe4", b"\xe4\xbd", b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x8c", b"\xed\x9f"])
def test_cut_character(tail: bytes) -> None:
    """A character cut by the end is no offence: the stream is incomplete."""
    assert outcome(delta("a") + tail) == ("INCOMPLETE_STREAM", "a", None)


def test_invalid_utf8_in_comment() -> None:
    """Every byte is checked, also in lines that have no effect."""
    assert outcome(b": \xff\n" + GOOD) == ("INVALID_UTF8", "", 3)
    assert outcome(b"id: \xff\n" + GOOD) == ("INVALID_UTF8", "", 5)


def test_offence_after_settling() -> None:
    """What comes after the event that settles the outcome is not looked at."""
    assert outcome(GOOD + b"\xff") == ("COMPLETE", "你好，Java 🌱", 253)
    assert outcome(b"data: 1\n\n\xff") == ("PROTOCOL", "", 9)


def test_offence_before_settling() -> None:
    """One byte earlier, the offence decides; text that came before stays in the preview."""
    assert outcome(GOOD[:-1] + b"\xff\n") == ("INVALID_UTF8", "你好，Java 🌱", 253)


# ----------------------------------------------------------------------------------------------------
# Lines, fields, events
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends(end: bytes) -> None:
    """LF, CRLF and CR end a line; a CR ends it at once, and settles before its LF."""
    body = GOOD.replace(b"\n", end)
    assert outcome(body) == ("COMPLETE", "你好，Java 🌱", len(body) - (end == b"\r\n"))


def test_mixed_line_ends() -> None:
    """The three line ends mix freely: CR LF is one end, LF CR and CR CR are two."""
    line = GOOD.split(b"\n\n")
    body = line[0] + b"\r\n\r" + line[1] + b"\r\r\n" + line[2] + b"\n\r" + line[3] + b"\r\r"
    assert outcome(body)[:2] == ("COMPLETE", "你好，Java 🌱")


def test_no_other_line_ends() -> None:
    """VT, FF, NEL and the Unicode separators end no line."""
    for character in "\x0b\x0c\x1c\x85\u2028\u2029":
        assert outcome(f"data: 1{character}{character}\n".encode())[0] == "INCOMPLETE_STREAM"


def test_bom() -> None:
    """One U+FEFF at the very start is dropped; a second is part of the first field's name."""
    bom = "\ufeff".encode()
    assert outcome(bom + GOOD)[:2] == ("COMPLETE", "你好，Java 🌱")
    assert outcome(bom + bom + GOOD)[:2] == ("COMPLETE", "Java 🌱")
    assert outcome(b"\n" + bom + GOOD)[:2] == ("COMPLETE", "Java 🌱")


def test_bom_alone_is_a_blank_line() -> None:
    """A line of nothing but the dropped U+FEFF is blank."""
    assert outcome("\ufeff\n".encode() + GOOD)[0] == "COMPLETE"


def test_event_without_data() -> None:
    """Without a data field nothing is dispatched, whatever other fields there are."""
    assert outcome(b"event: ping\n\nid: 5\n\nretry: 1\n\n: c\n\n\n\n" + GOOD)[0] == "COMPLETE"


@pytest.mark.parametrize("line", [b"data", b"data:", b"data: "])
def test_empty_data(line: bytes) -> None:
    """A data field without a value is one, and its event is the empty string, which is no JSON."""
    assert outcome(line + b"\n\n") == ("INVALID_JSON", "", len(line) + 2)


def test_data_without_colon_joins() -> None:
    """A line `data` adds an empty value, joined by LF: white space to JSON, but no longer [DONE]."""
    assert outcome(b"data\n" + GOOD)[0] == "COMPLETE"
    assert outcome(delta("a") + FINISH + b"data\n" + DONE)[0] == "INVALID_JSON"


def test_field_names() -> None:
    """A field is what stands before the first colon, exactly; one leading space alone is dropped."""
    for line in (b" data: 1\n\n", b"Data: 1\n\n", b"data : 1\n\n", b":data: 1\n\n", b"datax\n\n"):
        assert outcome(line + GOOD)[0] == "COMPLETE"
    assert outcome(delta("a") + FINISH + b"data:[DONE]\n\n")[0] == "COMPLETE"
    assert outcome(delta("a") + FINISH + b"data:  [DONE]\n\n")[0] == "INVALID_JSON"
    assert outcome(delta("a") + FINISH + b"data: [DONE] \n\n")[0] == "INVALID_JSON"


def test_last_event_is_discarded() -> None:
    """What no blank line dispatched is discarded at the end of the body."""
    assert outcome(GOOD[:-1]) == ("INCOMPLETE_STREAM", "你好，Java 🌱", None)
    assert outcome(b"data: {oops}\n")[0] == "INCOMPLETE_STREAM"


# ----------------------------------------------------------------------------------------------------
# Limits: exactly the limit passes
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "units"), [("x", 1), ("你", 1), ("🌱", 2)])
def test_line_limit(text: str, units: int) -> None:
    """A line counts its field name in UTF-16 units, not its end; the character that exceeds it offends."""
    line = ": " + text
    body = line.encode() + b"\n\n"
    assert outcome(body, {"line_utf16": 2 + units})[0] == "INCOMPLETE_STREAM"
    assert outcome(body, {"line_utf16": 1 + units}) == ("LIMIT", "", len(line.encode()))


def test_line_limit_before_its_end() -> None:
    """A line that is too long is one before its end has come."""
    assert outcome(b"12345678", {"line_utf16": 5}) == ("LIMIT", "", 6)
    assert outcome(b"12345\xff", {"line_utf16": 5}) == ("INVALID_UTF8", "", 6)
    assert outcome(b"123456\xff", {"line_utf16": 5}) == ("LIMIT", "", 6)


def test_line_limit_and_bom() -> None:
    """The dropped U+FEFF counts for no line, the second one does."""
    bom = "\ufeff".encode()
    assert outcome(bom + b"12345\n", {"line_utf16": 5})[0] == "INCOMPLETE_STREAM"
    assert outcome(bom + bom + b"12345\n", {"line_utf16": 5}) == ("LIMIT", "", 11)


def test_input_limit() -> None:
    """Input counts everything, BOM and line ends included."""
    body = "\ufeff:🌱\r\n".encode()
    assert outcome(body, {"input_utf16": 6})[0] == "INCOMPLETE_STREAM"
    assert outcome(body, {"input_utf16": 5}) == ("LIMIT", "", 10)
    assert outcome(body, {"input_utf16": 3}) == ("LIMIT", "", 8)
    assert outcome(body, {"input_utf16": 1}) == ("LIMIT", "", 4)


def test_input_limit_and_dispatch() -> None:
    """The line end that exceeds the input dispatches nothing; the one that just fits does."""
    size = len(GOOD.decode()) + 1
    assert outcome(GOOD, {"input_utf16": size}) == ("COMPLETE", "你好，Java 🌱", 253)
    assert outcome(GOOD, {"input_utf16": size - 1}) == ("LIMIT", "你好，Java 🌱", 253)


def test_cut_character_is_no_input() -> None:
    """Bytes of a character that never became whole count for no limit."""
    assert outcome(b"abc\xf0\x9f\x8c", {"input_utf16": 3, "line_utf16": 3})[0] == "INCOMPLETE_STREAM"


def test_event_limit() -> None:
    """An event is its joined data; the line that exceeds it offends at its end, a CR at once."""
    body = b"data: 123\r\ndata: 56\r\n\r\n"
    assert outcome(body, {"event_utf16": 6})[0] == "INVALID_JSON"
    assert outcome(body, {"event_utf16": 5}) == ("LIMIT", "", 20)
    assert outcome(b"data: 123\ndata: 56", {"event_utf16": 5})[0] == "INCOMPLETE_STREAM"
    assert outcome("data: 🌱\n".encode(), {"event_utf16": 1}) == ("LIMIT", "", 11)


def test_events_limit() -> None:
    """[DONE] is an event; the one that makes too many offends before it is judged."""
    assert outcome(GOOD, {"events": 4})[0] == "COMPLETE"
    assert outcome(GOOD, {"events": 3}) == ("LIMIT", "你好，Java 🌱", 253)
    assert outcome(b"data: {oops}\n\n", {"events": 1})[0] == "INVALID_JSON"
    assert outcome(delta("a") + b"data: {oops}\n\n", {"events": 1})[0] == "LIMIT"


def test_output_limit() -> None:
    """The text that exceeds the output is not added, nor what stands beside it."""
    assert outcome(GOOD, {"output_utf16": 10})[0] == "COMPLETE"
    assert outcome(GOOD, {"output_utf16": 9}) == ("LIMIT", "你好，", 172)
    result = read(delta("abc", "stop"), {"output_utf16": 2})
    assert (result.outcome, result.preview, result.finish_reason) == ("LIMIT", "", None)


def test_depth_limit() -> None:
    """Nesting beyond the contract's depth is INVALID_JSON."""
    assert outcome(GOOD, {"json_depth": 4})[0] == "COMPLETE"
    assert outcome(GOOD, {"json_depth": 3}) == ("INVALID_JSON", "", 86)


# ----------------------------------------------------------------------------------------------------
# The dialect and the turn
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "1",
        "null",
        '"[DONE]"',
        "{}",
        '{"choices":null}',
        '{"choices":{}}',
        '{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{}}]}',
        '{"choices":[null]}',
        '{"choices":[{"delta":{}}]}',
        '{"choices":[{"index":1,"delta":{}}]}',
        '{"choices":[{"index":0.0,"delta":{}}]}',
        '{"choices":[{"index":false,"delta":{}}]}',
        '{"choices":[{"index":"0","delta":{}}]}',
        '{"choices":[{"index":0,"delta":[]}]}',
        '{"choices":[{"index":0,"delta":{},"finish_reason":0}]}',
        '{"choices":[{"index":0,"delta":{},"finish_reason":false}]}',
        '{"choices":[{"index":0,"delta":{"role":"user"}}]}',
        '{"choices":[{"index":0,"delta":{"role":""}}]}',
        '{"choices":[{"index":0,"delta":{"role":false}}]}',
        '{"choices":[{"index":0,"delta":{"content":0}}]}',
        '{"choices":[{"index":0,"delta":{"content":["a"]}}]}',
        '{"choices":[{"index":0,"delta":{"content":"a","tool_calls":[]}}]}',
        '{"choices":[{"index":0,"delta":{"content":"a","function_call":false}}]}',
        '{"choices":[{"index":0,"delta":{"content":"a","refusal":"no"}}]}',
        '{"choices":[{"index":0,"delta":{"content":"a","refusal":0}}]}',
    ],
)
def test_protocol(document: str) -> None:
    """An event that is not of the narrow form is PROTOCOL, and no part of it takes effect."""
    body = f"data: {document}\n\n".encode()
    assert outcome(body) == ("PROTOCOL", "", len(body))


@pytest.mark.parametrize(
    "document",
    [
        '{"choices":[]}',
        '{"error":null,"choices":[]}',
        '{"choices":[{"index":0,"delta":{}}]}',
        '{"choices":[{"index":-0,"delta":{"content":""}}]}',
        '{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}',
        '{"choices":[{"index":0,"delta":{"tool_calls":null,"function_call":null,"refusal":null}}]}',
        '{"choices":[{"index":0,"delta":{"refusal":""}}]}',
        '{"choices":[{"index":0}]}',
        '{"choices":[{"index":0,"delta":null}]}',
        '{"choices":[{"index":0,"delta":{"reasoning":""},"logprobs":{}}],"id":1,"usage":{"a":[1.5]}}',
    ],
)
def test_meta(document: str) -> None:
    """Events without text or finish change nothing, before and after the finish."""
    meta = f"data: {document}\n\n".encode()
    body = meta + delta("a") + meta + FINISH + meta + DONE
    assert outcome(body) == ("COMPLETE", "a", len(body))


@pytest.mark.parametrize("error", ["{}", '""', "0", "false", '{"message":"x"}'])
def test_error(error: str) -> None:
    """An error that is not null outranks everything else in its event, in both states."""
    event = f'data: {{"error":{error},"choices":7}}\n\n'.encode()
    assert outcome(event + DONE)[:2] == ("PROVIDER_ERROR", "")
    assert outcome(delta("a") + FINISH + event + DONE)[:2] == ("PROVIDER_ERROR", "a")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "COMPLETE"),
        ("length", "INCOMPLETE_FINISH"),
        ("content_filter", "INCOMPLETE_FINISH"),
        ("error", "PROVIDER_ERROR"),
        ("tool_calls", "UNSUPPORTED_OUTCOME"),
        ("STOP", "UNSUPPORTED_OUTCOME"),
        ("", "UNSUPPORTED_OUTCOME"),
    ],
)
def test_finish_reasons(reason: str, expected: str) -> None:
    """The class of a raw reason comes from the contract; a reason that is not listed is no success."""
    result = read(delta("a") + delta("b", reason) + DONE)
    assert (result.outcome, result.preview, result.finish_reason) == (expected, "ab", reason)


def test_text_and_finish_in_one_event() -> None:
    """The text of an event counts before its finish."""
    body = delta("a", "stop") + DONE
    assert outcome(body) == ("COMPLETE", "a", len(body))


def test_text_after_finish() -> None:
    """Text after the finish is PROTOCOL and not added."""
    body = delta("a", "stop") + delta("b")
    assert outcome(body + DONE) == ("PROTOCOL", "a", len(body))


def test_second_finish() -> None:
    """A second finish is PROTOCOL, be it the same reason; the reason last seen is kept."""
    assert outcome(delta("a") + FINISH + FINISH + DONE)[:2] == ("PROTOCOL", "a")
    assert read(delta("a", "stop") + FINISH.replace(b"stop", b"length")).finish_reason == "length"


def test_done_without_finish() -> None:
    """[DONE] in the open state is PROTOCOL."""
    assert outcome(DONE) == ("PROTOCOL", "", len(DONE))


def test_empty_completion() -> None:
    """A completion without text is UNSUPPORTED_OUTCOME, at [DONE] and not before."""
    assert outcome(FINISH + DONE) == ("UNSUPPORTED_OUTCOME", "", len(FINISH + DONE))
    assert outcome(delta("", "stop") + DONE)[0] == "UNSUPPORTED_OUTCOME"


def test_cancel() -> None:
    """The case cancels when the preview holds at least so many units, not one fewer."""
    assert outcome(GOOD, cancel_after=3) == ("CANCELLED", "你好，", 86)
    assert outcome(GOOD, cancel_after=4) == ("CANCELLED", "你好，Java 🌱", 172)
    assert outcome(GOOD, cancel_after=10) == ("CANCELLED", "你好，Java 🌱", 172)
    assert outcome(GOOD, cancel_after=11)[0] == "COMPLETE"


def test_cancel_before_finish() -> None:
    """A cancelled event's finish is not looked at."""
    result = read(delta("abc", "length"), cancel_after=3)
    assert (result.outcome, result.preview, result.finish_reason) == ("CANCELLED", "abc", None)


def test_limit_before_cancel() -> None:
    """Text that exceeds the output cancels nothing: it was never in the preview."""
    assert outcome(delta("abc"), {"output_utf16": 2}, cancel_after=1)[:2] == ("LIMIT", "")


# ----------------------------------------------------------------------------------------------------
# Before the body
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type", ["text/event-stream", "Text/Event-Stream", "text/event-stream ; a=b", "\ttext/event-stream"]
)
def test_content_type_accepted(content_type: str) -> None:
    """The essence is trimmed and compared without case."""
    assert outcome(GOOD, content_type=content_type)[0] == "COMPLETE"


@pytest.mark.parametrize(
    "content_type", ["", "text/event-streams", "text/plain; text/event-stream", "application/json"]
)
def test_content_type_refused(content_type: str) -> None:
    """Another essence is refused before the first read."""
    result = read(b"\xff", content_type=content_type)
    assert (result.outcome, result.reads, result.consumed_bytes) == ("CONTENT_TYPE", 0, 0)
    assert result.transport_end == "left"


def test_status_before_content_type() -> None:
    """The status is looked at first, and only 200 is good."""
    assert read(GOOD, status=503, content_type="x").outcome == "HTTP_503"
    assert read(GOOD, status=201).outcome == "HTTP_201"


# ----------------------------------------------------------------------------------------------------
# Reads
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "reads"), [(1, 253), (7, 37), (10, 26), (252, 2), (253, 1), (4096, 1)])
def test_reads_of_a_settled_body(cap: int, reads: int) -> None:
    """Nothing is read after the outcome is settled: no read meets the end."""
    result = read(GOOD, read_cap=cap)
    assert (result.reads, result.consumed_bytes, result.transport_end) == (reads, 253, "left")


@pytest.mark.parametrize(("cap", "reads"), [(1, 154), (7, 23), (10, 17), (153, 2), (4096, 2)])
def test_reads_to_the_end(cap: int, reads: int) -> None:
    """The read that meets the end returns nothing and counts."""
    result = read(delta("你好，") + FINISH, read_cap=cap)
    assert (result.reads, result.consumed_bytes, result.transport_end) == (reads, 153, "eof")


def test_reads_of_an_empty_body() -> None:
    """An empty body takes the one read that meets its end."""
    result = read(b"")
    assert (result.outcome, result.reads, result.consumed_bytes) == ("INCOMPLETE_STREAM", 1, 0)


def test_reads_stop_at_chunk_ends() -> None:
    """A read ends where its HTTP chunk ends."""
    result = read(GOOD, chunk_ends=[1, 9, 10, 252])
    assert result.reads == 1 + 2 + 1 + 35 + 1
    assert read(GOOD, chunk_ends=list(range(1, 253)), read_cap=99).reads == 253


def test_settled_inside_a_chunk() -> None:
    """What is consumed is what the reads returned, not where the outcome was proved."""
    body = delta("x") + b"data: 1\n\n" + b": padding\n" * 10
    proof = len(delta("x")) + 9
    result = read(body, chunk_ends=[proof - 1, proof + 5], read_cap=3)
    assert result.settled_at == proof
    assert result.consumed_bytes == proof + 2
    assert read(body, chunk_ends=[proof - 1, proof + 1], read_cap=3).consumed_bytes == proof + 1
    assert read(body, read_cap=4096).consumed_bytes == len(body)


def test_read_ends_agree_with_the_count() -> None:
    """The list of read ends and the arithmetic are two ways to the same numbers."""
    for cap in (1, 2, 7, 10, 300):
        for ends in ([], [1], [86, 172], [7, 8, 252]):
            listed = audit.read_ends(253, ends, cap)
            for until in (1, 7, 8, 86, 100, 253):
                reads, consumed = audit.count_reads(until, 253, ends, cap)
                assert listed[reads - 1] == consumed
                assert reads == 1 or listed[reads - 2] < until <= consumed


# ----------------------------------------------------------------------------------------------------
# Ends and time
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("framing", "ending", "transport_end"),
    [
        ("chunked", "complete", "eof"),
        ("content-length", "complete", "eof"),
        ("close", "complete", "eof"),
        ("chunked", "fin", "short-body"),
        ("content-length", "fin", "short-body"),
        ("close", "fin", "eof"),
        ("chunked", "reset", "reset"),
        ("close", "reset", "reset"),
        ("content-length", "short-length", "short-body"),
        ("chunked", "bad-chunk", "bad-framing"),
    ],
)
def test_transport_end(framing: str, ending: str, transport_end: str) -> None:
    """However the transport ended, the outcome is INCOMPLETE_STREAM; how is recorded beside it.

    Once the promised length has come the body has ended: nobody meets a reset or a silence after it.
    """
    result = read(delta("a"), framing=framing, ending=ending)
    assert (result.outcome, result.preview, result.transport_end) == ("INCOMPLETE_STREAM", "a", transport_end)
    assert result.reads == audit.count_reads(len(delta("a")), len(delta("a")), [], 7)[0] + 1


@pytest.mark.parametrize("ending", list(audit.ENDINGS))
def test_ending_after_settling(ending: str) -> None:
    """A broken ending does not unmake what was settled before it."""
    result = read(GOOD, ending=ending, framing=audit.ENDINGS[ending][0])
    assert (result.outcome, result.transport_end, result.reads) == ("COMPLETE", "left", 37)


def test_stall() -> None:
    """Silence without end is a read time-out, met by a read of its own."""
    result = read(delta("a"), ending="stall")
    assert (result.outcome, result.transport_end, result.preview) == ("READ_TIMEOUT", "timeout", "a")
    assert result.consumed_bytes == len(delta("a"))


def test_wait_inside_a_read() -> None:
    """Where a time-out comes with bytes in hand the read returns those, and the next one times out."""
    result = read(GOOD, script=[("send_bytes", 10), ("wait_ms", 3000), ("send_bytes", 243)], read_timeout_ms=100)
    assert (result.outcome, result.reads, result.consumed_bytes) == ("READ_TIMEOUT", 3, 10)
    assert result.transport_end == "timeout"


def test_wait_after_the_proof() -> None:
    """A wait for bytes that nobody needs any more changes nothing."""
    script = [("send_bytes", 86), ("wait_ms", 3000), ("send_bytes", 167)]
    assert outcome(GOOD, script=script, read_timeout_ms=100, cancel_after=3) == ("CANCELLED", "你好，", 86)
    assert outcome(GOOD, script=script, read_timeout_ms=100) == ("READ_TIMEOUT", "你好，", None)


def test_wait_inside_a_character() -> None:
    """A character cut by a time-out is no offence."""
    script = [("send_bytes", 3), ("wait_ms", 900), ("send_bytes", 2)]
    assert outcome(b": \xe4\xbd\xa0", script=script, read_timeout_ms=100)[0] == "READ_TIMEOUT"


def test_short_waits() -> None:
    """Waits that a read outlasts change neither outcome nor reads."""
    script = [("send_bytes", 100), ("wait_ms", 50), ("send_bytes", 153)]
    assert read(GOOD, script=script, read_timeout_ms=100).reads == 37


def test_short_waits_in_a_row() -> None:
    """Silence counts from the last byte: waits in a row are one silence."""
    script = [("wait_ms", 50), ("wait_ms", 50), ("wait_ms", 50), ("send_bytes", 253)]
    assert read(GOOD, script=script, read_timeout_ms=100).outcome == "READ_TIMEOUT"


def test_deadline() -> None:
    """The deadline counts from the response head, however often bytes arrive."""
    script = [step for _ in range(5) for step in (("send_bytes", 1), ("wait_ms", 500))] + [("send_bytes", 248)]
    result = read(GOOD, script=script)
    assert (result.outcome, result.transport_end, result.consumed_bytes) == ("DEADLINE", "timeout", 4)


def test_deadline_or_timeout() -> None:
    """The earlier of the two decides."""
    assert read(GOOD, {"deadline_ms": 500}, ending="stall", script=[("send_bytes", 9)]).outcome == "DEADLINE"
    assert read(GOOD, {"deadline_ms": 1500}, ending="stall", script=[("send_bytes", 9)]).outcome == "READ_TIMEOUT"
    waits = [("wait_ms", 400), ("send_bytes", 9), ("wait_ms", 400), ("send_bytes", 9)]
    assert read(GOOD, {"deadline_ms": 1700}, ending="stall", script=waits).outcome == "DEADLINE"
    assert read(GOOD, {"deadline_ms": 1900}, ending="stall", script=waits).outcome == "READ_TIMEOUT"


# ----------------------------------------------------------------------------------------------------
# The trace
# ----------------------------------------------------------------------------------------------------


def test_events_are_contiguous() -> None:
    """An event begins where its first line begins and ends after its whole blank line."""
    body = b": c\r\n\r\n" + GOOD.replace(b"\n", b"\r\n")
    steps = read(body).steps
    assert (steps[0].event.start, steps[0].event.end) == (7, 7 + 88)
    for step, following in itertools.pairwise(steps):
        assert step.event.end == following.event.start
    assert steps[-1].event.end == len(body)
    assert [(step.before, step.after) for step in steps] == [
        ("open", "open"),
        ("open", "open"),
        ("open", "finished"),
        ("finished", "COMPLETE"),
    ]


def test_wide_characters() -> None:
    """The characters of more than one byte are found, up to the first offence."""
    assert [match.span() for match in audit.wide_characters("aä你🌱".encode() + b"\xff\xc3\xa4")] == [
        (1, 3),
        (3, 6),
        (6, 10),
    ]
