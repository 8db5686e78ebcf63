"""The words in which a turn can end, and the value that carries one.

An outcome is a value, never an exception: a refused stream is an ordinary result of reading.
This file knows the words only, not what leads to them.
"""

from dataclasses import dataclass
from typing import NewType

Outcome = NewType("Outcome", str)

COMPLETE = Outcome("COMPLETE")
INCOMPLETE_STREAM = Outcome("INCOMPLETE_STREAM")
INCOMPLETE_FINISH = Outcome("INCOMPLETE_FINISH")
UNSUPPORTED_OUTCOME = Outcome("UNSUPPORTED_OUTCOME")
PROVIDER_ERROR = Outcome("PROVIDER_ERROR")
PROTOCOL = Outcome("PROTOCOL")
INVALID_JSON = Outcome("INVALID_JSON")
INVALID_UTF8 = Outcome("INVALID_UTF8")
LIMIT = Outcome("LIMIT")
CONTENT_TYPE = Outcome("CONTENT_TYPE")
CANCELLED = Outcome("CANCELLED")
READ_TIMEOUT = Outcome("READ_TIMEOUT")
DEADLINE = Outcome("DEADLINE")
REJECTED = Outcome("REJECTED")


def http_outcome(status: int) -> Outcome:
    """Give the outcome of a response whose status is not 200."""
    return Outcome(f"HTTP_{status}")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What settles a turn as refused: the outcome, and one clause that says why."""

    outcome: Outcome
    why: str
