"""Every check of the court is needed: switched off, some tampered archive would pass.

A check that no archive needs is either shadowed by another, and then it is noise, or untested. So
each place in audit.py that reports a finding, that yields a verdict, or that says what is wrong with
a case or a request is found by its syntax, and switched off on its own. What a switch does:

    found.add("E-...", ...)      is not called
    return "VERDICT", ...        is skipped, and the function goes on
    return f"what is wrong"      the same, in the functions that explain a finding
    problem = f"what is wrong"   the same

Then the rows of both tables that name the code are asked, and one of them must pass as sound: no
finding, every verdict AGREE, no crash.
"""

import ast
import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from .forge import AUDIT, CONTRACT, Bench, Forge, ask, codes
from .mutations import ROWS, Mutation, apply, ask_about
from .session_mutations import SESSION_ROWS

# Functions that say what is wrong, for one finding: code -> function.
EXPLAINED = {
    "case_problem": "E-CASE",
    "exchange_problem": "E-CASE",
    "session_problem": "E-CASE",
    "moves_problem": "E-CASE",
    "request_problem": "E-REQUEST",
    "load_suite": "E-SUITE",
    "label_document": "E-LABEL",
    "session_label_problem": "E-LABEL",
    "load_contract": "E-CONTRACT",
}

# Switched off, these crash, which is no pass either: what follows takes for granted what they check.
GUARDS = {
    ("exchange_problem", "E-CASE", 0): "a body that is not there",
    ("label_document", "E-LABEL", 0): "a contract that the label does not name",
    ("request_problem", "E-REQUEST", 0): "a request that has no parts",
    ("request_problem", "E-REQUEST", 2): "a body that was not read",
}


VERDICT = "verdict"


class Site(NamedTuple):
    """One check: the function it is in, its code (or VERDICT), and its number among those of that function."""

    function: str
    code: str
    number: int


class Switches(ast.NodeTransformer):
    """Puts a switch around every check, and lists them."""

    def __init__(self, rules: set[str]) -> None:
        self.rules = rules
        self.sites: list[Site] = []
        self.function = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, self.function = self.function, node.name
        self.generic_visit(node)
        self.function = outer
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("add", "note") and node.args:
            code = node.args[0]
            if isinstance(code, ast.Constant) and isinstance(code.value, str) and code.value.isupper():
                return ast.IfExp(test=self.switch(code.value), body=node, orelse=ast.Constant(None))
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        code = EXPLAINED.get(self.function, "")
        wrong = isinstance(node.value, ast.JoinedStr) if code else isinstance(node.value, ast.Tuple)
        if wrong and (code or self.function in self.rules):
            return ast.If(test=self.switch(code or VERDICT), body=[node], orelse=[])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        explains = isinstance(node.value, ast.JoinedStr) and ast.unparse(target) == "problem"
        if explains and self.function in EXPLAINED:
            return ast.If(test=self.switch(EXPLAINED[self.function]), body=[node], orelse=[])
        return node

    def switch(self, code: str) -> ast.expr:
        number = sum(site.function == self.function and site.code == code for site in self.sites)
        self.sites.append(Site(self.function, code, number))
        return ast.Call(func=ast.Name("_on", ast.Load()), args=[ast.Constant(len(self.sites) - 1)], keywords=[])


def verdict_rules(tree: ast.Module) -> set[str]:
    """Give the functions that yield verdicts, from the two tables that name them."""
    tables = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    rules = [tables[name] for name in ("VERDICT_RULES", "SESSION_RULES")]
    return {name.id for rule in rules for name in ast.walk(rule) if isinstance(name, ast.Name)}


@functools.cache
def verdict_words(function: str) -> set[str]:
    """Give the words in capitals that a function mentions."""
    tree = ast.parse(AUDIT.read_text(encoding="utf-8"))
    body = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    texts = (node.value for node in ast.walk(body) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text.isupper()}


@functools.cache
def switched() -> tuple[ModuleType, list[Site]]:
    """Give the court with a switch at every check, all on, and the list of them."""
    tree = ast.parse(AUDIT.read_text(encoding="utf-8"))
    switches = Switches(verdict_rules(tree))
    tree = ast.fix_missing_locations(switches.visit(tree))
    module = ModuleType("court_with_switches")
    module.__dict__.update(_off=None, _on=lambda number: number != module.__dict__["_off"])
    exec(compile(tree, str(AUDIT), "exec"), module.__dict__)
    return module, switches.sites


