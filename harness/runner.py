"""Plans trials, runs each against a subject, and hands what happened to the archive.

plan → trials → records. The plan is written before the first trial, so a trial that never ran
cannot vanish. The runner opens no label and judges nothing; it writes down what the server did
and what the subject claims.
"""

import asyncio
import contextlib
import platform
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .archive import Archive
from .canonical import line
from .cases import Case, Suite
from .provenance import provenance
from .records import Observed, record, volatile
from .subjects.process import Answer, NoClaim, SubjectProcess
from .subjects.registry import ANY_DIALECT, CONCURRENT, Subject

if TYPE_CHECKING:
    from .server.app import FixtureServer, Trial

# How many turns a subject that is `concurrent` is given at once, so that a silent case holds nobody up.
_CONCURRENT_TURNS = 4

# How long the server may need to notice that a client has gone.
_PLAY_OVER_S = 5.0

OnTrial = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is going to be run."""

    subject: Subject
    suites: tuple[Suite, ...]

    def trials(self) -> "list[Planned]":
        """Give every trial as (id, suite, case, contract), sorted by id."""
        found = [
            (f"{suite.name}/{case.name}@{contract}", suite, case, contract)
            for suite in self.suites
            for case in suite.cases
            for contract in suite.contracts
        ]
        return sorted(found, key=lambda trial: trial[0].encode())

    def record(self) -> dict[str, object]:
        """Give the plan as it is archived."""
        return {
            "schema": "endmark.plan/1",
            "subject": {
                "contract_aware": self.subject.contract_aware,
                "history_owner": self.subject.history_owner,
                "name": self.subject.name,
            },
            "suites": sorted(suite.name for suite in self.suites),
            "trials": [trial[0] for trial in self.trials()],
        }


async def run(
    plan: Plan, archive: Archive, jobs: int, on_trial: OnTrial, on_sealed: Callable[[], None] = lambda: None
) -> tuple[str, str]:
    """Run every trial of the plan and seal the archive; give its stable and full root.

    `on_sealed` is called as soon as the archive may be read, while the subjects are still ending.
    """
    archive.write("data/records/plan.json", line(plan.record()))
    started_at = _now()
    processes = [SubjectProcess(plan.subject) for _ in range(min(jobs, len(plan.trials())))]
    async with contextlib.AsyncExitStack() as stack:
        for process in processes:
            stack.push_async_callback(process.stop)
            await process.launch()
        # The subject starts while aiohttp, the slowest import of a run, is loaded.
        from .server.app import FixtureServer

        server = await stack.enter_async_context(FixtureServer())
        for process in processes:
            await process.wait_ready()
        ready = processes[0].ready
        # Files are copied and hashed while trials wait for the wire.
        copying = asyncio.create_task(asyncio.to_thread(_write_inputs, archive, plan, ready))
        stack.push_async_callback(asyncio.wait, {copying})  # whatever happens: nothing writes once a run is over
        observed = await _run_trials(plan, server, processes, on_trial)
        await copying
        # The subjects end while their records are written.
        stopping = asyncio.gather(*(process.stop() for process in processes))
        await asyncio.sleep(0)
        _write(archive, observed)
        archive.write("data/volatile/run.json", line(_run_record(started_at, len(processes), server.port)))
        roots = archive.seal()
        on_sealed()
        await stopping
    return roots


async def _run_trials(
    plan: Plan, server: "FixtureServer", processes: list[SubjectProcess], on_trial: OnTrial
) -> list[Observed]:
    """Share the trials out among the processes; give what was observed in the order of the plan."""
    begun = time.monotonic()
    waiting = iter(plan.trials())
    observed: list[Observed] = []

    async def work(process: SubjectProcess) -> None:
        for trial in waiting:
            observed.append(await _trial(trial, plan.subject, server, process, begun))
            on_trial(trial[0])

    try:
        async with asyncio.TaskGroup() as group:
            for process in processes:
                for _ in range(_CONCURRENT_TURNS if CONCURRENT in plan.subject.capabilities else 1):
                    group.create_task(work(process))
    except ExceptionGroup as failed:  # a user's mistake is said in one line: the first
        raise failed.exceptions[0] from None
    return sorted(observed, key=lambda item: item.trial.encode())


Planned = tuple[str, Suite, Case, str]


async def _trial(
    planned: Planned, subject: Subject, server: "FixtureServer", process: SubjectProcess, begun: float
) -> Observed:
    name, suite, case, contract = planned
    start = time.monotonic()
    served = server.open(case)
    missing = case.needs - subject.capabilities
    if case.dialect not in (process.ready["dialects"] if ANY_DIALECT in subject.dialects else subject.dialects):
        missing |= {f"dialect {case.dialect}"}
    claim: Answer
    journal: list[dict[str, Any]] = []
    if missing:
        claim = NoClaim(reason="unsupported", note=", ".join(sorted(missing)))
    elif case.steps:
        claim, journal = await process.session(
            _turn(served, suite, case, contract) | {"steps": True}, [step.message for step in case.steps]
        )
    else:
        claim = await process.turn(_turn(served, suite, case, contract))
    await _play_over(served)
    server.close(served)
    return Observed(
        trial=name,
        suite=suite,
        case=case,
        contract=contract,
        served=served,
        claim=claim,
        journal=journal,
        started_ms=round((start - begun) * 1000),
        duration_ms=round((time.monotonic() - start) * 1000),
    )


def _turn(served: "Trial", suite: Suite, case: Case, contract: str) -> dict[str, object]:
    return {
        "trial": served.path.split("/")[1],
        "base_url": served.base_url,
        "dialect": case.dialect,
        "contract": contract,
        "history": list(suite.history),
        "question": suite.question,
        "conditions": dict(case.conditions),
    }


async def _play_over(served: "Trial") -> None:
    """Wait until the server has noticed how its clients left; bounded."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PLAY_OVER_S):
            for play in served.plays:
                await play.over.wait()


# -- records


def _write(archive: Archive, observed: list[Observed]) -> None:
    archive.records("data/records", [record(archive, item) for item in observed])
    archive.records("data/volatile", [volatile(item) for item in observed])


def _run_record(started_at: str, jobs: int, port: int) -> dict[str, object]:
    return {
        "schema": "endmark.run/1",
        "run_id": str(uuid.uuid4()),
        "started_at": started_at,
        "finished_at": _now(),
        "host": f"{platform.system()} {platform.machine()}",  # the kind of machine, not its name
        "jobs": jobs,
        "port": port,
    }


def _write_inputs(archive: Archive, plan: Plan, ready: Mapping[str, Any]) -> None:
    """Write what the trials do not determine: the suites, and who made the run."""
    archive.write("data/provenance.json", line(provenance(ready)))
    contracts: set[str] = set()
    for suite in plan.suites:
        archive.copy_suite(suite.folder, suite.name, [case.name for case in suite.cases])
        contracts |= set(suite.contracts)
    _copy_contracts(archive, plan.suites, contracts)


def _copy_contracts(archive: Archive, suites: Iterable[Suite], contracts: set[str]) -> None:
    folder = next(iter(suites)).folder.parent / "contracts"
    files = {f"{name.replace('/', '-')}.toml" for name in contracts}
    for name in sorted(files | {"manifest-sha256.txt"}):
        archive.write(f"data/suite/contracts/{name}", (folder / name).read_bytes())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
