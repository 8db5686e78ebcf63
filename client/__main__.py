"""`python -m client`: the strict client as a subject, one among others, without privilege.

It speaks the subject protocol: JSON lines on stdin and stdout, one long-lived process. It is
told a contract and claims everything that it saw. It knows nothing of cases and labels.
"""

import asyncio
import json
import os
import platform
import sys
from collections.abc import Coroutine
from typing import Any

from . import CANCEL, Answer, Conditions, Contract, History, ask, load
from .dialects import names
from .outcomes import COMPLETE
from .reader import Control
from .units import utf16_units

PROTOCOL = "endmark.subject/1"
VERSION = "1"

_READY: dict[str, object] = {
    "kind": "ready",
    "protocol": PROTOCOL,
    "name": "strict",
    "version": VERSION,
    "language": f"Python {platform.python_version()}",
    "dialects": names(),
    "capabilities": ["cancel", "concurrent", "read-cap", "read-timeout", "steps"],
}


# The steps of one session, as they come; None is the end of input.
_Inbox = asyncio.Queue[dict[str, Any] | None]


class _CancelAfter:
    """A preview callback that cancels once the preview holds so many UTF-16 units."""

    def __init__(self, utf16: int) -> None:
        self._left_utf16 = utf16

    def __call__(self, piece: str) -> Control | None:
        self._left_utf16 -= utf16_units(piece)
        return CANCEL if self._left_utf16 <= 0 else None


def main() -> int:
    """Answer turns until `stop` or the end of input; exit 2 for a line that is no message."""
    with asyncio.Runner() as runner:
        return runner.run(_serve())


async def _serve() -> int:
    """Take turns as they come, each a task of its own, and give steps to the sessions that they are about."""
    contracts: dict[str, Contract] = {}
    turns: set[asyncio.Task[None]] = set()
    sessions: dict[str, _Inbox] = {}
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        try:
            message = json.loads(line)
            kind = message["kind"]
            if kind in ("step", "finish"):
                sessions[message["trial"]].put_nowait(message)
        except (ValueError, TypeError, KeyError):
            print(f"client: not a message of {PROTOCOL}: {line[:80]!r}", file=sys.stderr)
            return 2
        if kind == "start":
            _say(_READY)
        elif kind == "turn":
            name = message["contract"]
            contract = contracts[name] = contracts.get(name) or load(name)
            task = asyncio.create_task(_answer(_work(message, contract, sessions)))
            turns.add(task)
            task.add_done_callback(turns.discard)
        elif kind == "finish":
            del sessions[message["trial"]]
        elif kind == "stop":
            break
    for inbox in sessions.values():
        inbox.put_nowait(None)
    await asyncio.gather(*turns)
    return 0


def _work(message: dict[str, Any], contract: Contract, sessions: dict[str, _Inbox]) -> Coroutine[Any, Any, None]:
    """Give what a turn asks for: one answer, or a session that takes steps."""
    if not message.get("steps"):
        return _turn(message, contract)
    inbox = sessions[message["trial"]] = _Inbox()
    return _session(message, contract, inbox)


async def _answer(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception as error:  # a bug of ours must be seen as a crash, not as a turn without an end
        print(f"client: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


async def _session(message: dict[str, Any], contract: Contract, inbox: _Inbox) -> None:
    """Take the steps of one session as they come, and claim when they are over."""
    from .session import Place, Session  # loading it takes longer than some trials, and most runs have no session

    place = Place(
        base_url=message["base_url"],
        dialect=message["dialect"],
        question=message["question"],
        conditions=_conditions(message["conditions"]),
    )
    session = Session(place, contract, History(message["history"]))
    try:
        while (step := await inbox.get()) is not None:
            if step["kind"] == "finish":
                _say({"kind": "claim", "trial": message["trial"], **session.claim()})
                return
            _say({"kind": "stepped", "trial": message["trial"], "journal": await session.step(step)})
    finally:
        session.close()


async def _turn(message: dict[str, Any], contract: Contract) -> None:
    given = message["conditions"]
    history = History(message["history"])
    answer = await ask(
        message["base_url"],
        history.messages,
        message["question"],
        contract=contract,
        dialect=message["dialect"],
        conditions=_conditions(given),
        on_preview=_CancelAfter(given["cancel_after_utf16"]) if "cancel_after_utf16" in given else None,
    )
    history.accept(message["question"], answer.turn)
    _say(_claim(message["trial"], history, answer))


def _conditions(given: dict[str, int]) -> Conditions:
    return Conditions(
        read_cap_bytes=given["read_cap_bytes"],
        connect_timeout_ms=given["connect_timeout_ms"],
        read_timeout_ms=given["read_timeout_ms"],
    )


def _claim(trial: str, history: History, answer: Answer) -> dict[str, object]:
    turn = answer.turn
    refused = {"type": str(turn.outcome), "chain": [], "message": turn.why}
    return {
        "kind": "claim",
        "trial": trial,
        "history": history.messages,
        "preview": turn.preview,
        "raised": None if turn.outcome == COMPLETE else refused,
        "hints": {"finish_reason": turn.finish_reason},
        "outcome": turn.outcome,
        "class": turn.reason_class,
        "dispatched": 0,  # nothing in this client runs a tool
        "status": answer.status,
        "reads": answer.reads,
        "consumed_bytes": answer.consumed_bytes,
        "consumed_sha256": answer.consumed_sha256,
        "transport_end": answer.transport_end,
    }


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
