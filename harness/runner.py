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
from .canonical import canonical, line
from .cases import Case, Suite
from .provenance import provenance
from .redact import request_record
from .subjects.process import NoClaim, SubjectProcess
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


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What one trial left: the server's play, and the claim or why there is none."""

    trial: str
    suite: Suite
    case: Case
    contract: str
    served: "Trial"
    claim: dict[str, Any] | NoClaim
    started_ms: int
    duration_ms: int


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
    claim: dict[str, Any] | NoClaim
    if missing:
        claim = NoClaim(reason="unsupported", note=", ".join(sorted(missing)))
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
    """Wait until the server has noticed how its client left; bounded."""
    if served.play.requests:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PLAY_OVER_S):
                await served.play.over.wait()


# -- records


def _write(archive: Archive, observed: list[Observed]) -> None:
    archive.records("data/records", [_record(archive, item) for item in observed])
    archive.records("data/volatile", [_volatile(item) for item in observed])


def _record(archive: Archive, item: Observed) -> dict[str, object]:
    play, scripts = item.served.play, item.served.scripts
    claim = None if isinstance(item.claim, NoClaim) else item.claim
    asked = bool(play.requests)
    exchange = item.case.exchanges[min(len(play.requests) or 1, len(scripts)) - 1]
    consumed = claim.get("consumed_bytes") if claim else None
    received = exchange.body[: play.sent_bytes if consumed is None else min(consumed, play.sent_bytes)]
    return {
        "schema": "endmark.trial/1",
        "trial": item.trial,
        "suite": item.suite.name,
        "case": item.case.name,
        "contract": item.contract,
        "requests": [archive.blob(request_record(*request)[0]) for request in play.requests],
        "status": exchange.status if asked else None,
        "response_head": archive.blob(scripts[0].head) if asked else None,
        "body": archive.blob(received) if asked else None,
        "delivered": _delivered(item, claim),
        "claim": _claim(archive, claim) if claim else None,
        "no_claim": item.claim.reason if isinstance(item.claim, NoClaim) else None,
    }


def _delivered(item: Observed, claim: dict[str, Any] | None) -> bool:
    """Say whether the case reached the wire: up to where the client stopped, and the ending if it waited."""
    play = item.served.play
    if play.end in ("not-asked", "failed"):
        return False
    consumed = claim.get("consumed_bytes") if claim else None
    if claim is None or consumed is None:
        return True
    waited = claim.get("transport_end") in ("eof", "short-body", "reset", "bad-framing")
    return bool(play.sent_bytes >= consumed and (play.end == "played" or not waited))


def _claim(archive: Archive, claim: dict[str, Any]) -> dict[str, object]:
    raised = claim["raised"]
    return {
        "history": archive.blob(canonical(claim["history"])),
        "preview": archive.blob(claim["preview"].encode("utf-8", "surrogatepass")),
        "outcome": claim.get("outcome"),
        "class": claim.get("class"),
        "dispatched": claim.get("dispatched"),
        "finish_reason": claim["hints"].get("finish_reason"),
        "transport_end": claim.get("transport_end"),
        "status": claim.get("status"),
        "reads": claim.get("reads"),
        "consumed_bytes": claim.get("consumed_bytes"),
        "consumed_sha256": claim.get("consumed_sha256"),
        "raised": {"type": raised["type"], "chain": raised["chain"]} if raised else None,
    }


def _volatile(item: Observed) -> dict[str, object]:
    play = item.served.play
    claim = item.claim
    raised = None if isinstance(claim, NoClaim) else claim["raised"]
    left_out: set[str] = set()
    for request in play.requests:
        left_out |= request_record(*request)[1]
    return {
        "schema": "endmark.volatile/1",
        "trial": item.trial,
        "host": "127.0.0.1",
        "port": int(item.served.base_url.split(":")[2].split("/")[0]),
        "path": item.served.path,
        "started_ms": item.started_ms,
        "duration_ms": item.duration_ms,
        "sent_bytes": play.sent_bytes,
        "server_end": play.end,
        "redacted": sorted(left_out),
        "message": raised["message"] if raised else None,
        "note": claim.note if isinstance(claim, NoClaim) else None,
    }


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
