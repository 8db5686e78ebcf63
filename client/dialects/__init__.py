"""The dialects, one file each: how a provider spells its stream.

Discovery is by file: the dialect `openai-chat` is the module `openai_chat` with a function
`signals(event, max_depth)`. A dialect knows its provider's events and no contract, no limit but
the JSON depth, and no turn.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from ..framer import Event
from ..outcomes import Fault
from ..signals import Signal

Dialect = Callable[[Event, int], list[Signal] | Fault]


def find(name: str) -> Dialect:
    """Give the dialect of this name; raise LookupError if there is none."""
    module = f"{__name__}.{name.replace('-', '_')}"
    if not name.replace("-", "").isalnum() or find_spec(module) is None:
        raise LookupError(f"no dialect {name!r} in {__name__}")
    dialect: Dialect = import_module(module).signals
    return dialect
