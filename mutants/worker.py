"""Runs the tests on one mutant after another, each in a fork; knows pytest and nothing of syntax.

All tests are collected and run once on the unchanged source, with the lines that each of them runs noted.
Then each mutant has a fork of that process: its code is swapped in, the tests that run its lines are
asked, those that have caught most before the others, and the first that fails has caught it. In a package, a
mutant of what runs at import has a fork that has imported nothing of the project yet, and asks all tests.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from . import inside, swap, tree
from .make import Mutant, Source
from .readers import readers

SURVIVED, CAUGHT, AT_IMPORT, NOT_RUN = range(4)  # how a fork ends
MOST_BYTES = 4 << 30
WALL_S = 300
LEAST_CPU_S = 2.0
NEAR_LINES = 15
TIMES = tree.PLACE / "times.json"


class Target(NamedTuple):
    """One table [target.NAME] of rules.toml."""

    files: list[str]
    tests: list[str]
    without: list[str]
    most_cpu_s: float  # of tests that one mutant is asked
    command: str = ""  # a file that tests run as a command


Job = tuple[Source, Mutant]


class File(NamedTuple):
    """A source that is loaded."""

    source: Source
    path: str
    statements: list[CodeType]
    loaded: dict[swap.Spot, list[FunctionType]]
    readers: dict[str, set[int]]


class Result(NamedTuple):
    """What became of a mutant."""

    verdict: str  # caught, timed out, survived, not run
    by: str = ""  # the test


# -- one fork --------------------------------------------------------------------------------------


def silence() -> None:
    """Print to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def limit_memory() -> None:
    """A mutant that would fill the machine fails instead."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def allow(cpu_s: float) -> None:
    """End this process once it has run that much longer; SIGPROF ends what does not come back to Python, too."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)


def in_fork(work: Callable[[Callable[[str], None]], int]) -> tuple[int, str]:
    """Give how a fork ended (its exit code, or minus the signal) and the last words it said."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = CAUGHT
        with contextlib.suppress(BaseException):
            os.setsid()
            silence()
            limit_memory()
            code = work(lambda words: void(os.write(writing, words.encode() + b"\n")))
        os._exit(code)
    os.close(writing)
    code = ended(child)
    with open(reading, encoding="utf-8") as said:
        return code, said.read().strip().rpartition("\n")[2]


def void(_: object) -> None:
    """Nothing."""


def ended(child: int) -> int:
    """Wait for a fork, but not for ever, and end all that it started."""
    watched = os.pidfd_open(child)
    ready, _, _ = select.select([watched], [], [], WALL_S)
    os.close(watched)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else -signal.SIGPROF


def result_of(code: int, said: str) -> Result:
    """What a fork's end says of its mutant."""
    if code == SURVIVED:
        return Result("survived")
    if code == -signal.SIGPROF:
        return Result("timed out", said)
    return Result("caught", said)


# -- tests that are loaded -------------------------------------------------------------------------


