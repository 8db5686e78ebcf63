"""What the dialects with named events share: the event field and the JSON `type` say the same.

Which types there are, and what is made of an unknown one, is each dialect's own table.
"""

from collections.abc import Callable, Mapping

from ..signals import Signal
from . import shape
from .shape import Object

Readers = Mapping[str, Callable[[Object], list[Signal]]]


def read_named(event: str, value: Object, readers: Readers) -> tuple[str, list[Signal] | None]:
    """Give the type of an event and its signals, None where no reader knows the type.

    A stream without event fields has the type `message` for all, and is judged by the JSON alone.
    """
    kind = shape.text(value, "type")
    if event not in ("message", kind):
        raise shape.wrong(f"an event named {event!r} of the type {kind!r}")
    known = readers.get(kind)
    return kind, known(value) if known else None
