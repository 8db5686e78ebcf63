"""`python -m fuzz run`: a session over all targets; `repeat` and `shrink` ask about one input, without atheris."""

import argparse
import faulthandler
import os
import sys
import traceback
from pathlib import Path

from .session import session
from .shrink import shrink
from .targets import TARGETS

HANGS_AFTER_S = 10


def main(words: list[str]) -> int:
    """Run one command; 0 all is well, 1 a find."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="fuzz every target, or those named, for so many seconds in all")
    run.add_argument("--seconds", type=int, default=600)
    run.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    for name, what in (
        ("repeat", "judge one input again"),
        ("shrink", "write FILE.small, a smaller input of its kind"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("target", choices=TARGETS)
        command.add_argument("file", type=Path, metavar="FILE")
    options = parser.parse_args(words)
    if options.command == "run":
        unknown = set(options.targets) - TARGETS.keys()
        if unknown or options.seconds < 1:
            parser.error(f"no such target: {', '.join(sorted(unknown))}" if unknown else "--seconds is at least 1")
        return session(list(dict.fromkeys(options.targets)) or list(TARGETS), options.seconds)
    return (repeat if options.command == "repeat" else make_small)(options.target, options.file)


def repeat(target: str, file: Path) -> int:
    """Judge one input; where it hangs, say where, and end."""
    faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True, file=sys.__stderr__ or sys.stderr)
    what = _finds(target, file.read_bytes())
    faulthandler.cancel_dump_traceback_later()
    print(what or "holds")
    return 1 if what else 0


def make_small(target: str, file: Path) -> int:
    """Write the smaller input beside the file."""
    data = file.read_bytes()
    if _finds(target, data) is None:
        print(f"{file}: is no find of {target}")
        return 2
    small = shrink(data, lambda less: _finds(target, less) is not None)
    beside = file.with_name(f"{file.name}.small")
    beside.write_bytes(small)
    print(f"{os.path.relpath(beside)}: {len(small)} bytes, {small!r}\n{_finds(target, small)}")
    return 1


def _finds(target: str, data: bytes) -> str | None:
    """Say what an input shows; an exception is a find as well."""
    try:
        return TARGETS[target].deviation(data)
    except Exception:
        return traceback.format_exc()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
