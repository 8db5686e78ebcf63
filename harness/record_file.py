"""Reads a file of attempt records: one JSON object a line, closed columns, bounded; a wrong line is refused.

The form of a line is `schemas/attempt.json` and nothing else. To ask a validator of JSON Schema about a hundred
thousand lines takes minutes, so the schema is turned into one small check a column; a line that fails one is
shown to the validator, which words what is wrong. This file knows no measure and no rule.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from .names import SCHEMAS, UsageError
from .schema import check

SCHEMA = "attempt"

# A record with all texts at their longest, in escapes, is a quarter of it.
LINE_BYTES = 1024 * 1024

Record = dict[str, Any]
Rule = Mapping[str, Any]
Check = Callable[[Any], bool]

_TIMES = ("started_at", "first_display_at", "decided_at")


def columns() -> dict[str, Rule]:
    """Give the schema of each column, in the order of the schema."""
    schema = json.loads((SCHEMAS / f"{SCHEMA}.json").read_text(encoding="utf-8"))
    properties: dict[str, Rule] = schema["properties"]
    return properties


def records(path: Path) -> Iterator[Record]:
    """Give the records of a file, one by one; raise UsageError with the line's number for one that is none."""
    rules = columns()
    checks = [(name, _may_be_null(rule), column_check(rule)) for name, rule in rules.items()]
    for number, line in _lines(path):
        where = f"{path}: line {number}"
        record = _parsed(line, where, len(rules))
        if record.keys() != rules.keys() or not _fits(record, checks):
            check(record, SCHEMA, where)
            raise AssertionError(f"{where}: the checks of its columns are stricter than the schema")
        _check_times(record, where)
        yield record


def _fits(record: Record, checks: list[tuple[str, bool, Check]]) -> bool:
    for name, may_be_null, is_right in checks:
        value = record[name]
        if not (may_be_null if value is None else is_right(value)):
            return False
    return True


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES + 1):
            number += 1
            if len(line) > LINE_BYTES:
                raise UsageError(f"{path}: line {number}: longer than {LINE_BYTES} bytes, which no record is")
            if not line.endswith(b"\n"):
                raise UsageError(f"{path}: line {number}: no line end, as if writing it was cut short; take it out")
            yield number, line


def _parsed(line: bytes, where: str, names: int) -> Record:
    """Read one line, closely unless it has just as many `":` as names, which rules out that one occurs twice."""
    decoder = _QUICK if line.count(b'":') == names else _CLOSE
    try:
        record = decoder.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: no JSON text: {error}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{where}: no record, but a {type(record).__name__}")
    return record


def _object(pairs: list[tuple[str, Any]]) -> Record:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that occurs twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_QUICK = json.JSONDecoder(parse_constant=_refuse)
_CLOSE = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_object)


def _check_times(record: Record, where: str) -> None:
    """Refuse a day or an hour that there is not, which a pattern cannot."""
    for name in _TIMES:
        try:
            datetime.fromisoformat(record[name] or record["started_at"])
        except ValueError as error:
            raise UsageError(f"{where}: {name}: {record[name]} is no time: {error}") from error


# -- from a column's schema to its check


def column_check(rule: Rule) -> Check:
    """Turn a column's schema into a check of values that are not null; KeyError for what no check knows."""
    given = {_KEYWORDS[key]: value for key, value in rule.items() if key != "type"}
    kinds = [kind for kind in _types(rule) if kind != "null"]
    return _CHECKS[kinds[0] if kinds else "word"](**given)


def _may_be_null(rule: Rule) -> bool:
    return "null" in _types(rule) or None in rule.get("enum", ())


def _types(rule: Rule) -> list[str]:
    named = rule.get("type", [])
    return [named] if isinstance(named, str) else named


def _word(words: str | list[str]) -> Check:
    known = frozenset([words] if isinstance(words, str) else words)
    return lambda value: type(value) is str and value in known


def _string(least: int = 0, most: int = LINE_BYTES, pattern: str = "") -> Check:
    if not pattern:
        return lambda value: type(value) is str and least <= len(value) <= most
    fits = re.compile(re.sub(r"\$$", r"\\Z", pattern)).match
    return lambda value: type(value) is str and fits(value) is not None


def _integer(minimum: int, maximum: int) -> Check:
    return lambda value: type(value) is int and minimum <= value <= maximum


def _boolean() -> Check:
    return lambda value: value is True or value is False


def _array(items: Rule, most: int) -> Check:
    is_right = column_check(items)
    return lambda value: type(value) is list and len(value) <= most and all(map(is_right, value))


_KEYWORDS = {
    "const": "words",
    "enum": "words",
    "items": "items",
    "maximum": "maximum",
    "maxItems": "most",
    "maxLength": "most",
    "minimum": "minimum",
    "minLength": "least",
    "pattern": "pattern",
}
_CHECKS: Mapping[str, Callable[..., Check]] = {
    "array": _array,
    "boolean": _boolean,
    "integer": _integer,
    "string": _string,
    "word": _word,
}
