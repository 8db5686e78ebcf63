"""What a store of attempts has to do: run work in one transaction, and a few conditional statements in it.

A `Store` runs a piece of work on a `Transaction`, all of it or nothing; an `AsyncStore` does the same
with an await. Statements are plain and synchronous in both. Which statement to ask for is the
coordinator's to know (`moves`), not the store's.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from ..history import Message
from .records import Decided, Quarantined, Record, Task

T = TypeVar("T")


class Transaction(Protocol):
    """One open transaction. A statement that says whether it had an effect is conditional and atomic."""

    def task(self, task_id: str) -> Task | None:
        """Give a task, or None where it is not known."""

    def add_task(self, task: Task) -> None:
        """Add a task unless there is one of that id."""

    def attempt(self, attempt_id: str) -> Record | None:
        """Give an attempt, or None where it is not known."""

    def attempts(self, task_id: str) -> list[Record]:
        """List the attempts of a task, by fence."""

    def take(self, task: Task, attempt_id: str, fence: int) -> bool:
        """Make an attempt the active one, if the task is open and has this fence and this active attempt still."""

    def release(self, record: Record) -> bool:
        """Let an attempt be active no longer, if it is the active one of an open task, by its fence."""

    def publish(self, record: Record, decided: Decided, payload: bytes) -> bool:
        """Commit the task, decide the attempt and store its answer, if it is the active one, as for release."""

    def add_attempt(self, record: Record) -> None:
        """Add an attempt that is not decided."""

    def decide(self, attempt_id: str, decided: Decided) -> None:
        """Record the decision of an attempt that has none."""

    def clear(self, conversation_id: str, decided: Decided) -> None:
        """Clear every task of a conversation, each with its next fence, and decide its active attempts."""

    def payload(self, attempt_id: str) -> bytes | None:
        """Give the accepted answer of an attempt, or None where it has none."""

    def history(self, conversation_id: str) -> list[Message]:
        """List question and answer of each committed task of a conversation, in the order of acceptance."""

    def keep(self, partial: Quarantined) -> None:
        """Put a partial text into the quarantine, once per attempt."""

    def quarantined(self, task_id: str) -> list[Quarantined]:
        """List the partial texts of a task, by fence."""


class Store(Protocol):
    """Runs work in a transaction of its own, or in the caller's."""

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run the work; keep what it did unless it raises."""


class AsyncStore(Protocol):
    """The same for asyncio; the work itself is synchronous."""

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """Run the work; keep what it did unless it raises."""
