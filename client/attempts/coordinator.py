"""The coordinator: the only one that makes an accepted answer out of a provisional one.

    coordinator = Coordinator(store, load("strict/1"), "openai-chat")
    attempt = coordinator.begin("task-1", "What is new?")
    attempt.head(200, "text/event-stream") or attempt.feed(b"data: ...") or attempt.end("eof")
    match attempt.commit():
        case Committed(message=message): ...
        case Refused(why=why): ...
        case Superseded(): ...

`Coordinator` blocks, `AsyncCoordinator` awaits; both say the same with the same `Moves`. A coordinator
holds nothing itself: any number of them, in any number of processes, may share a store. This file knows
no database; a stream is read by the attempt.
"""

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..contract import Contract
from ..history import Message
from ..reader import OnPreview
from .moves import Clock, Moves
from .reading import Reading
from .records import Quarantined, Record, Result
from .store import AsyncStore, Store

if TYPE_CHECKING:
    from ..validators import Validator

# The conversation of a program that has only one.
DEFAULT = "default"


def now_us() -> int:
    """Give microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def new_id() -> str:
    """Give an id that was never given before (RFC 9562 version 4)."""
    return str(uuid.uuid4())


class Attempt(Reading):
    """One request made for a task, with its own buffer; made by a coordinator."""

    def __init__(self, coordinator: "Coordinator", record: Record, on_preview: OnPreview | None) -> None:
        super().__init__(record, coordinator.moves.contract, coordinator.moves.dialect, on_preview)
        self._coordinator = coordinator

    def commit(self, within: Store | None = None) -> Result:
        """Ask to publish. Asked again it gives the same result again, and nothing is stored twice.

        `within` joins a transaction of the caller's: then the answer is stored when, and only if, that commits.
        Raises DeniedError where the attempt was decided with another payload.
        """
        return self._coordinator.commit(self, within)

    def cancel(self) -> None:
        """Give the right to publish up; raise DeniedError where the attempt is decided already."""
        self._coordinator.cancel(self)


class AsyncAttempt(Reading):
    """The same for asyncio: only what asks the store is awaited."""

    def __init__(self, coordinator: "AsyncCoordinator", record: Record, on_preview: OnPreview | None) -> None:
        super().__init__(record, coordinator.moves.contract, coordinator.moves.dialect, on_preview)
        self._coordinator = coordinator

    async def commit(self, within: AsyncStore | None = None) -> Result:
        """Ask to publish, as `Attempt.commit` does."""
        return await self._coordinator.commit(self, within)

    async def cancel(self) -> None:
        """Give the right to publish up, as `Attempt.cancel` does."""
        await self._coordinator.cancel(self)


class Coordinator:
    """The calls of docs/attempts.md, section A2; a call in the wrong place raises DeniedError."""

    def __init__(
        self,
        store: Store,
        contract: Contract,
        dialect: str,
        *,
        validate: "Validator | None" = None,
        clock: Clock = now_us,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        """Raise ContractError where the contract lacks the dialect or is the naive control's."""
        self.moves = Moves(contract, dialect, validate, clock, new_id)
        self._store = store

    def begin(
        self, task_id: str, question: str, conversation_id: str = DEFAULT, on_preview: OnPreview | None = None
    ) -> Attempt:
        """Make the first attempt of a task, or a further one of an open task that has none active."""
        record = self._store.run(lambda tx: self.moves.begin(tx, task_id, question, conversation_id))
        return Attempt(self, record, on_preview)

    def supersede(self, old: Reading | str, on_preview: OnPreview | None = None) -> Attempt:
        """Replace the active attempt (or, by its id, another process's): it can publish no longer."""
        return Attempt(self, self._store.run(lambda tx: self.moves.supersede(tx, old)), on_preview)

    def retry(self, old: Reading | str, on_preview: OnPreview | None = None) -> Attempt:
        """Make a fresh attempt for one that ended refused, failed or cancelled; as often as the contract allows."""
        return Attempt(self, self._store.run(lambda tx: self.moves.retry(tx, old)), on_preview)

    def commit(self, attempt: Reading, within: Store | None = None) -> Result:
        """Ask to publish, as `Attempt.commit` does."""
        store = within or self._store
        known = store.run(lambda tx: self.moves.look(tx, attempt))
        if known is not None:
            return known
        judged = self.moves.judge(attempt)  # outside of any transaction of ours: a validator may take its time
        return store.run(lambda tx: self.moves.decide(tx, attempt, judged))

    def cancel(self, attempt: Reading | str) -> None:
        """Decide an attempt as cancelled; by its id, where another process reads it."""
        self._store.run(lambda tx: self.moves.cancel(tx, attempt))

    def clear(self, conversation_id: str = DEFAULT) -> None:
        """Close all tasks of a conversation: its history is empty, and none of its attempts may publish."""
        self._store.run(lambda tx: self.moves.clear(tx, conversation_id))

    def history(self, conversation_id: str = DEFAULT) -> list[Message]:
        """List the questions and accepted answers, in the order of acceptance: what the next request sends."""
        return self._store.run(lambda tx: tx.history(conversation_id))

    def quarantined(self, task_id: str) -> list[Quarantined]:
        """List the partial texts of a task's attempts that were not accepted, by fence."""
        return self._store.run(lambda tx: tx.quarantined(task_id))

    def attempts(self, task_id: str) -> list[Record]:
        """List the attempts of a task, by fence; the one without a decision is active."""
        return self._store.run(lambda tx: tx.attempts(task_id))


