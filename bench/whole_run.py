"""A whole run of the frozen suite, from the command line to the sealed archive, against a single import."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .results import Span

HOME = Path(__file__).resolve().parents[1]


def whole_run(count: int) -> Span:
    """Time runs and imports of the server's library in turn: wall time of the one over that of the other."""
    with tempfile.TemporaryDirectory() as folder:
        outs = (Path(folder) / str(number) for number in range(count + 1))
        _pair(next(outs))  # fills the caches of both
        return Span.of([_pair(out) for out in outs])


def _pair(out: Path) -> float:
    run = partial(_call, "run.py", "--suite", "frozen", "--out", str(out))
    return _wall_seconds(run) / _wall_seconds(partial(_call, "-c", "import aiohttp.web"))


def _call(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=HOME, check=True, stdout=subprocess.DEVNULL)


def _wall_seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
