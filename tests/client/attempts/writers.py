"""Writers that are killed: processes that publish into one store until SIGKILL ends them, wherever they are.

    python -m tests.client.attempts.writers URL FOLDER SEED KILLS [unfenced]

A parent starts WRITERS children by fork and, again and again, waits for a seeded moment, kills one and starts
another. Each child picks a task, takes it over from whoever has it, reads a whole answer and commits. What it
was told, it appends to a log of its own before it goes on, so that a log never says more than the store
had acknowledged. An unfenced writer does what a program without a fence does: it looks whether it is the
active one, and then writes. The parent waits for no clock but for the moments of its kills; it prints one
JSON line in the end.
"""

import json
import os
import random
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from client import load
from client.attempts import Attempt, Committed, Coordinator, DeniedError
from client.attempts.sql import SqlStore, open_store

from .bodies import HEAD, pieces

WRITERS = 8

# How many tasks are worked on at once: few, so that writers meet.
TASKS = 2

# After so many rounds a writer stops by itself, whatever happens to its parent.
MOST_ROUNDS = 5_000

# A kill comes at most so long after the last one, in milliseconds.
MOST_MS = 50

NEWEST = "SELECT max(fence) FROM endmark_attempt WHERE task_id = :task"
COUNT = "SELECT count(*) FROM published WHERE task_id = :task"
INSERT = "INSERT INTO published VALUES (:task, :attempt, :fence)"
PUBLISHED = "CREATE TABLE IF NOT EXISTS published (task_id TEXT, attempt_id TEXT, fence INTEGER)"


def read(attempt: Attempt) -> None:
    """Read a whole answer, whose text is the attempt's id."""
    attempt.head(*HEAD)
    for piece in pieces(attempt.id):
        attempt.feed(piece)


class Fenced:
    """Publishes as the coordinator does."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def done(self) -> int:
        """Count the tasks that have an answer, so that the tasks that are worked on move on."""
        with self._store.engine.begin() as connection:
            return int(connection.execute(text("SELECT count(*) FROM endmark_accepted")).scalar_one())

    def publish(self, attempt: Attempt) -> str | None:
        """Read and commit; give the line for the log where it was acknowledged."""
        read(attempt)
        result = attempt.commit()
        if not isinstance(result, Committed):
            return None
        return f"{result.task_id} {result.attempt_id} {result.fence} {result.payload_sha256}"


class Unfenced:
    """Looks, and then writes: between the two the attempt may be replaced, and another may write."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def done(self) -> int:
        """Count the tasks that have an answer."""
        with self._store.engine.begin() as connection:
            return int(connection.execute(text("SELECT count(DISTINCT task_id) FROM published")).scalar_one())

    def publish(self, attempt: Attempt) -> str | None:
        """Write the answer where the attempt is the newest and the task has none; give the line for the log."""
        values = {"task": attempt.task_id, "attempt": attempt.id, "fence": attempt.fence}
        with self._store.engine.begin() as connection:
            newest = connection.execute(text(NEWEST), values).scalar_one()
            published = connection.execute(text(COUNT), values).scalar_one()
        if newest != attempt.fence or published:
            return None
        read(attempt)
        with self._store.engine.begin() as connection:
            connection.execute(text(INSERT), values)
        return f"{attempt.task_id} {attempt.id} {attempt.fence} -"


Way = type[Fenced] | type[Unfenced]


def main() -> int:
    """Run the writers and kill them, one by one."""
    url, folder, seed, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    way: Way = Unfenced if sys.argv[5:] == ["unfenced"] else Fenced
    store = open_store(url)
    with store.engine.begin() as connection:
        connection.execute(text(PUBLISHED))
    store.close()
    alive: list[int] = []
    try:
        kill(kills, random.Random(seed), alive, lambda n: start(url, folder / f"{seed}-{n}.log", seed, n, way))
    finally:
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    print(json.dumps({"killed": kills}))
    return 0


def kill(kills: int, chance: random.Random, alive: list[int], fork: Callable[[int], int]) -> None:
    """Keep WRITERS writers alive, and kill one after the other."""
    for number in range(kills + WRITERS - 1):
        alive.append(fork(number))
        if len(alive) == WRITERS:
            select.select([], [], [], chance.uniform(0, MOST_MS / 1000))
            end(alive.pop(chance.randrange(WRITERS)))


def start(url: str, log: Path, seed: int, number: int, way: Way) -> int:
    """Start a writer; give its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        write(url, log, random.Random(seed * 100_000 + number), way)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(3)  # a writer that ends by itself has failed


def end(pid: int) -> None:
    """Kill a writer, which must have been alive."""
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if not os.WIFSIGNALED(status):
        raise RuntimeError(f"writer {pid} ended by itself: {os.waitstatus_to_exitcode(status)}")


def write(url: str, log: Path, chance: random.Random, way: Way) -> None:
    """Publish answers until somebody ends it."""
    store = open_store(url)
    publisher = way(store)
    coordinator = Coordinator(store, load("strict/1"), "openai-chat")
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(MOST_ROUNDS):
        attempt = take(coordinator, publisher.done(), chance)
        if attempt is None:
            continue
        told = publisher.publish(attempt)
        if told is not None:
            os.write(out, f"{told}\n".encode())


def take(coordinator: Coordinator, done: int, chance: random.Random) -> Attempt | None:
    """Get the active attempt of a task, from whoever has it; None where another was quicker or the task is done."""
    task = f"t{done + chance.randrange(TASKS)}"
    active = [record for record in coordinator.attempts(task) if record.decided is None]
    try:
        return coordinator.supersede(active[0].attempt_id) if active else coordinator.begin(task, "q")
    except DeniedError:
        return None


if __name__ == "__main__":
    sys.exit(main())
