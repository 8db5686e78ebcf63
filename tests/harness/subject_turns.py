"""Drives a throw-away subject through turns, for the tests of `subjects/process.py`."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from harness.subjects.process import NoClaim, SubjectProcess
from harness.subjects.registry import Subject

from .support import a_subject, run_async

Answers = list[dict[str, Any] | NoClaim]


def message(trial: str = "t1", **changes: object) -> dict[str, object]:
    """A turn as the runner sends it."""
    fields: dict[str, object] = {
        "trial": trial,
        "base_url": "http://127.0.0.1:9/x/v1",
        "dialect": "openai-chat",
        "contract": "frozen-text/1",
        "history": [{"role": "user", "content": "earlier"}],
        "question": "question",
        "conditions": {"read_cap_bytes": 7, "connect_timeout_ms": 1000, "read_timeout_ms": 1000},
    }
    return fields | changes


@contextlib.asynccontextmanager
async def started(subject: Subject) -> AsyncIterator[SubjectProcess]:
    """A subject that said `ready`; stopped behind the block."""
    process = SubjectProcess(subject)
    try:
        await process.launch()
        await process.wait_ready()
        yield process
    finally:
        await process.stop()


def turns(folder: Path, program: str, *messages: dict[str, object]) -> Answers:
    """Give a throw-away subject some turns."""

    async def scene() -> Answers:
        async with started(a_subject(folder, program)) as process:
            return [await process.turn(item) for item in messages or [message()]]

    return run_async(scene())


def one_turn(folder: Path, program: str) -> NoClaim:
    """Give it one turn, that has no claim."""
    (answer,) = turns(folder, program)
    assert isinstance(answer, NoClaim), answer
    return answer
