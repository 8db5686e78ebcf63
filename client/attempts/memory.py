"""A store of attempts in memory: for tests, and for a program that keeps nothing when it ends.

Work is done on a copy that takes the original's place when it succeeds, one piece of work at a time.
It keeps what the database's constraints keep, by the same conditions; it is not durable.
"""

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..history import Message
from .payload import unspell
from .records import Decided, Quarantined, Record, Task, TaskState

T = TypeVar("T")


@dataclass
class _Tables:
    tasks: dict[str, Task] = field(default_factory=dict)
    attempts: dict[str, Record] = field(default_factory=dict)
    accepted: dict[str, bytes] = field(default_factory=dict)  # by attempt, in the order of acceptance
    quarantine: dict[str, Quarantined] = field(default_factory=dict)


class MemoryStore:
    """Runs work on its tables, alone and all or nothing."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._lock = threading.Lock()

    def run(self, work: Callable[["MemoryTransaction"], T]) -> T:
        """Run the work; keep what it did unless it raises."""
        with self._lock:
            tables = _Tables(**{name: copy.copy(table) for name, table in vars(self._tables).items()})
            result = work(MemoryTransaction(tables))
            self._tables = tables
            return result


class AsyncMemoryStore:
    """The same for asyncio."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    async def run(self, work: Callable[["MemoryTransaction"], T]) -> T:
        """Run the work; keep what it did unless it raises."""
        return self._store.run(work)


class MemoryTransaction:
    """The statements of `store.Transaction` on dictionaries."""

    def __init__(self, tables: _Tables) -> None:
        self._tables = tables

    def task(self, task_id: str) -> Task | None:
        return self._tables.tasks.get(task_id)

    def add_task(self, task: Task) -> None:
        self._tables.tasks.setdefault(task.task_id, task)

    def attempt(self, attempt_id: str) -> Record | None:
        return self._tables.attempts.get(attempt_id)

    def attempts(self, task_id: str) -> list[Record]:
        found = (record for record in self._tables.attempts.values() if record.task_id == task_id)
        return sorted(found, key=lambda record: record.fence)

    def take(self, task: Task, attempt_id: str, fence: int) -> bool:
        if self.task(task.task_id) != task or task.state is not TaskState.OPEN:
            return False
        self._tables.tasks[task.task_id] = replace(task, active=attempt_id, fence=fence)
        return True

    def release(self, record: Record) -> bool:
        return self._close(record, TaskState.OPEN)

    def publish(self, record: Record, decided: Decided, payload: bytes) -> bool:
        if not self._close(record, TaskState.COMMITTED):
            return False
        self.decide(record.attempt_id, decided)
        self._tables.accepted[record.attempt_id] = payload
        return True

    def add_attempt(self, record: Record) -> None:
        if record.attempt_id in self._tables.attempts:
            raise ValueError(f"attempt {record.attempt_id} is there already; ids are never given twice")
        self._tables.attempts[record.attempt_id] = record

    def decide(self, attempt_id: str, decided: Decided) -> None:
        record = self._tables.attempts[attempt_id]
        self._tables.attempts[attempt_id] = replace(record, decided=record.decided or decided)

    def clear(self, conversation_id: str, decided: Decided) -> None:
        for task in list(self._tables.tasks.values()):
            if task.conversation_id == conversation_id and task.state is not TaskState.CLEARED:
                if task.active is not None:
                    self.decide(task.active, decided)
                cleared = replace(task, state=TaskState.CLEARED, active=None, fence=task.fence + 1)
                self._tables.tasks[task.task_id] = cleared

    def payload(self, attempt_id: str) -> bytes | None:
        return self._tables.accepted.get(attempt_id)

    def history(self, conversation_id: str) -> list[Message]:
        messages = []
        for attempt_id, payload in self._tables.accepted.items():
            task = self._tables.tasks[self._tables.attempts[attempt_id].task_id]
            if task.conversation_id == conversation_id and task.state is TaskState.COMMITTED:
                messages += [Message(role="user", content=task.question), unspell(payload)]
        return messages

    def keep(self, partial: Quarantined) -> None:
        self._tables.quarantine.setdefault(partial.attempt_id, partial)

    def quarantined(self, task_id: str) -> list[Quarantined]:
        found = (partial for partial in self._tables.quarantine.values() if partial.task_id == task_id)
        return sorted(found, key=lambda partial: partial.fence)

    def _close(self, record: Record, state: TaskState) -> bool:
        task = self._tables.tasks[record.task_id]
        owned = (task.active, task.fence, task.state) == (record.attempt_id, record.fence, TaskState.OPEN)
        if owned:
            self._tables.tasks[task.task_id] = replace(task, active=None, state=state)
        return owned
