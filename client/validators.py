"""The second check: is a turn that is complete acceptable for this task?

It is independent of the first: evidence decides whether there is a result, a validator whether the
task wants it. A validator is a plain callable with a name and a version; a refusal is the outcome
REJECTED with that version and the reason. JSON Schemas are validators by name. This file knows no
stream; it sees what was settled.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match

from .outcomes import COMPLETE, REJECTED, Fault
from .reader import Settled
from .strict_json import Json, parse

# Nesting that a schema's instance may have.
_DEPTH = 64

# Says why a complete turn is not acceptable, or None where it is.
Check = Callable[[Settled], str | None]


class ValidatorError(ValueError):
    """A validator that cannot be used, by the fault of whoever wrote or named it."""


@dataclass(frozen=True, kw_only=True)
class Validator:
    """A check of one task, and which version of it."""

    name: str
    version: str
    check: Check


def accept(turn: Settled, validator: Validator) -> Settled:
    """Give the turn as the task takes it: as it was, or REJECTED with the validator and its reason.

    Only a COMPLETE turn is asked; whatever else it was settled as stays.
    """
    if turn.outcome != COMPLETE:
        return turn
    reason = validator.check(turn)
    if reason is None:
        return turn
    why = f"{validator.name} {validator.version}: {reason}"
    return replace(turn, outcome=REJECTED, why=why, history_rule="withhold")


def json_schema(name: str, folder: Path) -> Validator:
    """Make a validator of the schema NAME/N in the file NAME-N.json (JSON Schema 2020-12).

    The answer's text, or the arguments of each call where the turn is a tool proposal, has to be one
    strict JSON text that fits. Raises ValidatorError for a schema that is missing or no schema.
    """
    path = folder / f"{name.replace('/', '-')}.json"
    base, _, version = name.partition("/")
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(schema)
    except (OSError, ValueError) as error:
        raise ValidatorError(f"{path}: schema {name!r} cannot be read: {error}") from error
    except SchemaError as error:
        raise ValidatorError(f"{path}: {error.json_path}: {error.message}") from error
    rules = Draft202012Validator(schema)
    return Validator(name=base, version=version, check=lambda turn: _wrong(rules, turn))


def _wrong(rules: Any, turn: Settled) -> str | None:
    texts = [call.arguments for call in turn.calls] if turn.reason_class == "tools" else [turn.preview]
    found = (_wrong_text(rules, text) for text in texts)
    return next((wrong for wrong in found if wrong), None)


def _wrong_text(rules: Any, text: str) -> str | None:
    value: Json | Fault = parse(text.encode(errors="surrogatepass"), _DEPTH)
    if isinstance(value, Fault):
        return f"no JSON: {value.why}"
    error = best_match(rules.iter_errors(value))
    return f"{error.json_path}: {error.message}" if error else None
