"""One subject as a long-lived process: start, turn, stop, over JSON lines on stdio.

What a subject does wrong (crash, hang, nonsense) is a value: `NoClaim` says which, and the next
turn starts a fresh process. Only a subject that cannot be started at all is an exception, since
then no trial can be run.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..names import IMPORT_ROOT, UsageError
from .protocol import PROTOCOL, wrong_claim, wrong_ready, wrong_stepped
from .registry import Subject

_LINE_BYTES = 1024 * 1024
_READY_S = 30.0
_CLAIM_S = 20.0
_STOP_S = 2.0
_STDERR_LINES = 5


@dataclass(frozen=True, kw_only=True)
class NoClaim:
    """Why a turn gave no claim: `unsupported`, `timeout`, `exit` or `malformed`, and in words."""

    reason: str
    note: str


Answer = dict[str, Any] | NoClaim

# Says what is wrong with a message, or None.
_Check = Callable[[Mapping[str, Any]], str | None]


class SubjectProcess:
    """Drives one subject; used by one task at a time, by several where the subject is `concurrent`."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._process: asyncio.subprocess.Process | None = None
        self._errors: deque[str] = deque(maxlen=_STDERR_LINES)
        self._drain: asyncio.Task[None] | None = None
        self.ready: dict[str, Any] = {}
        self._mail: dict[str, deque[dict[str, Any]]] = {}  # what was heard, by the trial it is about
        self._reading, self._starting = asyncio.Lock(), asyncio.Lock()

    async def launch(self) -> None:
        """Start the process and say `start`, without waiting for the answer."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._subject.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_BYTES,
                cwd=IMPORT_ROOT,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"subject {self._subject.name}: {self._subject.command[0]}: {error.strerror}") from error
        self._errors.clear()
        self._drain = asyncio.create_task(self._read_errors(self._process))
        await self._say({"kind": "start", "protocol": PROTOCOL})

    async def wait_ready(self) -> None:
        """Wait for `ready`; raise UsageError with the subject's last words where it does not come."""
        answer = await self._hear(_READY_S)
        if isinstance(answer, NoClaim):
            raise UsageError(f"subject {self._subject.name}: no ready: {answer.note}")
        wrong = wrong_ready(answer)
        if wrong:
            raise UsageError(f"subject {self._subject.name}: ready: {wrong}")
        self.ready = answer

    async def turn(self, message: Mapping[str, object]) -> Answer:
        """Send one turn and wait for its claim."""
        async with self._taking(message) as trial:
            return await self._ask({"kind": "turn", **message}, trial, "claim", wrong_claim)

    async def session(
        self, message: Mapping[str, object], steps: Sequence[Mapping[str, object]]
    ) -> tuple[Answer, list[dict[str, Any]]]:
        """Send one turn and its steps, each when the one before was answered; give the claim and the journal."""
        journal: list[dict[str, Any]] = []
        async with self._taking(message) as trial:
            await self._say({"kind": "turn", **message})
            for step in steps:
                asked = {"kind": "step", "trial": trial, **step}
                answer = await self._ask(asked, trial, "stepped", partial(wrong_stepped, step))
                if isinstance(answer, NoClaim):
                    return answer, journal
                journal.append(answer["journal"])
            return await self._ask({"kind": "finish", "trial": trial}, trial, "claim", wrong_claim), journal

    async def stop(self) -> None:
        """Ask the process to stop; kill it by its own id if it does not."""
        if self._process is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await self._say({"kind": "stop"})
                    await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it leads its own session: its children end with it
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await process.wait()
        if self._drain:  # a child of the subject may hold its pipes open: do not wait for that
            self._drain.cancel()
            await asyncio.gather(self._drain, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _taking(self, message: Mapping[str, object]) -> AsyncIterator[str]:
        """Start the process where there is none, and hear what it says about this turn's trial."""
        async with self._starting:
            if self._process is None:
                await self.launch()
                await self.wait_ready()
        trial = str(message["trial"])
        self._mail[trial] = deque()
        try:
            yield trial
        finally:
            del self._mail[trial]

    async def _ask(self, message: dict[str, object], trial: str, kind: str, check: _Check) -> Answer:
        """Send one message and wait for its answer of this kind; a subject that does not give it is ended."""
        try:
            async with asyncio.timeout(_CLAIM_S):
                await self._say(message)
                answer = await self._answer(trial, kind, check)
        except TimeoutError:
            answer = NoClaim(reason="timeout", note=f"no {kind} within {_CLAIM_S:.0f} s")
        if isinstance(answer, NoClaim) and answer.reason != "unsupported":
            await self.kill()
        return answer

    async def _answer(self, trial: str, kind: str, check: _Check) -> Answer:
        while True:
            answer = await self._next(trial)
            if isinstance(answer, NoClaim):
                return answer
            if answer["kind"] == "unsupported":
                return NoClaim(reason="unsupported", note=str(answer.get("capability"))[:100])
            if answer["kind"] == kind:
                wrong = check(answer)
                return NoClaim(reason="malformed", note=f"{kind}: {wrong[:200]}") if wrong else answer
            if answer["kind"] != "progress":
                return NoClaim(reason="malformed", note=f"a message of kind {answer['kind'][:100]!r}, {kind!r} is due")

    async def _next(self, trial: str) -> Answer:
        """Give the next message about a trial; of all that wait, one reads for the others."""
        while not self._mail[trial]:
            async with self._reading:
                if self._mail[trial]:
                    break
                if self._process is None:
                    return NoClaim(reason="exit", note="the process was ended for another turn of its own")
                answer = await self._hear(_CLAIM_S)
                if isinstance(answer, NoClaim):
                    return answer
                about = str(answer.get("trial"))[:100]
                if about not in self._mail:
                    return NoClaim(reason="malformed", note=f"a message about another trial: {about!r}")
                self._mail[about].append(answer)
        return self._mail[trial].popleft()

    async def _hear(self, seconds: float) -> Answer:
        """Read one message; a NoClaim for the end of output and for a line that is none."""
        assert self._process
        assert self._process.stdout
        try:
            async with asyncio.timeout(seconds):
                line = await self._process.stdout.readline()
        except TimeoutError:
            return NoClaim(reason="timeout", note=f"nothing within {seconds:.0f} s")
        except ValueError:
            return NoClaim(reason="malformed", note=f"a line of more than {_LINE_BYTES} bytes")
        if not line:
            return NoClaim(reason="exit", note=await self._last_words())
        try:
            message = json.loads(line)
            json.dumps(message, ensure_ascii=False).encode()  # a lone surrogate is no text: no archive can hold it
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
            return NoClaim(reason="malformed", note=f"not a message: {line[:80]!r}")
        return message

    async def _say(self, message: dict[str, object]) -> None:
        if self._process is None:  # ended for another turn of its own; that is noticed when it is heard
            return
        assert self._process.stdin
        with contextlib.suppress(ConnectionError):  # a dead process is noticed when it is heard
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()

    async def _last_words(self) -> str:
        assert self._process
        assert self._drain
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        await asyncio.wait([self._drain], timeout=_STOP_S)
        code = self._process.returncode
        return " | ".join(["closed its output" if code is None else f"exit {code}", *self._errors])

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        """Keep the last lines of stderr, so that a full pipe never blocks the subject."""
        assert process.stderr
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            self._errors.append(line.decode("utf-8", "replace").strip()[:200])
