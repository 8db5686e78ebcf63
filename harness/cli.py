"""The command line: what a user types, and the exit codes.

0 all well, 1 findings, 2 called wrongly or not possible, 130 interrupted. Every import that costs
time is made inside the command that needs it.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar

from . import present
from .archive import Archive
from .cases import MANIFEST, case_names, check_contracts, load_suite, read_toml, suite_names
from .names import CASES, UsageError
from .subjects import registry
from .verdicts import Auditor, audit, beside, command, is_well

T = TypeVar("T")

# What is not in the standard library, and how to get it.
_LIBRARIES = frozenset({"aiohttp", "jsonschema", "tomlkit"})
_INSTALL = "`make run` makes .venv with all that is needed; use .venv/bin/python"

# The word for every suite there is; a suite may not have it as its name.
ALL = "all"

_EPILOG = """\
other commands:
  show DIR CASE      print one archived exchange, byte by byte
  case new, freeze   make a new fault from an existing case; freeze a suite
  audit DIR          run the standalone auditor
  plot DIR           draw the previews of an archive
  watch CASE         stream one case to this terminal
  measures FILE      say what a file of attempt records comes to

example:
  run.py --suite frozen --out evidence/my-run
  run.py --suite frozen --case 'missing-*' --subject _wrong/naive

exit codes: 0 all well, 1 findings, 2 called wrongly, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; a user's mistake is one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    commands: dict[str, Callable[[list[str]], int]] = {
        "run": _run,
        "show": _show,
        "case": _case,
        "audit": _audit,
        "plot": _plot,
        "watch": _watch,
        "measures": _measures,
    }
    chosen = commands.get(words[0]) if words else None
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that the stream does not have is shown as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            return chosen(words[1:]) if chosen else _run(words)
        finally:
            sys.stdout.flush()  # here, where what goes wrong with it can be said
    except UsageError as error:
        present.complain(str(error))
        return 2
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        present.complain(f"{error.name} is not installed for {sys.executable}: {_INSTALL}")
        return 2
    except BrokenPipeError:  # whoever read our output has seen enough
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        present.complain(f"{error.filename or 'system'}: {error.strerror or error}")
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        present.complain("interrupted")
        return 130


def _drop_output() -> None:
    """Let the flush at exit go nowhere: https://docs.python.org/3/library/signal.html#note-on-sigpipe."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(name: str, about: str, epilog: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=name, description=about, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )


# -- run


def _run(words: list[str]) -> int:
    parser = _parser("run.py", "Run a suite against a subject, archive it, audit it.", _EPILOG)
    parser.add_argument("--suite", default="frozen", help="the suite to run, or `all` (default: frozen)")
    parser.add_argument("--case", default="*", metavar="PATTERN", help="only the cases whose name matches")
    parser.add_argument("--subject", default=registry.STRICT, help="the client under test (default: strict)")
    parser.add_argument("--out", type=Path, help="the archive: a new directory (default: evidence/<time>-<suite>)")
    parser.add_argument("--jobs", type=_positive, default=1, help="trials at once, each with its own process (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--list", action="store_true", help="list suites, cases and subjects")
    parser.add_argument("--cases", type=Path, default=_from_here(CASES), metavar="DIR", help="where the suites are")
    args = parser.parse_args(words)
    return _list(args.cases) if args.list else _run_suite(args)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("needs to be at least 1")
    return value


def _run_suite(args: argparse.Namespace) -> int:
    from .runner import Plan, run

    wanted = suite_names(args.cases) if args.suite == ALL else [args.suite]
    suites = [load_suite(args.cases, name, args.case) for name in wanted]
    plan = Plan(subject=registry.find(args.subject), suites=tuple(suite for suite in suites if suite.cases))
    if not plan.suites:
        raise UsageError(f"no case of suite {args.suite!r} matches {args.case!r}")
    check_contracts(args.cases, [name for suite in plan.suites for name in suite.contracts])
    out = args.out or Path("evidence") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{args.suite}"
    archive = Archive(out)
    try:
        with Auditor(out) as auditor:
            progress = _progress(len(plan.trials()))
            asyncio.run(_interruptible(run(plan, archive, args.jobs, progress, auditor.begin)))
            found = auditor.report()
    except BaseException:
        archive.discard()
        raise
    beside(out, ".verdicts.json").write_text(json.dumps(found, indent=1) + "\n", encoding="ascii")
    _report(args, out, found)
    return 0 if is_well(found) else 1


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Let SIGTERM end the work as Ctrl-C does, so that nothing half-done is left behind."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _progress(total: int) -> Callable[[str], None]:
    """Give what counts the trials on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    done = 0

    def tell(trial: str) -> None:
        nonlocal done
        done += 1
        end = "\r\x1b[K" if done == total else ""
        sys.stderr.write(f"\r\x1b[K{done}/{total} {trial}{end}")
        sys.stderr.flush()

    return tell


