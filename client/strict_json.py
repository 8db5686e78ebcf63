"""Bytes in, one JSON value or a fault out: RFC 8259, with every liberty that parsers take taken away.

    https://www.rfc-editor.org/rfc/rfc8259
        JSON-text = ws value ws
        value     = false / null / true / object / array / number / string

Refused beyond the grammar, because two parsers would read two things: a duplicate name at any
depth (RFC 7493 section 2.3), a lone surrogate in any string (section 2.1), a number that no
finite double can hold (section 2.2), and nesting deeper than the caller's bound. jiter knows the
grammar, UTF-8, surrogates and duplicate names; this file adds the two bounds that it has not, and knows
nothing of events or dialects.
"""

import json
import re

import jiter

from .outcomes import INVALID_JSON, Fault

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

# The deepest nesting that a caller may allow; jiter's own bound lies above.
MAX_DEPTH = 128

# Strings first, so that a bracket inside one does not count. An unclosed string runs to the end,
# which keeps the scan linear; the parser refuses the text in any case.
_NESTING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)

# One pass that makes every opening bracket a brace, every digit and plus 0, and every E small: what is left
# to ask is asked by counting and by finding.
_OUTLINE = bytes.maketrans(b"[+123456789E", b"{0000000000e")

# A number beyond the doubles (1.8e308) has an exponent of three digits, or more digits than 308 - 99.
_HUGE_EXPONENT = b"e000"
_HUGE_DIGITS = b"0" * 200


def parse(text: bytes, max_depth: int) -> Json | Fault:
    """Read one JSON text of at most max_depth (to MAX_DEPTH) nested containers; the outermost is depth 1."""
    outline = text.translate(_OUTLINE)
    if outline.count(b"{") > max_depth and _too_deep(text, max_depth):
        return _fault(f"nested deeper than {max_depth}")
    try:
        value: Json = jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        return _fault(str(error))
    may_be_huge = outline.find(_HUGE_EXPONENT) >= 0 or outline.find(_HUGE_DIGITS) >= 0
    if may_be_huge and not _is_finite(value):
        return _fault("a number beyond the finite doubles")
    return value


def parse_string(text: bytes) -> str | None:
    """Read one JSON string; None where the text is not exactly one."""
    try:
        value: Json = jiter.from_json(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def is_value(text: bytes, max_depth: int) -> bool:
    """Say whether a text is one strict value; what begins with a quote is a string or nothing."""
    if text[:1] == b'"':
        return parse_string(text) is not None
    return not isinstance(parse(text, max_depth), Fault)


def canonical(value: Json) -> str:
    """Spell a value as canonical JSON: sorted names, no white space, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _too_deep(text: bytes, max_depth: int) -> bool:
    depth = 0
    for token in _NESTING.finditer(text):
        mark = token[0]
        if mark in b"[{":
            depth += 1
            if depth > max_depth:
                return True
        elif mark in b"]}":
            depth -= 1
    return False


def _is_finite(value: Json) -> bool:
    """Say whether a double can hold every number; containers are at most MAX_DEPTH deep."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    try:
        return not isinstance(value, int | float) or abs(float(value)) != float("inf")
    except OverflowError:
        return False


def _fault(why: str) -> Fault:
    return Fault(outcome=INVALID_JSON, why=why)
