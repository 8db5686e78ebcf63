"""Measures what an object holds on to, in bytes, so that hoarding shows on a short input already."""

import gc
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

# What is there once however many bodies are read.
_SHARED = (type, ModuleType, BuiltinFunctionType)


def held_bytes(root: object) -> int:
    """Add up the sizes of all that can be reached from an object, classes, modules and globals apart."""
    seen: set[int] = set()
    total = 0
    todo = [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, _SHARED):
            continue
        seen.add(id(thing))
        total += sys.getsizeof(thing)
        todo += thing.__closure__ or () if isinstance(thing, FunctionType) else gc.get_referents(thing)
    return total