def _report(args: argparse.Namespace, out: Path, found: dict[str, Any]) -> None:
    if args.json:
        report = {"archive": str(out), "stable_root": found["stable_root"], "rows": present.rows(found)}
        print(json.dumps(report, ensure_ascii=False))
        return
    present.table(found, sys.stdout)
    print()
    for text in present.summary(found):
        print(text)
    print(f"archive:     {out}")
    print(f"verdicts:    {beside(out, '.verdicts.json')}")
    print(f"stable root: {found['stable_root']}")


def _list(root: Path) -> int:
    for name in suite_names(root):
        cases, suite = case_names(root / name), read_toml(root / name / "suite.toml")
        frozen = "" if (root / name / MANIFEST).is_file() else ", not frozen"
        print(f"suite {name}: {len(cases)} cases under {', '.join(map(str, suite.get('contracts', [])))}{frozen}")
        for case in cases:
            table = read_toml(root / name / case / "case.toml")
            title = present.visible(str(table.get("title")))
            print(f"  {case:<32} {table.get('dialect')!s:<16} {title}")
    for name in registry.names():
        print(f"subject {name}: {registry.find(name).title}")
    return 0


# -- show, audit, plot


def _show(words: list[str]) -> int:
    from .show import show

    example = "example:\n  run.py show evidence/my-run one-byte\n"
    parser = _parser("run.py show", "Print one archived exchange.", example)
    parser.add_argument("archive", type=Path, metavar="DIR")
    parser.add_argument("case", metavar="CASE", help="a case's name, or a trial's id")
    args = parser.parse_args(words)
    found = audit(args.archive, "--trace", args.case)
    if found["findings"]:
        first = found["findings"][0]
        raise UsageError(f"{args.archive}: the archive is not sound: {first['code']} {first['place']}: {first['text']}")
    for text in show(found):
        print(text)
    return 0


def _audit(words: list[str]) -> int:
    return subprocess.run(command(*words), check=False).returncode


def _plot(words: list[str]) -> int:
    paths = [str(Path(word).resolve()) if Path(word).exists() else word for word in words]
    return _draw(*paths).returncode


