"""`python -m plots DIR`, or `--measures REPORT`: the arguments, the files that are written, the exit codes.

0: the pictures are drawn and their paths printed. 1: the archive is not sound, and a picture of it
would prove nothing. 2: called wrongly, or there is nothing that can be drawn. One line on standard
error says why, or else which fonts were used. This file may not know how a picture is drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import evidence

if TYPE_CHECKING:
    from .fonts import Fonts
    from .sheet import Picture


def main(argv: Sequence[str] | None = None) -> int:
    """Draws what was asked for; gives the exit code."""
    try:
        options = _options(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    try:
        if options.measures is not None:
            return _draw_measures(options.measures, options.out)
        return _draw(evidence.ask(options.archive, options.trace), options)
    except evidence.RefusalError as refusal:
        return _refuse(str(refusal), refusal.code)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return _refuse("drawing needs matplotlib: pip install matplotlib", 2)
    except OSError as failure:
        return _refuse(evidence.one_line(f"cannot read the report or write the picture: {failure}"), 2)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, checked as far as they can be without the archive."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description="Draw a sealed archive, beside it, as PNG and SVG; or measures."
    )
    parser.add_argument("archive", metavar="DIR", nargs="?", help="the sealed archive of one run")
    parser.add_argument("--trace", metavar="CASE", help="draw the lanes of this case (or trial id) instead")
    parser.add_argument("--from", dest="first", type=int, metavar="BYTE", help="first byte of the lanes")
    parser.add_argument("--to", dest="last", type=int, metavar="BYTE", help="where the lanes stop")
    parser.add_argument("--measures", metavar="REPORT", help="draw what `measures --json` printed; `-` is stdin")
    parser.add_argument("--out", metavar="STEM", help="write STEM.png and STEM.svg, or only one with its ending")
    options = parser.parse_args(argv)
    if (options.archive is None) == (options.measures is None):
        parser.error("name an archive, or --measures REPORT")
    if options.measures is not None and (options.out is None or options.trace is not None):
        parser.error("--measures needs --out, and goes with nothing else")
    if options.trace is None and (options.first is not None or options.last is not None):
        parser.error("--from and --to choose a part of the body: they need --trace CASE")
    return options


def _draw(report: dict[str, object], options: argparse.Namespace) -> int:
    """Draws one picture from the auditor's report and writes it; matplotlib is imported only here."""
    from . import lanes, previews
    from .fonts import Fonts

    fonts = Fonts()
    if options.trace is None:
        kind, picture = "previews", previews.draw(evidence.read_audit(report), fonts)
    else:
        trace = evidence.read_trace(report)
        kind, picture = f"{trace.case}.lanes", lanes.draw(trace, fonts, options.first, options.last)
    return _write(picture, _stem(options.archive, options.out, kind), fonts)


def _draw_measures(source: str, out: str) -> int:
    """Draws the measures from a report of the laboratory's; matplotlib is imported only here."""
    from . import measures
    from .fonts import Fonts

    found = measures.read(sys.stdin.read() if source == "-" else Path(source).read_bytes())
    fonts = Fonts()
    return _write(measures.draw(found, fonts), Path(out), fonts)


def _stem(archive: str, out: str | None, kind: str) -> Path:
    """Where the pictures go, without an ending: beside the archive, never in it."""
    directory = Path(archive)
    if directory.name in ("", ".."):
        directory = directory.resolve()
    stem = Path(out) if out else directory.with_name(f"{directory.name}.{kind}")
    if directory.resolve() in [stem.resolve(), *stem.resolve().parents]:
        raise evidence.RefusalError(f"{stem} lies in the archive, which is sealed: choose another --out")
    return stem


def _write(picture: Picture, stem: Path, fonts: Fonts) -> int:
    """Writes both forms, or the one whose ending was named, prints the paths, and says which fonts were used."""
    forms = {".png": picture.png, ".svg": picture.svg}
    one = forms.get(stem.suffix)
    files = [(stem, one)] if one else [(stem.with_name(stem.name + ending), data) for ending, data in forms.items()]
    for path, content in files:
        path.write_bytes(content)
        print(path)
    print(fonts.report(), file=sys.stderr)
    return 0


def _refuse(text: str, code: int) -> int:
    """One line on standard error; gives the exit code back."""
    print(f"plots: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
