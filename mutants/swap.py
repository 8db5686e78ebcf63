"""Puts the changed code of a file into functions that are loaded already; knows code objects and nothing of tests.

A change inside a function needs no import: every function that runs the old code, in whatever module it was
loaded and by whatever name it is held, is given the new. A file that is a target alone is loaded again in place for
a change of what runs at import; of a package others hold names, and it is not.
"""

from __future__ import annotations
import __future__

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType


class CannotSwapError(Exception):
    """The change is of what runs at import."""


Spot = tuple[str, str, int]  # file, qualified name, first line: what a code object is known by


def spot(code: CodeType) -> Spot:
    """Where a code object comes from."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def functions(path: str) -> dict[Spot, list[FunctionType]]:
    """Every function that is loaded from a file."""
    found: dict[Spot, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path:
            found.setdefault(spot(thing.__code__), []).append(thing)
    return found


def compiled(code: str, path: str, first_line: int) -> CodeType:
    """Compile a statement as if it stood in its file."""
    return compile("\n" * (first_line - 1) + code, path, "exec", __future__.annotations.compiler_flag, True)


def alone(code: CodeType) -> CodeType:
    """A code object without those of the functions inside it, nor where in the file it stands."""
    consts = tuple(None if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_consts=consts, co_linetable=b"")


def inner(code: CodeType) -> list[CodeType]:
    """The code objects of the functions inside another."""
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def differences(old: CodeType, new: CodeType, imported: bool = True) -> Iterator[tuple[CodeType, CodeType]]:
    """Give the functions that differ, before and after; the outer one of two as well."""
    same = alone(old) == alone(new)
    if imported and not same:
        raise CannotSwapError
    if not imported and old != new:
        yield old, new
    if len(inner(old)) == len(inner(new)):
        for one, other in zip(inner(old), inner(new), strict=True):
            # A class body runs at import, the functions in it do not.
            yield from differences(one, other, imported and is_class(one))


def load_again(statements: list[CodeType], loaded: dict[Spot, list[FunctionType]]) -> None:
    """Run the statements of a file in every module that has them."""
    modules = {id(function.__globals__): function.__globals__ for found in loaded.values() for function in found}
    for module in modules.values():
        for statement in statements:
            exec(statement, module)


def is_class(code: CodeType) -> bool:
    """Whether code is that of a class body."""
    return "__qualname__" in code.co_names and "__module__" in code.co_names


def swap(old: CodeType, new: CodeType, loaded: dict[Spot, list[FunctionType]]) -> None:
    """Give the new code of a statement to all functions that have the old one, or CannotSwapError."""
    pairs = list(differences(old, new))
    if not pairs:
        raise CannotSwapError
    for before, after in pairs:
        for function in loaded.get(spot(before), []):
            if function.__code__.co_freevars != after.co_freevars:
                raise CannotSwapError
            function.__code__ = after