def _draw(*words: str, report: str | None = None, out: TextIO | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the program that draws, with a report on its standard input where it is to draw one."""
    from .names import IMPORT_ROOT, PACKAGE_PREFIX

    plots = [sys.executable, "-m", f"{PACKAGE_PREFIX}plots"]
    return subprocess.run([*plots, *words], check=False, cwd=IMPORT_ROOT, input=report, stdout=out, text=True)


# -- watch, measures


def _watch(words: list[str]) -> int:
    from .watch import POLICIES, Look, load, watch

    example = "example:\n  run.py watch missing-done --slow 100\n  run.py watch anthropic/answer --policy full\n"
    parser = _parser("run.py watch", "Stream one case from the fixture server to this terminal.", example)
    parser.add_argument("case", metavar="CASE", help="SUITE/NAME, or a NAME of the frozen suite")
    parser.add_argument("--contract", metavar="NAME/N", help="the contract to judge by (default: the suite's first)")
    parser.add_argument("--policy", choices=POLICIES, default=POLICIES[0], help="when text may be seen (immediate)")
    parser.add_argument("--cap", type=_positive, metavar="N", help="the most bytes of a read (default: the case's)")
    parser.add_argument("--slow", type=_positive, default=0, metavar="MS", help="wait so long after each read")
    parser.add_argument(
        "--refuse", metavar="WORD", help="policy segments: hold back from the segment with this word on"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the attempt's record to this file")
    parser.add_argument("--cases", type=Path, default=_from_here(CASES), metavar="DIR", help="where the suites are")
    args = parser.parse_args(words)
    suite, case, contract = load(args.cases, args.case, args.contract)
    look = Look(
        contract=contract,
        policy=args.policy,
        refuse=args.refuse,
        cap_bytes=args.cap or case.conditions["read_cap_bytes"],
        slow_ms=args.slow,
        record=args.record.resolve() if args.record else None,
    )
    return asyncio.run(_interruptible(watch(suite, case, look)))


def _measures(words: list[str]) -> int:
    from .measures import measure
    from .present_measures import lines

    example = "example:\n  run.py measures chat.jsonl --picture chat.png\n"
    parser = _parser("run.py measures", "Say what a file of attempt records comes to.", example)
    parser.add_argument("file", type=Path, metavar="FILE", help="records of the schema attempt/1, one a line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--picture", type=Path, metavar="OUT", help="draw it: OUT.png and OUT.svg, or one of them")
    args = parser.parse_args(words)
    report = measure(args.file)
    text = json.dumps(report)
    print(text if args.json else "\n".join(lines(report)), flush=True)
    if args.picture:
        words = ["--measures", "-", "--out", str(args.picture.resolve())]
        if _draw(*words, report=text, out=sys.stderr if args.json else None).returncode:
            raise UsageError(f"{args.picture}: not drawn")
    return 1 if report["findings"] else 0


# -- case


def _case(words: list[str]) -> int:
    parser = _parser("run.py case", "Make a new fault, or freeze a suite.", "")
    commands = parser.add_subparsers(dest="command", required=True, metavar="new | freeze")
    new = commands.add_parser(
        "new",
        help="make a case from another one",
        epilog="example:\n  run.py case new mine/said-length --from frozen/seven-byte --replace stop length\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.add_argument("target", metavar="SUITE/NAME", help="the new case; its name states the fault")
    new.add_argument("--from", dest="source", required=True, metavar="SUITE/NAME")
    new.add_argument("--cut", type=int, metavar="BYTE", help="keep the first so many bytes of the body")
    new.add_argument("--delete", metavar="A:B", help="leave bytes A to B out; --delete=-1: is the last byte")
    new.add_argument("--splice", nargs=2, metavar=("BYTE", "TEXT"), help="insert TEXT before a byte (\\n, \\xNN)")
    new.add_argument("--replace", nargs=2, metavar=("OLD", "NEW"), help="replace the only occurrence")
    new.add_argument("--ending", help="how the connection ends: complete, fin, reset, ...")
    new.add_argument(
        "--set", nargs=2, action="append", default=[], metavar=("KEY", "VALUE"), help="a field of case.toml"
    )
    new.add_argument("--title", help="what the body is, in one line")
    frozen = commands.add_parser("freeze", help="check a suite and write its manifest")
    frozen.add_argument("suite")
    for sub in (new, frozen):
        sub.add_argument("--cases", type=Path, default=_from_here(CASES), metavar="DIR", help="where the suites are")
    if "--delete" in words[:-1]:  # argparse takes "-1:" for an option
        at = words.index("--delete")
        words[at : at + 2] = [f"--delete={words[at + 1]}"]
    args = parser.parse_args(words)
    return _new_case(args) if args.command == "new" else _freeze(args)


def _new_case(args: argparse.Namespace) -> int:
    from .make_case import Recipe, cut, delete, make_case, replace, splice

    edits = []
    if args.replace:
        edits.append(replace(_bytes(args.replace[0]), _bytes(args.replace[1])))
    if args.splice:
        edits.append(splice(_number(args.splice[0]), _bytes(args.splice[1])))
    if args.delete:
        start, _, end = args.delete.partition(":")
        edits.append(delete(_number(start), _number(end) if end else sys.maxsize))
    if args.cut is not None:
        edits.append(cut(args.cut))
    fields = [tuple(pair) for pair in args.set]
    if args.ending:
        fields.append(("exchange.ending", json.dumps(args.ending)))
    folder = make_case(args.cases, args.source, args.target, Recipe(edits=edits, fields=fields, title=args.title))
    print(f"{_from_here(folder)}: write its label.toml, then `run.py case freeze {folder.parent.name}`")
    return 0


def _from_here(path: Path) -> Path:
    """Give a path as a person in this directory would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _freeze(args: argparse.Namespace) -> int:
    from .freeze import freeze

    digest = freeze(args.cases, args.suite)
    print(f"{args.suite} frozen: {digest}")
    print("For a suite that ships, put this digest into audit.py by hand.")
    return 0


def _bytes(text: str) -> bytes:
    r"""Read \n, \r, \t, \\ and \xNN in a command-line text; everything else is UTF-8."""
    try:
        return text.encode("utf-8").decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise UsageError(f"{text!r}: {error.reason}") from error


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no byte offset") from None
