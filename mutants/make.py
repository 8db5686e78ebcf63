"""Makes the mutants of a source; knows its syntax and the rules, and nothing of tests.

The changes are those of mutmut (a locked version) and two more: a call that stands alone is left out, and
a condition that is no comparison is turned round. A mutant is known by its function, its line and what
the line becomes, so that it is the same one after the rest of the file has changed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import libcst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

# Code that mutmut does not change either, what runs when a file is imported and what only a type checker reads.
LEFT_ALONE = (libcst.Annotation, libcst.Decorator, libcst.FormattedString, libcst.Import, libcst.ImportFrom)
COMPOUND = (libcst.If, libcst.While, libcst.For, libcst.With, libcst.Try)
UNTOUCHED_CALLS = ("len", "isinstance")


class Rules(NamedTuple):
    """What is left alone: the table [skip] of rules.toml."""

    constants: list[str]
    messages: dict[str, int]
    prose: list[str]
    spaced: list[str]


class Key(NamedTuple):
    """What a mutant is known by."""

    file: str
    function: str  # or the name of a constant
    line: str
    becomes: str
    number: int  # among those of the same line and change


class Mutant(NamedTuple):
    """One change of a file."""

    key: Key
    statement: int  # of the module, by position
    code: str  # of that statement, changed
    lines: tuple[int, int]  # first and last of what has to run for the change to matter


class Source(NamedTuple):
    """A file as a list of statements, which joined again are the file."""

    file: str
    pieces: list[str]  # the head, each statement with the space before it, and the foot

    def text(self, mutant: Mutant | None = None) -> str:
        """The whole file, as it is or changed."""
        pieces = list(self.pieces)
        if mutant is not None:
            pieces[mutant.statement + 1] = mutant.code
        return "".join(pieces)

    def first_line(self, statement: int) -> int:
        """The line on which a statement with its space begins, from 1."""
        return 1 + "".join(self.pieces[: statement + 1]).count("\n")


class Place(NamedTuple):
    """Where a node stands."""

    path: tuple[str, ...]  # names of the classes and functions around it
    unit: Any  # the statement, or the head of a statement, that runs it
    statement: int


def mutants(file: str, text: str, rules: Rules, part: str = "") -> tuple[Source, list[Mutant]]:
    """Give a source in pieces, and its mutants in the order of the file; a part is a function, class or constant."""
    module = MetadataWrapper(libcst.parse_module(text), unsafe_skip_copy=True)
    where = module.resolve(PositionProvider)
    tree: Any = module.module
    pieces = [tree.code_for_node(statement) for statement in tree.body]
    head = text[: text.index("".join(pieces))]
    source = Source(file, [head, *pieces, text[len(head) + sum(map(len, pieces)) :]])
    found: list[Mutant] = []
    seen: Counter[tuple[str, str, str]] = Counter()
    for node, place in walk(tree, rules):
        whole, function = tree.body[place.statement], ".".join(place.path)
        for changed in changes(node, rules, function) if is_in(function, part) else ():
            code = tree.code_for_node(changed if node is whole else whole.deep_replace(node, changed))
            line, becomes = first_difference(pieces[place.statement], code)
            if line != becomes and compiles(code):
                number = seen[function, line, becomes]
                seen[function, line, becomes] += 1
                span = where[place.unit]
                key = Key(file, function, line, becomes, number)
                found.append(Mutant(key, place.statement, code, (span.start.line, span.end.line)))
    return source, found


def is_in(function: str, part: str) -> bool:
    """Whether a function is a part, or is inside it."""
    return not part or f"{function}.".startswith(f"{part}.")


def compiles(code: str) -> bool:
    """Say whether a statement is one."""
    try:
        compile(code, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True


def first_difference(before: str, after: str) -> tuple[str, str]:
    """Give the first line that differs, without the space around it, before and after."""
    for one, other in itertools.zip_longest(before.splitlines(), after.splitlines(), fillvalue=""):
        if one != other:
            return one.strip(), other.strip()
    return "", ""


# -- which nodes -----------------------------------------------------------------------------------


def walk(tree: Any, rules: Rules) -> Iterator[tuple[Any, Place]]:
    """Give every node that may be changed."""
    for number, statement in enumerate(tree.body):
        name = constant_name(statement)
        if name not in rules.constants and not is_main(statement):
            yield from below(statement, Place((name,) if name else (), statement, number), rules)


def below(node: Any, place: Place, rules: Rules) -> Iterator[tuple[Any, Place]]:
    """Give a node and those below it."""
    if isinstance(node, LEFT_ALONE) or is_docstring(node):
        return
    if isinstance(node, libcst.FunctionDef | libcst.ClassDef):
        place = place._replace(path=(*place.path, node.name.value))
    elif isinstance(node, libcst.SimpleStatementLine):
        place = place._replace(unit=node)
    yield node, place
    for child in children(node, rules):
        head = isinstance(node, COMPOUND) and isinstance(child, libcst.BaseExpression | libcst.WithItem)
        yield from below(child, place._replace(unit=child) if head else place, rules)


def children(node: Any, rules: Rules) -> list[Any]:
    """Give the nodes below one, without the words for a person."""
    if not isinstance(node, libcst.Call):
        return list(node.children)
    name = called(node)
    if name in rules.prose:
        return []
    wordy = node.args[rules.messages[name] :] if name in rules.messages else ()
    return [child for child in node.children if child not in wordy]


def called(call: Any) -> str:
    """The last name of what is called."""
    end = call.func.attr if isinstance(call.func, libcst.Attribute) else call.func
    return str(end.value) if isinstance(end, libcst.Name) else ""


def constant_name(statement: Any) -> str:
    """The name that a statement of a module assigns, or "" for another statement."""
    small = statement.body[0] if isinstance(statement, libcst.SimpleStatementLine) else None
    target = None
    if isinstance(small, libcst.Assign):
        target = small.targets[0].target
    elif isinstance(small, libcst.AnnAssign):
        target = small.target
    return str(target.value) if isinstance(target, libcst.Name) else ""


def is_main(statement: Any) -> bool:
    """Whether a statement is `if __name__ == ...`."""
    return isinstance(statement, libcst.If) and "__name__" in libcst.Module([]).code_for_node(statement.test)


def is_docstring(node: Any) -> bool:
    """Whether a statement is a string alone."""
    return isinstance(node, libcst.Expr) and isinstance(node.value, libcst.BaseString)


# -- which changes ---------------------------------------------------------------------------------


def changes(node: Any, rules: Rules, path: str) -> Iterator[Any]:
    """Give what a node may become."""
    for kind, operator in mutators.mutation_operators:
        if not isinstance(node, kind):
            continue
        if operator is mutators.operator_string:
            if isinstance(node, libcst.SimpleString) and (" " not in node.value or path in rules.spaced):
                yield from itertools.islice(operator(node), 1)  # one is enough: other letters tell no more
        elif operator is mutators.operator_arg_removal:
            yield from arguments(node, rules)
        else:
            yield from operator(node)
    if isinstance(node, libcst.SimpleStatementLine) and is_call(node):
        yield node.with_changes(body=[libcst.Pass()])
    if isinstance(node, libcst.If | libcst.While | libcst.IfExp) and isinstance(
        node.test, libcst.Name | libcst.Attribute | libcst.Call | libcst.NamedExpr
    ):
        yield node.with_changes(test=turned(node.test))


def arguments(node: Any, rules: Rules) -> Iterator[Any]:
    """Each argument replaced by None; those with a name, and the last of several, left out: a default may be there."""
    name = called(node)
    if name in UNTOUCHED_CALLS or name in rules.prose:
        return
    for at, argument in enumerate(node.args[: rules.messages.get(name)]):
        rest = (node.args[:at], node.args[at + 1 :])
        if not argument.star and not is_nothing(argument.value):
            yield node.with_changes(args=[*rest[0], argument.with_changes(value=libcst.Name("None")), *rest[1]])
        if argument.keyword or 0 < at == len(node.args) - 1:
            yield node.with_changes(args=[*rest[0], *rest[1]])


def is_nothing(node: Any) -> bool:
    """Whether an expression is None, or False, for which None does as well."""
    return isinstance(node, libcst.Name) and node.value in ("None", "False")


def is_call(statement: Any) -> bool:
    """Whether a statement is a call alone."""
    small = statement.body[0]
    return isinstance(small, libcst.Expr) and isinstance(small.value, libcst.Call)


def turned(test: Any) -> Any:
    """The opposite of a condition."""
    inner = test.with_changes(lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()])
    return libcst.UnaryOperation(libcst.Not(), inner)
