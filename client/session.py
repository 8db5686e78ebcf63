"""A session over real HTTP: several attempts for one question, moved step by step, with a journal of it.

Each attempt has an exchange of its own, which stays open; a step asks, reads, commits, cancels or
clears, and between two steps nothing is read. The policy says who may publish; this file moves it,
and knows no rule of its own. docs/attempts.md, sections A4 and A5, says what a step does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .attempts import DeniedError
from .contract import Contract
from .dialects import find
from .history import History
from .http import Conditions, Exchange
from .policies import COMMITTED, policy
from .reader import Judge


@dataclass(frozen=True, kw_only=True)
class Place:
    """What every attempt of a session asks, where, and under which conditions."""

    base_url: str
    dialect: str
    question: str
    conditions: Conditions


class Session:
    """One conversation under one contract; `close` has to be called in the end."""

    def __init__(self, place: Place, contract: Contract, history: History) -> None:
        """Raise ContractError for a dialect that the contract does not have."""
        self._place, self._contract = place, contract
        self._policy = policy(contract, place.dialect, history.messages, place.question)
        self._exchanges: dict[str, Exchange] = {}  # of the attempts that were not denied, in their order
        self._accepted: str | None = None  # the attempt whose commit stored an answer last

    async def step(self, step: Mapping[str, Any]) -> dict[str, object]:
        """Take one step; give its line of the journal, `denied` where the policy does not allow it."""
        try:
            result = await self._take(step)
        except DeniedError:
            result = "denied"
        return self._line(step["do"], step.get("attempt"), result)

    def claim(self) -> dict[str, object]:
        """Give what the session claims in the end: the history, the screen, and the outcome that counts."""
        name = self._accepted or next(reversed(self._exchanges), None)
        return {
            "history": self._policy.messages,
            "preview": self._policy.display,
            "raised": None,
            "hints": {},
            "outcome": None if name is None else self._policy.outcome(name),
            "dispatched": 0,  # nothing in this client runs a tool
        }

    def close(self) -> None:
        """Close every connection that is open still."""
        for exchange in self._exchanges.values():
            exchange.close()

    async def _take(self, step: Mapping[str, Any]) -> str | None:
        do = step["do"]
        if do == "clear":
            self._policy.clear()
        elif do == "begin":
            await self._ask(step["attempt"], self._policy.begin(step["attempt"]))
        elif do in ("supersede", "retry"):
            replace = self._policy.supersede if do == "supersede" else self._policy.retry
            await self._ask(step["attempt"], replace(step["attempt"], self._known(step["of"])))
        elif do == "read":
            await self._read(self._known(step["attempt"]), step.get("until_bytes"))
        elif do == "commit":
            return self._commit(self._known(step["attempt"]))
        elif do == "cancel":
            if self._policy.cancel(self._known(step["attempt"])):
                self._exchanges[step["attempt"]].close()
        else:
            raise ValueError(f"no step {do!r} in docs/attempts.md, section A4")
        return None

    def _known(self, name: str) -> str:
        if name not in self._exchanges:
            raise DeniedError(f"attempt {name} was never made")
        return name

    async def _ask(self, name: str, judge: Judge) -> None:
        place = self._place
        exchange = self._exchanges[name] = Exchange(judge, place.conditions)
        deadline_ms = self._contract.limits.deadline_ms
        await exchange.open(
            place.base_url, find(place.dialect).path, self._policy.messages, place.question, deadline_ms
        )

    async def _read(self, name: str, until_bytes: int | None) -> None:
        self._policy.reads()
        await self._exchanges[name].read(until_bytes)
        self._policy.has_read(name)

    def _commit(self, name: str) -> str:
        result = self._policy.commit(name)
        if result == COMMITTED:
            self._accepted = name
        return result

    def _line(self, do: str, name: str | None, result: str | None) -> dict[str, object]:
        exchange = self._exchanges.get(name) if name else None
        return {
            "do": do,
            "attempt": name,
            "result": result,
            "outcome": self._policy.outcome(name) if name and exchange else None,
            "consumed_bytes": exchange.consumed_bytes if exchange else 0,
            "reads": exchange.reads if exchange else 0,
            "preview": self._policy.preview(name) if name and exchange else "",
            "display": self._policy.display,
            "state": self._policy.state,
            "stored": self._policy.stored,
        }
