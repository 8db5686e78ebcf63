"""Plays the README's console blocks in a copy of the checkout, and compares what they print.

`python -m tests.readme` writes the outputs anew, on purpose, after a change of what is printed. A
line of the README that holds `…` stands for any text in its place.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
README = HOME / "README.md"

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".corpora", "__pycache__", ".*_cache", ".hypothesis", "dist", "node_modules"
)
_MARK = "=-=-= end of command"
_BOUND_S = 300


def copy_checkout(folder: Path) -> Path:
    """Copy the checkout without what git ignores; evidence only as far as it is committed."""
    target = folder / "endmark"
    shutil.copytree(HOME, target, ignore=_LEFT_OUT, symlinks=True)
    for path in (target / "evidence").glob("*"):
        if not path.name.startswith("reference-frozen"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return target


def environment() -> dict[str, str]:
    """Give an environment in which `python` and `python3` are this interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "PYTHONUTF8": "1"}


def commands(block: str) -> Iterator[tuple[list[str], list[str]]]:
    """Give every command of a console block as (its lines, the lines printed under it)."""
    lines, printed = list[str](), list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if lines:
                yield lines, printed
            lines, printed = [line], []
        elif line.startswith("> ") or line == ">":
            lines.append(line)
        else:
            printed.append(line)
    if lines:
        yield lines, printed


def play(text: str, folder: Path) -> str:
    """Run every console block of a text in one folder, and give the text with what was printed."""
    return _BLOCK.sub(lambda found: f"```console\n{_play_block(found[1], folder)}```", text)


def _play_block(block: str, folder: Path) -> str:
    found = list(commands(block))
    script = "".join(_scripted(lines) for lines, _ in found)
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_BOUND_S,
        check=False,
    )
    outputs = done.stdout.split(f"{_MARK}\n")
    return "".join(
        "".join(f"{line}\n" for line in [*lines, *_kept(printed, output.splitlines())])
        for (lines, printed), output in zip(found, outputs, strict=False)
    )


def _scripted(lines: list[str]) -> str:
    command = "\n".join([lines[0][2:], *(line[2:] for line in lines[1:])])
    return f"{command}\n__code=$?; echo '{_MARK}'; (exit $__code)\n"


def _kept(written: list[str], printed: list[str]) -> list[str]:
    """Keep the written lines where they stand for what was printed, `…` included."""
    if len(written) != len(printed):
        return printed
    return [old if _stands_for(old, new) else new for old, new in zip(written, printed, strict=True)]


def _stands_for(written: str, printed: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, written.split("…"))), printed) is not None


def main() -> None:
    """Write the README's outputs anew."""
    with tempfile.TemporaryDirectory() as folder:
        README.write_text(play(README.read_text("utf-8"), copy_checkout(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
