"""What every framing gives: events, and last the fault that ends them.

A framer takes bytes in pieces that end anywhere; what comes out must not depend on the cuts.
"""

from typing import NamedTuple, Protocol

from .outcomes import Fault

MESSAGE = "message"  # the type of an event that names none (HTML 9.2.6)


class Event(NamedTuple):
    """One dispatched event that names its type, and its data as UTF-8."""

    type: str
    data: bytes


# What a framer gives, in order. Nearly every event of most streams names no type: such a one is its
# data and nothing else, and has the type `message`.
Item = bytes | Event | Fault


class Framer(Protocol):
    """Cuts one response body into events."""

    events: int  # how many were dispatched

    def feed(self, data: bytes) -> list[Item]:
        """Give the events that these bytes complete, and last the fault that they hold, if any.

        Raises RuntimeError when fed again after a fault: that is the caller's mistake.
        """

    def flush(self) -> list[Item]:
        """Give what the end of the body cut, as if its ending had come (`last_event = dispatch`)."""


class FaultedError(RuntimeError):
    """A framer was fed after a fault, by the fault of its caller."""

    def __init__(self) -> None:
        super().__init__("the framer was fed after a fault")