@contextlib.contextmanager
def off(site: Site) -> Iterator[ModuleType]:
    """Give the court with one check switched off."""
    module, sites = switched()
    module.__dict__["_off"] = sites.index(site)
    try:
        yield module
    finally:
        module.__dict__["_off"] = None


SITES = switched()[1]
VERDICTS = [site for site in SITES if site.code == VERDICT]
NOTES = [site for site in SITES if site.code.startswith("N-")]
FINDINGS = [site for site in SITES if site not in (*VERDICTS, *NOTES)]

Benches = dict[bool, Bench]  # where the archives of sessions are spoilt, and the others


@pytest.fixture(scope="session")
def benches(bench: Bench, talks_bench: Bench) -> Benches:
    """Give a bench for every row."""
    return {False: bench, True: talks_bench}


def candidates(site: Site) -> list[Mutation]:
    """Give the rows that may need this check: those that expect its code, or a verdict of its function."""
    words = verdict_words(site.function) if site.code == VERDICT else {site.code}
    return [row for row in ROWS + SESSION_ROWS if row.expected in words]


def passes(row: Mutation, court: ModuleType, benches: Benches) -> bool:
    """Say whether the court takes a tampered archive for a sound one."""
    bench = benches[row.sessions]
    archive = bench.fresh()
    apply(row, archive)
    try:
        return not codes(ask_about(row, court, archive, bench.good))
    except Exception:
        return False  # a crash exits with 2: not a pass


def crashes(row: Mutation, court: ModuleType, benches: Benches) -> bool:
    """Say whether the court breaks over a tampered archive."""
    bench = benches[row.sessions]
    archive = bench.fresh()
    apply(row, archive)
    try:
        ask_about(row, court, archive, bench.good)
    except (TypeError, LookupError, UnboundLocalError):
        return True
    return False


def named(site: Site) -> str:
    """Give a site's name as the name of a test."""
    return f"{site.code}-{site.function}-{site.number}"


def test_the_checks_are_found() -> None:
    """The syntax finds the checks; if audit.py words them differently one day, this says so."""
    assert len(FINDINGS) > 80
    assert len(VERDICTS) >= 25
    assert "CONTROL_DID_NOT_FAIL" in {site.code for site in FINDINGS}
    assert set(GUARDS) <= set(SITES)
    assert {site.code for site in NOTES} == {"N-UNPINNED", "N-PARTIAL"}


def test_with_every_switch_on_nothing_is_different(good: Path, talks: Path, court: ModuleType) -> None:
    """The switches themselves change nothing."""
    for archive in (good, talks):
        assert ask(switched()[0], archive) == ask(court, archive)


@pytest.mark.parametrize("site", [site for site in FINDINGS + VERDICTS if site not in GUARDS], ids=named)
def test_this_check_is_needed(site: Site, benches: Benches) -> None:
    """Without it, at least one tampered archive passes as sound."""
    with off(site) as court:
        assert any(passes(row, court, benches) for row in candidates(site))


@pytest.mark.parametrize("site", [site for site in SITES if site in GUARDS], ids=named)
def test_this_guard_is_needed(site: Site, benches: Benches) -> None:
    """Without it, at least one tampered archive makes the court crash."""
    with off(site) as court:
        assert any(crashes(row, court, benches) for row in candidates(site))


@pytest.mark.parametrize("site", NOTES, ids=named)
def test_this_note_is_needed(site: Site, archive: Forge) -> None:
    """Without it, a part of a suite that is not shipped would be told apart from a whole one less."""
    archive.rename_suite()
    archive.keep_cases("cancel")
    archive.replace(CONTRACT, b"non-empty", b"any")
    archive.freeze("contracts")
    archive.reseal()
    with off(site) as court:
        silenced = ask(court, archive.folder)
    spoken = ask(switched()[0], archive.folder)
    assert len(spoken["notes"]) == len(NOTES) == len(silenced["notes"]) + 1
    assert not codes(spoken)
