"""What every framing gives: events, and last the fault that ends them.

A framer takes bytes in pieces that end anywhere; what comes out must not depend on the cuts.
"""

from dataclasses import dataclass
from typing import Protocol

from .outcomes import Fault


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One dispatched event: its type (`message` if none was set) and its data."""

    type: str
    data: str


class Framer(Protocol):
    """Cuts one response body into events."""

    def feed(self, data: bytes) -> list[Event | Fault]:
        """Give the events that these bytes complete, and last the fault that they hold, if any.

        Raises RuntimeError when fed again after a fault: that is the caller's mistake.
        """

    def flush(self) -> list[Event | Fault]:
        """Give what the end of the body cut, as if its ending had come (`last_event = dispatch`)."""


class FaultedError(RuntimeError):
    """A framer was fed after a fault, by the fault of its caller."""

    def __init__(self) -> None:
        super().__init__("the framer was fed after a fault")
