"""`subjects/protocol.py` and the schemas of the subject's messages: two spellings of one form."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.names import UsageError
from harness.schema import check
from harness.subjects.protocol import wrong_claim, wrong_ready

CLAIM: dict[str, Any] = {
    "kind": "claim",
    "trial": "t",
    "history": [{"role": "user", "content": "x"}],
    "preview": "p",
    "raised": {"type": "E", "chain": ["F"], "message": "m"},
    "hints": {"finish_reason": "stop", "other": [1]},
    "outcome": "COMPLETE",
    "status": 200,
    "reads": 1,
    "consumed_bytes": 1,
    "consumed_sha256": "0" * 64,
    "transport_end": "eof",
}
READY: dict[str, Any] = {
    "kind": "ready",
    "protocol": "endmark.subject/1",
    "name": "n",
    "version": "1",
    "language": "l",
    "dialects": ["openai-chat"],
    "capabilities": ["cancel"],
}

# What another program may put anywhere: the edges of every bound, and every type of JSON.
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3.0, 0.5, 2**53 - 1, 2**53, 10**30),
    *("", "x", "x" * 100, "x" * 101, "x" * 200, "x" * 201, "0" * 64, "0" * 64 + "\n", "A" * 64, "0" * 63),
    *("eof", "left", "gone", "claim", "ready", "endmark.subject/1", "endmark.subject/2"),
    *([], ["x"], [1], [None], ["x"] * 20, ["x"] * 21, ["x"] * 50, ["x"] * 51, ["x" * 201]),
    *({}, {"finish_reason": None}, {"finish_reason": 1}, {"x": 1}),
    *([{"role": "user"}], [{"role": "user", "content": 1}], [{"role": "u", "content": "c", "x": 1}], [{}]),
    *([{"role": "u", "content": "c"}] * n for n in (1, 1000, 1001)),
    *({"type": "E", "chain": chain, "message": "m"} for chain in ([], ["x"] * 20, ["x"] * 21, [1], ["x" * 201], None)),
    *({"type": kind, "chain": [], "message": "m"} for kind in ("x" * 200, "x" * 201, None)),
    *(
        {"type": "E", "chain": [], "message": 1},
        {"type": "E", "chain": []},
        {"type": "E", "chain": [], "message": "", "x": 1},
    ),
]


def by_schema(message: dict[str, Any], schema: str) -> bool:
    """Say whether the schema takes a message."""
    try:
        check(message, schema, schema)
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("key", [*(key for key in CLAIM if key != "kind"), "colour"])
def test_claim(key: str) -> None:
    """Table and schema take the same claims, whatever stands at one key."""
    for value in VALUES:
        wrong = wrong_claim(CLAIM | {key: value})
        assert (wrong is None) == by_schema(CLAIM | {key: value}, "claim"), (value, wrong)
    without = {name: value for name, value in CLAIM.items() if name != key}
    assert (wrong_claim(without) is None) == by_schema(without, "claim")


@pytest.mark.parametrize("key", [*READY, "colour"])
def test_ready(key: str) -> None:
    """Table and schema take the same `ready`, whatever stands at one key."""
    for value in VALUES:
        message = READY | {key: value}
        assert (wrong_ready(message) is None) == by_schema(message, "ready"), (value, wrong_ready(message))
    without = {name: value for name, value in READY.items() if name != key}
    assert (wrong_ready(without) is None) == by_schema(without, "ready")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(sorted(CLAIM.keys() - {"kind"})) | st.text(max_size=5), JSON, max_size=3))
def test_any_claim(changes: dict[str, Any]) -> None:
    """Table and schema take the same claims, whatever stands anywhere, and neither raises anything."""
    assert (wrong_claim(CLAIM | changes) is None) == by_schema(CLAIM | changes, "claim")


@pytest.mark.parametrize("key", [*CLAIM, "colour"])
def test_the_words_name_the_key(key: str) -> None:
    """What is wrong names the key, in one short line."""
    wrong = wrong_claim(CLAIM | {key: 3.5})
    assert wrong
    assert key in wrong
    assert "\n" not in wrong