class Loaded:
    """A plugin: the tests of a target, loaded and run once, then asked about mutants."""

    def __init__(self, target: Target, todo: list[Job], done: Callable[[Mutant, Result], None]) -> None:
        self.target = target
        self.todo = todo
        self.done = done
        self.caught: Counter[str] = Counter()
        self.cpu_s: dict[str, float] = {}
        self.broken: list[str] = []
        self.files: dict[str, File] = {}
        self.coverage = coverage.Coverage(data_file=None, include=list(covered(target)), config_file=False)
        self.coverage.start()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not any(name in item.nodeid for name in self.target.without)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.broken.append("collecting")
            return True
        for item in session.items:
            self.run_once(item)
        self.coverage.stop()
        if not self.broken:
            self.ask(session)
        return True

    def run_once(self, item: pytest.Item) -> None:
        self.coverage.switch_context(item.nodeid)
        before = time.process_time()
        failed = fails(item, item.session)
        self.cpu_s[item.nodeid] = time.process_time() - before
        if failed:
            self.broken.append(item.nodeid)

    def ask(self, session: pytest.Session) -> None:
        data = self.coverage.get_data()
        self.runs = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        self.items = {item.nodeid: item for item in session.items}
        for turn, (source, mutant) in enumerate(self.todo):
            file = self.file(source)
            tree.put(source.file, source.text(mutant), turn)
            code, said = in_fork(lambda say, job=(file, mutant): self.try_mutant(*job, say))
            tree.put(source.file, source.text(), turn)
            if code != AT_IMPORT:
                result = Result("not run") if code == NOT_RUN else result_of(code, said)
                self.caught[result.by] += result.verdict == "caught"
                self.done(mutant, result)

    def file(self, source: Source) -> File:
        if source.file not in self.files:
            path = str(tree.TREE / source.file)
            codes = [swap.compiled(piece, path, source.first_line(at)) for at, piece in enumerate(source.pieces, -1)]
            self.files[source.file] = File(source, path, codes, swap.functions(path), readers(source.text()))
        return self.files[source.file]

    def chosen(self, file: File, lines: Iterable[int], near_lines: int) -> list[Any]:
        """The tests to ask: of those that run a line the likely ones first, as far as the time goes.

        Likely are those that have caught most so far, then those that run a line nearby that few others run, and are
        quick.
        """
        runs = self.runs.get(file.path, {})
        names = {name for line in lines for name in runs.get(line, ()) if name}
        first = {name for name, _ in self.caught.most_common(5)}
        rarity: dict[str, int] = {}
        for near in {line + off for line in lines for off in range(-near_lines, near_lines + 1)} if near_lines else ():
            for name in runs.get(near, ()):
                rarity[name] = min(rarity.get(name, len(runs[near])), len(runs[near]))
        order = sorted(names, key=lambda name: (name not in first, rarity.get(name, 1) * self.cpu_s[name]))
        times = itertools.accumulate(self.cpu_s[name] for name in order)
        return [self.items[name] for name, cpu_s in zip(order, times, strict=True) if cpu_s < self.target.most_cpu_s]

    def try_mutant(self, file: File, mutant: Mutant, say: Callable[[str], None]) -> int:
        at, (first, last) = mutant.statement + 1, mutant.lines
        lines: Iterable[int] = range(first, last + 1)
        near = NEAR_LINES
        new = swap.compiled(mutant.code, file.path, file.source.first_line(mutant.statement))
        try:
            swap.swap(file.statements[at], new, file.loaded)
        except swap.CannotSwapError:
            if len(self.target.files) > 1 or not self.target.files[0].endswith(".py"):
                return AT_IMPORT
            swap.load_again([*file.statements[:at], new, *file.statements[at + 1 :]], file.loaded)
            lines, near = file.readers.get(mutant.key.function.partition(".")[0], lines), 0
        items = self.chosen(file, lines, near)
        for item, following in zip(items, [*items[1:], None], strict=True):
            say(item.nodeid)
            allow(LEAST_CPU_S + 10 * self.cpu_s[item.nodeid])
            if fails(item, following or item.session):
                return CAUGHT
        return SURVIVED if items else NOT_RUN


def covered(target: Target) -> Iterator[str]:
    """The files of a target, as coverage wants them."""
    for file in target.files:
        path = tree.TREE / file
        yield str(path if path.is_file() else path / "*")


def fails(item: pytest.Item, following: Any) -> bool:
    """Run one test, and keep the fixtures that the following one (or the session) needs."""
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


# -- tests that are not loaded yet -----------------------------------------------------------------


class Fresh:
    """A plugin for a fork that has imported nothing of the project: it says which test fails first."""

    def __init__(self, target: Target, cpu_s: dict[str, float], say: Callable[[str], None]) -> None:
        self.target = target
        self.cpu_s = cpu_s
        self.say = say

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not any(name in item.nodeid for name in self.target.without)]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say(nodeid)
        allow(LEAST_CPU_S + 10 * self.cpu_s.get(nodeid, 1))


def load_and_ask(target: Target, todo: list[Job], done: Callable[[Mutant, Result], None]) -> None:
    """Try all mutants but those of what runs at import; a process of its own, which exits with 1 where a test fails."""
    enter(target)
    plugin = Loaded(target, todo, done)
    pytest.main(words(target), plugins=[plugin])
    for name in plugin.broken:
        print(f"mutants: fails without any change: {name}", file=sys.stderr)
    TIMES.write_text(json.dumps(plugin.cpu_s), "utf-8")
    sys.exit(bool(plugin.broken))


def ask_fresh(target: Target, todo: list[Job], done: Callable[[Mutant, Result], None]) -> None:
    """Try mutants of what runs at import; a process of its own, which imports nothing of the project."""
    enter(target)
    cpu_s = json.loads(TIMES.read_text("utf-8"))
    for turn, (source, mutant) in enumerate(todo):
        tree.put(source.file, source.text(mutant), turn)
        done(mutant, result_of(*in_fork(lambda say: try_at_import(target, cpu_s, say))))
        tree.put(source.file, source.text(), turn)


def try_at_import(target: Target, cpu_s: dict[str, float], say: Callable[[str], None]) -> int:
    """Ask every test about the source as it is in the tree."""
    say("an import")
    allow(30)
    return CAUGHT if pytest.main(["-x", *words(target)], plugins=[Fresh(target, cpu_s, say)]) else SURVIVED


def words(target: Target) -> list[str]:
    """The command line of pytest."""
    quiet = ["-qq", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "tmp_path_retention_policy=none"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported before
    return [*quiet, f"--basetemp={tree.PLACE / 'tmp'}", *target.tests]


def enter(target: Target) -> None:
    """Be in the tree, as a process that was started there."""
    os.chdir(tree.TREE)
    sys.path[0] = str(tree.TREE)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # for the processes that tests start
    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")
    if target.command:
        inside.patch(Path(tree.TREE / target.command))
