"""Canonical JSON: one spelling for each value, so that it can be hashed and compared.

Sorted keys, no white space, ASCII only. With integers below 2^53 and no floats this equals
RFC 8785 for the ASCII keys that the records use.
"""

import json


def canonical(value: object) -> bytes:
    """Spell a value canonically, without a line end; ValueError for NaN and Infinity."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def line(value: object) -> bytes:
    """Spell a value as one line of a record file."""
    return canonical(value) + b"\n"
