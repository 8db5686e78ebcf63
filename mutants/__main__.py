"""The command: `python -m mutants PART...`; it brings sources, tests and results together and decides nothing.

A part is a file, or a function, class or constant of it: `audit.py`, `audit.py:Turn`, `client/lines.py`. What was
tried already is not tried again, so a run that was stopped goes on where it was. Exit code 0: every survivor is
judged in docs/mutants.md; 1: one is not; 2: called wrongly, or a test fails without any change.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tomllib
from pathlib import Path

from . import results, tree
from .make import Mutant, Rules, mutants
from .worker import Job, Result, Target, ask_fresh, load_and_ask


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mutants", description="Change a source, and see whether a test minds."
    )
    parser.add_argument("parts", nargs="+", metavar="PART", help="FILE or FILE:NAME, for instance audit.py:Turn")
    parser.add_argument("--again", metavar="VERDICT", default="", help="try those once more: survived, 'not run', ...")
    parser.add_argument(
        "--list", action="store_true", help="show the survivors as rows of docs/mutants.md, try nothing"
    )
    return parser.parse_args()


def files_of(target: Target) -> list[str]:
    """The source files of a target."""
    paths = [path for name in target.files for path in [tree.HOME / name, *sorted((tree.HOME / name).rglob("*.py"))]]
    return [path.relative_to(tree.HOME).as_posix() for path in paths if path.is_file()]


def jobs(part: str, targets: list[Target], rules: Rules) -> tuple[Target, list[Job]]:
    """The target of a part, and its mutants."""
    file, _, name = part.partition(":")
    for target in targets:
        found = [each for each in files_of(target) if each == file or each.startswith(file.rstrip("/") + "/")]
        if found:
            made = [mutants(each, (tree.HOME / each).read_text("utf-8"), rules, name) for each in found]
            return target, [(source, mutant) for source, all_of_it in made for mutant in all_of_it]
    raise SystemExit(f"mutants: {part}: no target of mutants/rules.toml has that file")


def done(mutant: Mutant, result: Result) -> None:
    """Keep a result, and say it."""
    results.keep(mutant.key, result)
    print(f"{result.verdict:<10} {mutant.key.file}:{mutant.key.function}  {mutant.key.becomes}", flush=True)


def run(target: Target, todo: list[Job]) -> None:
    """Try mutants: first those that can be swapped in, then what is left."""
    tree.make()
    for work in (load_and_ask, ask_fresh):
        known = results.load()
        left = [job for job in todo if job[1].key not in known]
        process = multiprocessing.get_context("fork").Process(target=work, args=(target, left, done))
        if left:
            process.start()
            process.join()
        if left and process.exitcode:
            raise SystemExit(2)


def main() -> int:
    """Run the command."""
    options = parse_arguments()
    rules = tomllib.loads((Path(__file__).parent / "rules.toml").read_text("utf-8"))
    targets = [Target(**target) for target in rules["target"].values()]
    parts = [jobs(part, targets, Rules(**rules["skip"])) for part in options.parts]
    keys = [mutant.key for _, found in parts for _, mutant in found]
    if options.again:
        results.forget(options.again, set(keys))
    for target in [] if options.list else targets:
        run(target, [job for each, found in parts if each is target for job in found])
    known = results.load()
    print(results.summary(known, keys))
    left = results.unjudged(known, keys)
    for key in left:
        print(f"| `{key.function}` | {results.quote(key.line)} | {results.quote(key.becomes)} | {known[key][0]} |")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
