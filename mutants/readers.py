"""Finds the lines that depend on what a file does when it is imported; knows syntax and nothing of tests.

A constant that is changed changes what the functions do that read it, or that read what was made of it.
"""

from __future__ import annotations

import ast
from collections import defaultdict

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def loads(node: ast.AST) -> list[ast.Name]:
    """The names that are read in a node."""
    return [name for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)]


def span(node: ast.AST) -> range:
    """The lines of a node."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def at_import(node: ast.AST) -> list[ast.AST]:
    """What of a definition runs when the file is imported."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.args, *node.decorator_list]
    if isinstance(node, ast.ClassDef):
        inner = [
            part for child in node.body for part in (at_import(child) if isinstance(child, Definition) else [child])
        ]
        return [*node.bases, *node.decorator_list, *inner]
    return [node]


def assigned(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, Definition):
        return [node.name]
    return [name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]


def readers(text: str) -> dict[str, set[int]]:
    """Give, for every name of a module, the lines of functions that depend on it."""
    lines: dict[str, set[int]] = defaultdict(set)
    made_of: dict[str, set[str]] = defaultdict(set)
    for node in ast.parse(text).body:
        early = {name.id for part in at_import(node) for name in loads(part)}
        for name in early:
            made_of[name].update(assigned(node))
        for function in ast.walk(node):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for child in function.body:
                    for load in loads(child):
                        lines[load.id].add(load.lineno)
        if isinstance(node, Definition):
            lines[node.name].update(span(node))
    return {name: set().union(*(lines[each] for each in closure(name, made_of))) for name in {*lines, *made_of}}


def closure(name: str, made_of: dict[str, set[str]]) -> set[str]:
    """A name, and all that was made of it."""
    found, left = {name}, [name]
    while left:
        more = made_of[left.pop()] - found
        found |= more
        left += more
    return found
