"""One session: every target for its share of the time, two at once, and a table of what came of it.

Each target is a process of its own, ended by its own id. Inputs that are worth keeping stay in `fuzz/corpus/`
for the next session, beside the log of each target; a find is kept in `fuzz/found/`.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .seeds import dictionary
from .targets import inputs

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
FOUND = HERE / "found"

ENGINE = (sys.executable, "-m", "fuzz.engine")
AT_ONCE = 2
MOST_INPUT_BYTES = 4096
INPUT_TIMEOUT_S = 10  # a usual input takes a few milliseconds
MEMORY_MIB = 1024  # a target stays below 100
GRACE_S = 60  # beyond its share, for the seeds

_PROGRESS = re.compile(r"^#(\d+)\t.*? cov: (\d+) .*? corp: (\d+)/", re.MULTILINE)
_WHY = re.compile(
    r"=== Uncaught Python exception: ===\n(?:AssertionError: )?(.*)|(ERROR: libFuzzer: (?:timeout|out-of-memory).*)"
)

# libFuzzer's exit code after its time, the one after it was told to end, and a process that did not listen.
_ENDED = (0, 72, -signal.SIGTERM, -signal.SIGKILL)


class Result(NamedTuple):
    """What came of one target."""

    target: str
    seconds: float
    executions: int
    edges: int
    corpus: int
    find: Path | None
    why: str  # of the find; or how the engine itself failed


class _Job(NamedTuple):
    """One target under way."""

    target: str
    process: "subprocess.Popen[bytes]"
    started: float
    ends_by: float  # on the clock of `started`

    @property
    def log(self) -> Path:
        return CORPUS / f"{self.target}.log"

    @property
    def find(self) -> Path:
        return CORPUS / f"{self.target}.find"


def session(targets: Sequence[str], seconds: int) -> int:
    """Fuzz, print a line when a target begins and when it ends, and the table.

    Gives 0 where nothing was found, 1 for a find, 2 for an engine that failed, 130 for a session that was interrupted.
    """
    share_s = max(seconds * min(AT_ONCE, len(targets)) // len(targets), 1)
    FOUND.mkdir(exist_ok=True)
    waiting, running, results = list(targets), list[_Job](), list[Result]()
    interrupted = False
    # The archives that are spoilt lie in memory where they can, and go with the session however a process ends.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="endmark-fuzz-", dir=memory if memory.is_dir() else None) as scratch:
        try:
            while waiting or running:
                while waiting and len(running) < AT_ONCE:
                    running.append(_start(waiting.pop(0), share_s, scratch))
                for job in [job for job in running if _has_ended(job)]:
                    results.append(_end(job))
                    running.remove(job)
                    print(_line(results[-1]), flush=True)
                time.sleep(0.1)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            results += [_end(job) for job in running]
    print("\n".join(table(results)))
    if any(result.find for result in results):
        return 1
    return 2 if any(result.why for result in results) else 130 if interrupted else 0


def _start(target: str, share_s: int, scratch: str) -> _Job:
    corpus = CORPUS / target
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in inputs(target):
        (corpus / hashlib.sha256(seed).hexdigest()).write_bytes(seed)
    words = CORPUS / "dictionary.txt"
    words.write_text(dictionary(), encoding="utf-8")
    find = CORPUS / f"{target}.find"
    find.unlink(missing_ok=True)
    options = [
        f"-max_total_time={share_s}",
        f"-max_len={MOST_INPUT_BYTES}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-dict={words}",
        f"-exact_artifact_path={find}",
        str(corpus),
    ]
    print(f"{target}: {share_s} s, {len(list(corpus.iterdir()))} inputs to begin with", flush=True)
    with (CORPUS / f"{target}.log").open("wb") as log:
        process = subprocess.Popen(
            [*ENGINE, target, *options],
            cwd=HERE.parent,
            env=os.environ | {"TMPDIR": scratch},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt is the session's, which ends its processes itself
        )
    now = time.monotonic()
    return _Job(target, process, now, now + share_s + GRACE_S)


def _has_ended(job: _Job) -> bool:
    return job.process.poll() is not None or time.monotonic() > job.ends_by


def _end(job: _Job) -> Result:
    """End a process by its own id, if it goes on, and read what came of it."""
    overdue = time.monotonic() > job.ends_by
    if job.process.poll() is None:
        job.process.terminate()
        try:
            job.process.wait(INPUT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            job.process.kill()
            job.process.wait()
    log = job.log.read_text(encoding="utf-8", errors="replace")
    find, why = None, ""
    if job.find.exists():
        said = _WHY.search(log)
        find, why = _keep(job), (said[1] or said[2]) if said else "and libFuzzer says nothing of it"
    elif overdue or job.process.returncode not in _ENDED:
        why = f"{'still going' if overdue else 'ended'}; its log ends with\n{log[-2000:]}"
    return Result(job.target, time.monotonic() - job.started, *figures(log), find, why)


def figures(log: str) -> tuple[int, int, int]:
    """Give executions, edges and inputs kept, as the last line of progress in a log of libFuzzer has them."""
    found = list(_PROGRESS.finditer(log))
    if not found:
        return 0, 0, 0
    executions, edges, corpus = map(int, found[-1].groups())
    return executions, edges, corpus


def _keep(job: _Job) -> Path:
    data = job.find.read_bytes()
    kept = FOUND / f"{job.target}-{hashlib.sha256(data).hexdigest()[:16]}"
    job.find.rename(kept)
    return kept


def _line(result: Result) -> str:
    if result.find:
        return f"{result.target}: FOUND {result.why[:400]}"
    if result.why:
        return f"{result.target}: the engine failed, {result.why}"
    return f"{result.target}: nothing found"


def table(results: Sequence[Result]) -> list[str]:
    """Give the lines that end a session, with the command that repeats each find."""
    lines = [f"{'target':<12}{'seconds':>8}{'executions':>12}{'edges':>7}{'corpus':>8}  finds"]
    lines += [
        f"{r.target:<12}{r.seconds:>8.0f}{r.executions:>12,}{r.edges:>7,}{r.corpus:>8,}  {1 if r.find else 0}"
        for r in results
    ]
    lines += [
        f"repeat with: {os.path.relpath(sys.executable)} -m fuzz repeat {r.target} {os.path.relpath(r.find)}"
        for r in results
        if r.find
    ]
    return lines
