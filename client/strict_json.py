"""Text in, one JSON value or a fault out: RFC 8259, with every liberty that parsers take taken away.

    https://www.rfc-editor.org/rfc/rfc8259
        JSON-text = ws value ws
        value     = false / null / true / object / array / number / string

Refused beyond the grammar, because two parsers would read two things: a duplicate name at any
depth (RFC 7493 section 2.3), a lone surrogate in any string (section 2.1), a number that no
finite double can hold (section 2.2), and nesting deeper than the caller's bound. The standard
library's parser knows the grammar; this file closes what that parser leaves open, and knows
nothing of events or dialects.
"""

import json
import re
from collections.abc import Iterator

from .outcomes import INVALID_JSON, Fault

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

# Strings first, so that a bracket inside one does not count. An unclosed string runs to the end,
# which keeps the scan linear; the parser refuses the text in any case.
_NESTING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)

# An integer of up to 300 digits is below the largest double (1.8e308) and cheap to convert.
_SAFE_DIGITS = 300


def parse(text: str, max_depth: int) -> Json | Fault:
    """Read one JSON text of at most max_depth nested containers; the outermost is depth 1."""
    if _too_deep(text, max_depth):
        return _fault(f"nested deeper than {max_depth}")
    try:
        value: Json = _DECODER.decode(text)
    except ValueError as error:
        return _fault(str(error))
    if "\\u" in text and not all(_is_text(part) for part in _strings(value)):
        return _fault("a lone surrogate in a string")
    return value


def canonical(value: Json) -> str:
    """Spell a value as canonical JSON: sorted names, no white space, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _too_deep(text: str, max_depth: int) -> bool:
    if text.count("{") + text.count("[") <= max_depth:
        return False
    depth = 0
    for token in _NESTING.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth > max_depth:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return value


def _real(spelling: str) -> float:
    value = float(spelling)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number beyond the finite doubles")
    return value


def _integer(spelling: str) -> int:
    if len(spelling) > _SAFE_DIGITS:
        _real(spelling)  # also keeps int() away from its own, configurable, limit of digits
    return int(spelling)


def _constant(spelling: str) -> Json:
    raise ValueError(f"{spelling} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_real, parse_int=_integer, parse_constant=_constant)


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from _strings(member)


def _is_text(part: str) -> bool:
    """Say whether every code point is a character, so that UTF-8 can carry it."""
    return part.isascii() or not any("\ud800" <= char <= "\udfff" for char in part)


def _fault(why: str) -> Fault:
    return Fault(outcome=INVALID_JSON, why=why)