class AsyncCoordinator:
    """The same calls for asyncio."""

    def __init__(
        self,
        store: AsyncStore,
        contract: Contract,
        dialect: str,
        *,
        validate: "Validator | None" = None,
        clock: Clock = now_us,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        """Raise ContractError where the contract lacks the dialect or is the naive control's."""
        self.moves = Moves(contract, dialect, validate, clock, new_id)
        self._store = store

    async def begin(
        self, task_id: str, question: str, conversation_id: str = DEFAULT, on_preview: OnPreview | None = None
    ) -> AsyncAttempt:
        """Make an attempt, as `Coordinator.begin` does."""
        record = await self._store.run(lambda tx: self.moves.begin(tx, task_id, question, conversation_id))
        return AsyncAttempt(self, record, on_preview)

    async def supersede(self, old: Reading | str, on_preview: OnPreview | None = None) -> AsyncAttempt:
        """Replace the active attempt, as `Coordinator.supersede` does."""
        return AsyncAttempt(self, await self._store.run(lambda tx: self.moves.supersede(tx, old)), on_preview)

    async def retry(self, old: Reading | str, on_preview: OnPreview | None = None) -> AsyncAttempt:
        """Make a fresh attempt, as `Coordinator.retry` does."""
        return AsyncAttempt(self, await self._store.run(lambda tx: self.moves.retry(tx, old)), on_preview)

    async def commit(self, attempt: Reading, within: AsyncStore | None = None) -> Result:
        """Ask to publish, as `Attempt.commit` does."""
        store = within or self._store
        known = await store.run(lambda tx: self.moves.look(tx, attempt))
        if known is not None:
            return known
        judged = self.moves.judge(attempt)
        return await store.run(lambda tx: self.moves.decide(tx, attempt, judged))

    async def cancel(self, attempt: Reading | str) -> None:
        """Decide an attempt as cancelled, as `Coordinator.cancel` does."""
        await self._store.run(lambda tx: self.moves.cancel(tx, attempt))

    async def clear(self, conversation_id: str = DEFAULT) -> None:
        """Close all tasks of a conversation, as `Coordinator.clear` does."""
        await self._store.run(lambda tx: self.moves.clear(tx, conversation_id))

    async def history(self, conversation_id: str = DEFAULT) -> list[Message]:
        """List questions and accepted answers, as `Coordinator.history` does."""
        return await self._store.run(lambda tx: tx.history(conversation_id))

    async def quarantined(self, task_id: str) -> list[Quarantined]:
        """List the partial texts of a task, as `Coordinator.quarantined` does."""
        return await self._store.run(lambda tx: tx.quarantined(task_id))

    async def attempts(self, task_id: str) -> list[Record]:
        """List the attempts of a task, as `Coordinator.attempts` does."""
        return await self._store.run(lambda tx: tx.attempts(task_id))
