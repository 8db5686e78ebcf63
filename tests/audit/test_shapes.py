"""The closed shapes of docs/formats.md: every key, kind and word of every document, said a second time in a table.

tests/vectors/shapes.json is written from the page. `key?` marks a key that may be missing, `?text` a value that
may be null, `a|b` the words that are allowed, `*` any key; the other kinds are those of SAMPLES and LEAST.
"""

from __future__ import annotations

import copy
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import audit

SHAPES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "shapes.json").read_text("utf-8"))
NAMED = {
    "blob": {"bytes": "count", "sha256": "digest"},
    "raised": {"type": "text", "chain": ["text"]},
    "claim": SHAPES["CLAIM_SHAPE"],
}
# kind -> bounds of an integer, both included
LEAST = {"count": (0, 2**53 - 1), "positive": (1, 2**53 - 1), "status": (200, 599), "depth": (1, 128)}
OUTCOMES = (
    "COMPLETE", "INCOMPLETE_STREAM", "INCOMPLETE_FINISH", "UNSUPPORTED_OUTCOME", "PROVIDER_ERROR", "PROTOCOL",
    "INVALID_JSON", "INVALID_UTF8", "LIMIT", "CONTENT_TYPE", "CANCELLED", "READ_TIMEOUT", "DEADLINE",
)  # fmt: skip
DAY = datetime.date(2026, 11, 30)
# kind -> what is of it, and what is nearly
SAMPLES: dict[str, tuple[list[object], list[object]]] = {
    "digest": (["0123456789abcdef" * 4], ["0" * 63, "0" * 65, "A" * 64, "g" * 64, ""]),
    "name": (["x", "0", "a.b_c-d", "x" * 100], ["", "X", ".x", "-x", "_x", "x" * 101, "x y", "x/1", "x\n", "é"]),
    "contract": (
        ["x/1", "x/123456789", "x" * 100 + "/10"],
        ["x", "x/0", "x/01", "x/1234567890", "x/", "/1", "x/1/1", "X/1", "x/1\n"],
    ),
    "trial": (
        ["a/b@c/1", "a.b/c_d@e-f/20"],
        ["a/b", "a/b@c", "a@c/1", "a/b@c/0", "A/b@c/1", "a/B@c/1", "a/b/d@c/1", "a/b@c/1@c/1"],
    ),
    "outcome": (
        [*OUTCOMES, "HTTP_100", "HTTP_599"],
        ["complete", "HTTP_600", "HTTP_099", "HTTP_20", "HTTP_2000"],
    ),
    "instant": (
        ["2026-11-30T00:00:00Z"],
        ["2026-11-30T00:00:00", "2026-11-30t00:00:00z", "2026-11-30T00:00:00+00:00", "2026-11-30 00:00:00Z"],
    ),
    "date": ([DAY], ["2026-11-30", datetime.datetime(2026, 11, 30), datetime.time(1)]),
}
NUMBERS = [-1, 0, 1, 2, 128, 129, 199, 200, 256, 599, 600, 2**53 - 1, 2**53, 1.0, float("nan")]


def words(description: Any) -> Iterator[str]:
    """Every word that a description allows somewhere."""
    if isinstance(description, dict):
        for inner in description.values():
            yield from words(inner)
    elif isinstance(description, list):
        yield from words(description[0])
    else:
        yield from description.lstrip("?").split("|")


def known(kind: str) -> Any:
    """The description that a name stands for."""
    return NAMED.get(kind.lstrip("?"), kind.lstrip("?"))


def allows(description: Any, value: object) -> bool:
    """Whether a description allows one of the probes."""
    if isinstance(description, str):
        if value is None:
            return description.startswith("?")
        description = known(description)
    if isinstance(description, list):
        return value == []
    if isinstance(description, dict):
        return value == {} and "*" in description
    if description in LEAST:
        least, most = LEAST[description]
        return type(value) is int and least <= value <= most
    if description in ("text", "flag"):
        return type(value) is {"text": str, "flag": bool}[description]
    good = SAMPLES[description][0] if description in SAMPLES else description.split("|")
    return any(value == each and type(value) is type(each) for each in good)


def example(description: Any) -> Any:
    """A document with every key that a description knows."""
    if isinstance(description, str):
        description = known(description)
    if isinstance(description, list):
        return [example(description[0])]
    if isinstance(description, dict):
        return {key.removesuffix("?").replace("*", "any"): example(inner) for key, inner in description.items()}
    plain: dict[str, Any] = {"text": "x", "flag": True, "count": 0, "positive": 1, "status": 200, "depth": 64}
    plain |= {kind: good[0] for kind, (good, _) in SAMPLES.items()}
    return plain.get(description, description.split("|")[0])


Path_ = tuple[str | int, ...]


def places(description: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any, bool]]:
    """Every place of an example, with what it describes and whether it may be missing."""
    inner = known(description) if isinstance(description, str) else description
    if isinstance(inner, list):
        yield (*path, 0), inner[0], True
        yield from places(inner[0], (*path, 0))
    elif isinstance(inner, dict):
        for key, below in inner.items():
            there = (*path, key.removesuffix("?").replace("*", "any"))
            yield there, below, key == "*" or key.endswith("?")
            yield from places(below, there)


def holder(value: Any, path: Path_) -> Any:
    """What holds the member at a path."""
    for step in path[:-1]:
        value = value[step]
    return value


OTHERS: list[object] = [None, True, False, [], {}, *NUMBERS]
WORDS = sorted({word for each in SHAPES.values() for word in words(each)})


def probes(description: Any) -> list[object]:
    """What to put in a place: other kinds, and the words of all, or what is of its kind and what is nearly."""
    good, bad = SAMPLES.get(description, (WORDS, [""])) if isinstance(description, str) else ([], [])
    return [*OTHERS, *good, *bad]


PLACES = [(name, *place) for name in SHAPES for place in places(SHAPES[name])]


def named(value: object) -> str | None:
    """Give a path as the name of a test."""
    return ".".join(map(str, value)) if isinstance(value, tuple) else None


@pytest.mark.parametrize("name", SHAPES)
def test_a_whole_document(name: str) -> None:
    """A document with every key that there is has the shape, and nothing else in its place has."""
    shape = getattr(audit, name)
    assert shape(example(SHAPES[name])) is None
    assert [value for value in probes(SHAPES[name]) if shape(value) is None] == ([[]] if name == "HISTORY" else [])


@pytest.mark.parametrize(("name", "path", "description", "optional"), PLACES, ids=named)
def test_a_place(name: str, path: Path_, description: Any, optional: bool) -> None:
    """What may stand in one place of a document: nothing but its kind, and whether it may be missing."""
    shape, document = getattr(audit, name), example(SHAPES[name])
    for value in probes(description):
        changed = copy.deepcopy(document)
        holder(changed, path)[path[-1]] = value
        assert (shape(changed) is None) is allows(description, value), value
    del holder(document, path)[path[-1]]
    assert (shape(document) is None) is optional


@pytest.mark.parametrize(("name", "path", "description", "optional"), PLACES, ids=named)
def test_an_unknown_key(name: str, path: Path_, description: Any, optional: bool) -> None:
    """An object takes no key that is not known, unless it takes any."""
    shape, document = getattr(audit, name), example(SHAPES[name])
    inside = holder(document, path)
    if isinstance(inside, dict) and "any" not in inside:
        inside["other"] = "x"
        assert shape(document) is not None
