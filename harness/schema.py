"""Checks a value against one of the JSON Schemas in `schemas/`, and words the first error.

The schemas are the formats in a form that other programs can use; jsonschema is the library of
that field. It is imported only when something has to be checked: it costs more than a whole trial.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from .names import SCHEMAS, UsageError


def check(value: object, schema: str, where: str) -> None:
    """Raise UsageError with place, key path and reason unless the value has the schema's form."""
    from jsonschema.exceptions import best_match

    error = best_match(_validator(schema).iter_errors(value))
    if error is not None:
        path = error.json_path.removeprefix("$").removeprefix(".")
        raise UsageError(f"{where}: {path + ': ' if path else ''}{error.message}")


@cache
def _validator(schema: str) -> Any:
    """Give the validator of one schema; stricter than jsonschema in that an integer is never written as a float."""
    from jsonschema import Draft202012Validator, validators

    extend: Any = validators.extend
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    strict = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=types)
    return strict(json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")))


def _pattern(_: Any, pattern: str, text: object, __: object) -> Iterator[Exception]:
    """Match as ECMA 262 does: `$` is the very end, where Python's also stands before a last line end."""
    from jsonschema.exceptions import ValidationError

    if isinstance(text, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")
