"""`schema.py` and `schemas/`: the formats as other programs can check them."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.names import HOME, SCHEMAS, UsageError
from harness.schema import check

ALL = sorted(path.stem for path in SCHEMAS.glob("*.json"))
CLAIM: dict[str, Any] = {"kind": "claim", "trial": "t", "history": [], "preview": "", "raised": None, "hints": {}}


def objects(schema: Any) -> list[dict[str, Any]]:
    """Give every sub-schema that describes an object."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    parts = [part for key, part in schema.items() if key not in ("if", "then", "else")]  # they narrow what is there
    return [found for item in parts for found in objects(item)] + ([schema] if "properties" in schema else [])


def test_there_is_one_for_each_format() -> None:
    """The schemas are those of the case, its label and suite, of the subject protocol, and of attempt records."""
    assert ALL == ["attempt", "case", "claim", "contract", "label", "ready", "stepped", "subject", "suite"]


@pytest.mark.parametrize("name", ALL)
def test_each_is_a_schema(name: str) -> None:
    """Every schema is a valid Draft 2020-12 schema, and says that it is one."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", ALL)
def test_each_is_closed(name: str) -> None:
    """No object takes a key that is not named, but for a subject's free hints."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    is_open = [sorted(item["properties"]) for item in objects(schema) if item.get("additionalProperties") is not False]
    assert is_open == ([["finish_reason"]] if name == "claim" else [])


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (HOME / "harness/subjects").rglob("subject.toml")))
def test_every_subject_is_valid(name: str) -> None:
    """Every subject of the checkout has the form of its schema."""
    (path,) = (HOME / "harness/subjects").rglob(f"{name}/subject.toml")
    check(tomllib.loads(path.read_text("utf-8")), "subject", name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reads": 3.0}, "reads: 3.0 is not of type"),
        ({"reads": True}, "reads: True is not of type"),
        ({"reads": -1}, "reads: -1 is less than the minimum"),
        ({"reads": 2**53}, "reads: 9007199254740992 is greater than the maximum"),
        ({"status": 2**53}, "status: 9007199254740992 is greater than the maximum"),
        ({"consumed_bytes": 2**53}, "consumed_bytes: 9007199254740992 is greater than the maximum"),
        ({"consumed_sha256": "0" * 64 + "\n"}, "consumed_sha256: "),
        ({"consumed_sha256": "A" * 64}, "consumed_sha256: "),
        ({"transport_end": "gone"}, "transport_end: 'gone' is not one of"),
        ({"colour": "red"}, ".*'colour' was unexpected"),
        ({"history": [{"role": "user"}]}, r"history\[0\]: 'content' is a required property"),
        ({"history": [{"role": "user", "content": "x", "name": "y"}]}, r"history\[0\]: .*'name' was unexpected"),
        ({"raised": {"type": "E"}}, "raised: "),
        ({"hints": {"finish_reason": 1}}, r"hints\.finish_reason: 1 is not of type"),
    ],
)
def test_a_claim_that_is_none(changes: dict[str, Any], message: str) -> None:
    """A claim that an archive could not hold is refused with the path of the key."""
    with pytest.raises(UsageError, match=f"^claim: {message}"):
        check(CLAIM | changes, "claim", "claim")


def test_a_full_claim() -> None:
    """A claim may say everything that the protocol names."""
    full = CLAIM | {
        "history": [{"role": "user", "content": "x"}],
        "raised": {"type": "E", "chain": ["F"], "message": "m"},
        "hints": {"finish_reason": "stop", "other": 1},
        "outcome": "COMPLETE",
        "status": 200,
        "reads": 2**53 - 1,
        "consumed_bytes": 0,
        "consumed_sha256": "0" * 64,
        "transport_end": None,
    }
    check(full, "claim", "claim")


def test_the_message_names_the_place() -> None:
    """A message is the place, the path of the key and the reason, in one line."""
    table: dict[str, Any] = {"title": "t", "dialect": "openai-chat", "reference": "r", "client": {"read_cap_bytes": 0}}
    table |= {"exchange": [{"body": "body.sse"}]}
    with pytest.raises(UsageError, match=r"^here: client\.read_cap_bytes: 0 is less than the minimum of 1$"):
        check(table, "case", "here")


def test_schemas_are_found_from_the_package() -> None:
    """Schemas lie beside the code, so that a wheel carries them."""
    assert Path(HOME / "harness/schemas") == SCHEMAS
