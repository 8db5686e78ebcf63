"""Counts instructions with callgrind: they repeat from run to run, as times do not.

A child imports the peers with counting switched off, switches it on, and forks once for every count: one fork
does the work once, the next twice, and the difference is one round of the work with the interpreter warm. No C
extension is needed. PYTHONHASHSEED is 0. `python -m bench.instructions PART` is that child.
"""

import contextlib
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .contests import plans
from .timing import Work

HOME = Path(__file__).resolve().parents[1]
TOOLS = ("valgrind", "callgrind_control")
_COLLECTED = re.compile(r"==(\d+)== Collected : (\d+)")

# Instructions for one unit, by a plan's key and a contestant's name.
Counts = dict[tuple[str, str], float]


class CountError(Exception):
    """The counting child failed; its last words say why."""


def count(parts: Sequence[str]) -> tuple[Counts, str]:
    """Count every contestant of these parts, one child a part, and say with what, or why nothing was counted."""
    if not all(map(shutil.which, TOOLS)):
        return {}, "not counted: valgrind is not installed"
    done = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True)
    try:
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(_child, parts))
    except CountError as error:
        return {}, f"not counted: {error}"
    return {key: value for counts in found for key, value in counts.items()}, done.stdout.strip().replace("-", " ")


def _child(part: str) -> Counts:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null"]
        command += [f"--log-file={folder}/%p.log", sys.executable, "-m", "bench.instructions", part]
        done = subprocess.run(
            command, cwd=HOME, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CountError(f"counting {part}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        logs = "".join(log.read_text("utf-8") for log in Path(folder).glob("*.log"))  # one or one a fork
        return _differences(rows, {int(process): int(count) for process, count in _COLLECTED.findall(logs)})


def _differences(rows: list[dict[str, str | int]], collected: dict[int, int]) -> Counts:
    """Subtract each pair of forks, and from that what one fork costs its parent."""
    costs = [collected[int(row["twice"])] - collected[int(row["once"])] for row in rows]
    fork = costs[0]  # the first row does no work
    return {
        (str(row["plan"]), str(row["name"])): (cost - fork) / int(row["units"])
        for row, cost in zip(rows[1:], costs[1:], strict=True)
    }


def main(part: str) -> None:
    """Count one part, as the child."""
    cases = [(plan, name, plan.work(name, plan.counted())) for plan in plans(part) for name in plan.counted_names]
    gc.collect()
    gc.freeze()
    _switch_on()
    print(json.dumps({"once": _fork(_nothing, 1), "twice": _fork(_nothing, 2)}), flush=True)
    for plan, name, work in cases:
        row = {"plan": plan.key, "name": name, "units": plan.units(plan.counted())}
        print(json.dumps({**row, "once": _fork(work, 1), "twice": _fork(work, 2)}), flush=True)


def _switch_on() -> None:
    command = ["callgrind_control", "-i", "on", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or "OK" not in done.stdout:
        raise CountError(f"callgrind_control: {done.stdout}{done.stderr}")


def _nothing() -> None:
    """Do the work of the row that shows what a fork costs."""


def _fork(work: Work, times: int) -> int:
    """Do the work so many times in a process of its own; give its number."""
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            for _ in range(times):
                work()
            status = 0
        os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        raise CountError(f"the work ended with status {status}")
    return child


if __name__ == "__main__":
    main(*sys.argv[1:])
