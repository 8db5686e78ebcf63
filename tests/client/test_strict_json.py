"""The strict JSON reader against the 53 checks of the original experiment, and beyond them."""

import json
import sys
from pathlib import Path

import pytest

from client.contract import load
from client.outcomes import INVALID_JSON, Fault
from client.reader import Reader
from client.strict_json import parse

CHECKS = json.loads((Path(__file__).parents[1] / "vectors" / "json-spelling-53.json").read_text("utf-8"))

REFUSED = {
    "a duplicate name spelt with an escape": '{"a":1,"\\u0061":2}',
    "a duplicate name at depth": '{"x":[{"y":{"a":1,"a":1}}]}',
    "a lone high surrogate": '{"x":"\\ud83c"}',
    "a lone low surrogate": '["\\udf31"]',
    "surrogates in the wrong order": '["\\udf31\\ud83c"]',
    "a lone surrogate in a name": '{"\\ud83c":1}',
    "Infinity": '{"x":Infinity}',
    "minus Infinity": '{"x":-Infinity}',
    "a real beyond the doubles": '{"x":1e999}',
    "an integer beyond the doubles": '{"x":' + "9" * 400 + "}",
    "an integer of more digits than int() takes": '{"x":-' + "9" * 5000 + "}",
    "a byte order mark": "\ufeff{}",
    "nothing": "",
    "a no-break space around it": "\u00a0{}",
    "two levels too many": "[" * 17 + "]" * 17,
    "brackets beyond any recursion": "[" * 100_000,
}

ACCEPTED: dict[str, tuple[str, object]] = {
    "a pair of surrogates": ('["\\ud83c\\udf31"]', ["🌱"]),
    "brackets inside strings": ('["[[[[[[[[[[[[[[[[[[", "{\\"["]', ["[[[[[[[[[[[[[[[[[[", '{"[']),
    "sixteen levels": ("[" * 16 + "]" * 16, None),
    "many siblings": ("[" + ",".join(["[]"] * 50) + "]", [[]] * 50),
    "the largest double": ("[1.7976931348623157e308]", [1.7976931348623157e308]),
    "an underflow": ("[1e-999]", [0.0]),
    "an integer of 300 digits": ("[" + "9" * 300 + "]", [int("9" * 300)]),
    "a scalar": ("true", True),
}


@pytest.mark.parametrize("check", CHECKS["refused"], ids=[check["what"] for check in CHECKS["refused"]])
def test_the_48_refused(check: dict[str, str]) -> None:
    """Each of the 48 spellings is INVALID_JSON."""
    found = parse(check["text"].encode(), 16)
    assert isinstance(found, Fault)
    assert found.outcome == INVALID_JSON


@pytest.mark.parametrize("check", CHECKS["accepted"], ids=[check["what"] for check in CHECKS["accepted"]])
def test_the_4_accepted(check: dict[str, str]) -> None:
    """Each of the four texts is accepted and holds what the standard parser reads."""
    assert parse(check["text"].encode(), 16) == json.loads(check["text"])


def test_the_refused_stream() -> None:
    """A string that runs over two data lines holds a raw LF: refused, with an empty preview."""
    wanted = CHECKS["refused_stream"]
    reader = Reader(load("frozen-text/1"), "openai-chat")
    turn = reader.feed(wanted["body"].encode())
    assert turn
    assert (turn.outcome, turn.preview) == (wanted["outcome"], wanted["preview"])


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_refused(text: str) -> None:
    """What two parsers could read differently is INVALID_JSON."""
    assert isinstance(parse(text.encode(), 16), Fault)


@pytest.mark.parametrize(("text", "value"), ACCEPTED.values(), ids=list(ACCEPTED))
def test_accepted(text: str, value: object) -> None:
    """What RFC 8259 allows is read."""
    found = parse(text.encode(), 16)
    assert not isinstance(found, Fault)
    assert value is None or found == value


def test_no_setting_of_the_interpreter_matters() -> None:
    """The bound of integers is the double's, not the interpreter's configurable one."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert isinstance(parse(b"9" * 5000, 16), Fault)
    finally:
        sys.set_int_max_str_digits(before)
