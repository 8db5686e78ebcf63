"""Checks a value against one of the JSON Schemas in `schemas/`, and words the first error.

The schemas are the formats in a form that other programs can use; jsonschema is the library of
that field. It is imported only when something has to be checked: it costs more than a whole trial.
"""

import json
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
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")))
