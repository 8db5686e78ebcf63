"""`python -m bench`: prints every ratio that the README or an issue names.

The two sides of a ratio alternate, so that a change in the machine's speed meets both; what is
printed is the median of the rounds' ratios, with the smallest and the largest.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from client.contract import Limits, load
from client.framer import SseFramer

HOME = Path(__file__).resolve().parents[1]
ROUNDS = 9


def main() -> None:
    """Run every benchmark."""
    print(f"Python {sys.version.split()[0]}, {ROUNDS} rounds, median (smallest to largest)")
    whole_run()
    for name, shape in SHAPES.items():
        linear(name, shape)


def ratio(name: str, ours: Callable[[], None], baseline: Callable[[], None]) -> None:
    """Print how many times the baseline's wall time ours takes."""
    ours()
    baseline()
    found = []
    for _ in range(ROUNDS):
        mine, theirs = seconds(ours), seconds(baseline)
        found.append(mine / theirs)
    print(f"{name}: {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})")


def seconds(work: Callable[[], None]) -> float:
    """Time one call, in seconds of wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def whole_run() -> None:
    """Compare a whole run of the frozen suite with importing the server's library."""
    with tempfile.TemporaryDirectory() as folder:
        count = iter(range(10**6))

        def ours() -> None:
            out = Path(folder) / str(next(count))
            command = [sys.executable, "run.py", "--suite", "frozen", "--out", str(out)]
            subprocess.run(command, cwd=HOME, check=True, stdout=subprocess.DEVNULL)

        def baseline() -> None:
            subprocess.run([sys.executable, "-c", "import aiohttp.web"], cwd=HOME, check=True)

        ratio("run.py --suite frozen / import aiohttp.web (bound: 2)", ours, baseline)


MEGABYTE = 2**20
SHAPES: dict[str, tuple[bytes, int]] = {
    "one line in 16-byte pieces": (b"a", 16),
    "one line in 1 KiB pieces": (b"a", 1024),
    "CR flood in 64 KiB pieces": (b"\r", 65536),
    "comments in 64 KiB pieces": (b":\n", 65536),
    "events without data in 64 KiB pieces": (b"event: x\n\n", 65536),
    "data lines of one event in 64 KiB pieces": (b"data:\n", 65536),
}


def linear(name: str, shape: tuple[bytes, int]) -> None:
    """Compare the framer on twice the input with once the input: 2 is linear, 4 is quadratic."""
    unit, piece_bytes = shape
    ratio(f"framer, {name}, 4 MB / 2 MB", feeding(unit, piece_bytes, 4), feeding(unit, piece_bytes, 2))


def feeding(unit: bytes, piece_bytes: int, megabytes: int) -> Callable[[], None]:
    """Give a call that frames so many megabytes of one shape."""
    roomy = dict.fromkeys(("line_utf16", "event_utf16", "input_utf16", "output_utf16", "events"), 10**9)
    contract = replace(load("strict/1"), limits=Limits(**roomy, json_depth=16, deadline_ms=10**6))
    body = unit * (megabytes * MEGABYTE // len(unit))
    pieces = [body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes)]

    def work() -> None:
        framer = SseFramer(contract)
        for piece in pieces:
            framer.feed(piece)

    return work


if __name__ == "__main__":
    main()
