"""Clocks: rounds in which all contestants take their turn, and one call that may not take too long.

Within a round the order is shuffled, so that a change in the machine's speed meets everybody, and a ratio
is taken between two times of one round. Time is the process's CPU time, which other processes disturb
least. This file knows not what it times.
"""

import gc
import multiprocessing
import random
import time
import warnings
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")
Work = Callable[[], object]


def rounds(works: Mapping[str, Work], count: int) -> dict[str, list[float]]:
    """Time every work once a round; give CPU seconds by name, round by round."""
    order = list(works)
    shuffle = random.Random(0).shuffle
    found: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.freeze()  # what stands already, the peers' modules above all, is nobody's garbage
    try:
        for _ in range(count):
            shuffle(order)
            for name in order:
                gc.collect()
                found[name].append(cpu_seconds(works[name]))
    finally:
        gc.unfreeze()
    return found


def cpu_seconds(work: Work) -> float:
    """Time one call, in seconds of this process's CPU time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def bounded(work: Callable[[], T], seconds: float) -> T | None:
    """Call work in a process of its own; None where it takes longer than so much wall time, or dies."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_send, args=(work, theirs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
        process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def _send(work: Callable[[], object], to: Connection) -> None:
    gc.freeze()
    to.send(work())
