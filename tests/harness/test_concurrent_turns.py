"""Several turns of one subject at once: each claim reaches its own turn, and one failure ends all of them."""

import asyncio
from pathlib import Path

from harness.subjects.process import NoClaim

from .subject_turns import message, started
from .support import a_subject, run_async


def test_claims_out_of_order(tmp_path: Path) -> None:
    """Claims that come in another order than their turns each reach the turn they are about."""
    program = "ready()\nturns = [hear() for _ in range(3)]\nfor turn in reversed(turns):\n    claim(turn)\nhear()\n"

    async def work() -> list[object]:
        async with started(a_subject(tmp_path, program)) as process:
            found = await asyncio.gather(*(process.turn(message(name)) for name in ("a", "b", "c")))
            return [answer["trial"] for answer in found if isinstance(answer, dict)]

    assert run_async(work()) == ["a", "b", "c"]


def test_a_crash_ends_all_turns(tmp_path: Path) -> None:
    """A subject that dies with two turns under way gave no claim in either."""
    program = "ready()\nhear()\nhear()\nsys.exit(3)\n"

    async def work() -> list[str]:
        async with started(a_subject(tmp_path, program)) as process:
            found = await asyncio.gather(*(process.turn(message(name)) for name in ("a", "b")))
            return [answer.reason for answer in found if isinstance(answer, NoClaim)]

    assert run_async(work()) == ["exit", "exit"]
