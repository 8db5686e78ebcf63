"""Writers killed anywhere: nothing acknowledged is lost, nothing is published twice or by a stale attempt.

SIGKILL lets the operating system write what it holds: this says nothing about a loss of power, for which
`synchronous = FULL` and `synchronous_commit` are set and not tested here. The unfenced control publishes
twice on the same stores and under the same kills, or this test would have shown nothing.
"""

import contextlib
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from .places import new_schema
from .postgres import Cluster

HOME = Path(__file__).parents[3]

# How many writers are killed on each store; both together are more than 200.
KILLS = 110

# In how many runs the writers have to meet often enough, and the control to publish twice; on an idle machine one does.
MOST_RUNS = 8

# How often the server itself is killed, each time after ten more answers.
SERVER_KILLS = 3


@pytest.fixture(scope="module")
def durable_cluster() -> Iterator[Cluster]:
    """Give a PostgreSQL that waits for the disk."""
    made = Cluster(durable=True)
    yield made
    made.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give an empty place on a real disk."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'attempts.db'}"
    cluster: Cluster = request.getfixturevalue("durable_cluster")
    return new_schema(cluster.url, f"crash_{request.function.__name__}")


def writers(url: str, folder: Path, seed: int, kills: int, *way: str) -> "subprocess.Popen[str]":
    """Start the writers and what kills them."""
    words = [url, str(folder), str(seed), str(kills), *way]
    command = [sys.executable, "-m", "tests.client.attempts.writers", *words]
    return subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(running: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Wait until all of them are gone; give exit code and words."""
    try:
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
    return running.returncode, out, err


def acknowledged(folder: Path) -> list[tuple[str, str, int, str]]:
    """List what the writers were told: task, attempt, fence, hash; a line cut by the kill was told to nobody."""
    lines = [line for log in sorted(folder.glob("*.log")) for line in log.read_text().splitlines(keepends=True)]
    told = [line.split() for line in lines if line.endswith("\n")]
    return [(task, attempt, int(fence), sha256) for task, attempt, fence, sha256 in told]


def rows(engine: Engine, statement: str) -> list[Any]:
    """Run one query."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def nothing_is_wrong(engine: Engine, told: list[tuple[str, str, int, str]]) -> None:
    """Hold the tables to what the writers were told, and to R1 to R4."""
    accepted = rows(engine, "SELECT task_id, attempt_id, fence, payload_sha256, payload FROM endmark_accepted")
    stored = {row[:4] for row in accepted}
    assert set(told) <= stored, "an acknowledged answer is lost"
    assert len(told) == len(set(told)), "an answer was acknowledged to two"
    assert len({row[0] for row in accepted}) == len(accepted), "a task has two answers"
    newest = dict(rows(engine, "SELECT task_id, max(fence) FROM endmark_attempt GROUP BY task_id"))
    assert all(newest[row[0]] == row[2] for row in accepted), "an answer of an attempt that was not current"
    for _, attempt_id, _, sha256, payload in accepted:
        assert hashlib.sha256(payload).hexdigest() == sha256
        assert json.loads(payload)["content"] == attempt_id, "a splice"
    decided = rows(
        engine,
        "SELECT task_id, attempt_id, fence, payload_sha256 FROM endmark_attempt WHERE decision = 'accepted'"
        " AND framing_complete IS TRUE AND terminal_class = 'complete' AND terminal_event = '[DONE]'"
        " AND terminal_reason_source = 'provider'",
    )
    assert set(decided) == stored, "an answer and its evidence do not belong together"
    committed = rows(engine, "SELECT task_id FROM endmark_task WHERE state = 'committed'")
    assert {row[0] for row in committed} == {row[0] for row in accepted}
    active = rows(engine, "SELECT task_id, attempt_id FROM endmark_attempt WHERE decision IS NULL")
    assert set(active) == set(rows(engine, "SELECT task_id, active FROM endmark_task WHERE active IS NOT NULL"))


def test_writers_are_killed(url: str, tmp_path: Path) -> None:
    """After every kill the store holds all that was acknowledged, once, by whoever was current."""
    engine = create_engine(url)
    for seed in range(1, MOST_RUNS + 1):
        code, out, err = finish(writers(url, tmp_path, seed, KILLS))
        assert (code, err) == (0, "")
        assert json.loads(out) == {"killed": KILLS}
        told = acknowledged(tmp_path)
        nothing_is_wrong(engine, told)
        if engine.dialect.name == "sqlite":
            assert rows(engine, "PRAGMA integrity_check") == [("ok",)]
        superseded = rows(engine, "SELECT count(*) FROM endmark_attempt WHERE decision = 'superseded'")[0][0]
        if min(len(told), superseded) >= KILLS // 4:
            break
    engine.dispose()
    assert min(len(told), superseded) >= KILLS // 4, "too few answers, or too little contention, to show anything"


def test_the_unfenced_control_publishes_twice(url: str, tmp_path: Path) -> None:
    """Who looks and then writes publishes one task twice, on the same store and under the same kills."""
    engine = create_engine(url)
    twice: list[Any] = []
    for seed in range(1, MOST_RUNS + 1):
        code, _, err = finish(writers(url, tmp_path, seed, KILLS // 2, "unfenced"))
        assert (code, err) == (0, "")
        twice = rows(engine, "SELECT task_id FROM published GROUP BY task_id HAVING count(*) > 1")
        if twice:
            break
    engine.dispose()
    assert twice, "the control never failed: more contention is needed"


def test_the_server_is_killed(durable_cluster: Cluster, tmp_path: Path) -> None:
    """PostgreSQL's own process is killed under its writers: what it acknowledged is there when it is back."""
    url = new_schema(durable_cluster.url, "crash_server")
    engine = create_engine(url)
    for seed in range(1, SERVER_KILLS + 1):
        enough = 10 * seed
        running = writers(url, tmp_path, seed, 10_000)
        until(partial(has_told, tmp_path, enough), running)
        durable_cluster.kill()
        code, _, err = finish(running)
        assert code == 1
        assert "ended by itself" in err  # writers lose their server; nobody has to kill them
        durable_cluster.start()
        nothing_is_wrong(engine, acknowledged(tmp_path))
        engine.dispose()


def has_told(folder: Path, enough: int) -> bool:
    """Say whether the writers were told of so many answers."""
    return len(acknowledged(folder)) >= enough


def until(is_reached: Callable[[], bool], running: "subprocess.Popen[str]") -> None:
    """Look until the writers have come so far; bounded by their own end."""
    while not is_reached():
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the writers ended early: {running.wait(1 / 50)}")
