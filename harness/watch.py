"""Lets a person watch one case: serves it, and starts the client's terminal program against that server.

The program is a process of its own and draws for itself; nothing of it is imported here. It leads its own
session, so that an interruption reaches it once and by way of this file, which waits for its last frame.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cases import Case, Suite, case_names, check_contracts, load_suite
from .names import IMPORT_ROOT, PACKAGE_PREFIX, UsageError, is_name
from .server.app import FixtureServer

# The display policies of the program, the default first.
POLICIES = ("immediate", "segments", "full")

_FROZEN = "frozen"

# How long an interrupted program may take for its last frame.
_LAST_FRAME_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a case is watched."""

    contract: str
    policy: str
    refuse: str | None
    cap_bytes: int
    slow_ms: int
    record: Path | None


def load(root: Path, name: str, contract: str | None) -> tuple[Suite, Case, str]:
    """Give the suite and case named SUITE/NAME or, of the frozen suite, NAME, and the contract to judge it by.

    Raises UsageError for a case that is not there, and for a session, which has several attempts to watch.
    """
    suite_name, _, case_name = name.rpartition("/")
    suite = load_suite(root, suite_name or _FROZEN, case_name if is_name(case_name) else "")
    if not suite.cases:
        there = ", ".join(case_names(suite.folder))
        raise UsageError(f"suite {suite.name} has no case {case_name!r} (there are: {there})")
    (case,) = suite.cases
    if case.steps:
        raise UsageError(f"{suite.name}/{case.name} is a session of several attempts; run it, and `show` prints it")
    wanted = contract or suite.contracts[0]
    check_contracts(root, [wanted])
    return suite, case, wanted


async def watch(suite: Suite, case: Case, look: Look) -> int:
    """Serve the case and let the program draw; give the program's exit code."""
    async with FixtureServer() as server:
        trial = server.open(case)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", f"{PACKAGE_PREFIX}client.watch", trial.base_url),
            *_options(suite, case, look),
            stdin=asyncio.subprocess.DEVNULL,
            cwd=IMPORT_ROOT,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
        try:
            return await process.wait()
        except asyncio.CancelledError:
            await _interrupt(process)
            raise


async def _interrupt(process: asyncio.subprocess.Process) -> None:
    """Let the program end in its own way, and end it by its own id where it does not."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_LAST_FRAME_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _options(suite: Suite, case: Case, look: Look) -> Iterator[str]:
    title = f"{suite.name}/{case.name}: {case.dialect} under {look.contract}, cap {look.cap_bytes}, {look.policy}"
    yield from ("--title", title)
    yield from ("--dialect", case.dialect, "--contract", look.contract, "--policy", look.policy)
    yield from ("--question", suite.question, "--history", json.dumps(suite.history))
    yield from ("--cap", str(look.cap_bytes), "--read-timeout-ms", str(case.conditions["read_timeout_ms"]))
    yield from ("--slow", str(look.slow_ms))
    if "cancel_after_utf16" in case.conditions:
        yield from ("--cancel-after-utf16", str(case.conditions["cancel_after_utf16"]))
    if look.refuse is not None:
        yield f"--refuse={look.refuse}"
    if look.record is not None:
        yield f"--record={look.record}"
