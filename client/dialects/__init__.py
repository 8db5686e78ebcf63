"""The dialects, one file each: how a provider spells its stream.

Discovery is by file: the dialect `openai-chat` is the module `openai_chat` with a `DIALECT`. A
dialect turns one event into signals, without memory: it knows no contract, no limit and no turn. An
event is judged whole, so one that is refused for its shape leaves nothing behind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ..outcomes import PROTOCOL, Fault
from ..signals import Kind, Signal, plain
from ..stencil import Hole, Place, Stencil, holes
from ..strict_json import parse
from .shape import Object, WrongShapeError

_QUOTE = ord('"')

# Reads the object of one event of a type into signals; raises WrongShapeError.
Read = Callable[[str, Object], list[Signal]]

# Reads an event by its type alone, whatever its data; None where the data has to be looked at.
ReadType = Callable[[str], list[Signal] | None]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One provider's protocol: how events are read, and what the turn has to know about it."""

    read: Read
    path: str  # where a question is posted, below the base URL
    markers: Mapping[bytes, Kind] = field(default_factory=dict)  # data that is no JSON, exactly
    by_type: ReadType = lambda _: None  # for framings that carry more than JSON
    starts: bool = False  # nothing but a start may come first
    empty_arguments: bool = False  # a call without any fragment has the arguments {}

    # Where an event that is nothing but a text has it, and the members of such an event that are never
    # looked at, whatever they hold: by these a stencil may be cut.
    text_at: Place = ()
    unread: frozenset[Place] = frozenset()

    def signals(self, kind: str, data: bytes, max_depth: int) -> list[Signal] | Fault:
        """Read one event; a Fault for JSON that is none and for a shape that the protocol lacks."""
        marker = self.markers.get(data)
        if marker is not None:
            return plain(marker)
        typed = self.by_type(kind)
        if typed is not None:
            return typed
        value = parse(data, max_depth)
        if isinstance(value, Fault):
            return value
        if not isinstance(value, dict):
            return Fault(outcome=PROTOCOL, why="an event that is no JSON object")
        try:
            return self.read(kind, value) or plain(Kind.META)
        except WrongShapeError as wrong:
            return Fault(outcome=PROTOCOL, why=str(wrong))

    def stencil(self, data: bytes, signals: list[Signal], max_depth: int, before: bytes) -> Stencil | None:
        """Cut the stencil of an event that is nothing but a text; with holes for what was otherwise before."""
        if len(signals) != 1 or signals[0].kind is not Kind.TEXT or not self.text_at:
            return None
        places = self.unread | {self.text_at}
        here, there = holes(data, places), holes(before, places)
        text = here.pop(self.text_at, None)
        if text is None or data[text.start] != _QUOTE:
            return None
        unread = [
            hole for place, hole in here.items() if place not in there or _at(data, hole) != _at(before, there[place])
        ]
        return Stencil(data, text, unread, max_depth)


def _at(data: bytes, hole: Hole) -> bytes:
    return data[hole.start : hole.end]


# Modules here that are no dialect.
_SHARED = frozenset({"named", "shape"})


@cache
def names() -> list[str]:
    """List the dialects that there are files for, sorted."""
    modules = (module.name for module in iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in modules if name not in _SHARED)


@cache
def find(name: str) -> Dialect:
    """Give the dialect of this name; raise LookupError if there is none."""
    if name not in names():
        raise LookupError(f"no dialect {name!r} in {__name__} (there are: {', '.join(names())})")
    dialect: Dialect = import_module(f"{__name__}.{name.replace('-', '_')}").DIALECT
    return dialect
