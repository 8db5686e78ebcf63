"""What moves an attempt: docs/attempts.md, section A2, one method for each call.

Theory of operation. The store holds a task with a fence and the one attempt that may publish. Each
call that gives or takes that right is one conditional statement on task, fence, active attempt and
state; whoever finds it without effect was too late, and looks at what is there now. An attempt is
undecided exactly while it is the active one, so a decision once written answers every later question
about it. The statement on the task comes first in every call, so that two callers wait for each other
there and nowhere else.

Every method takes an open transaction and leaves committing it to the store. Nothing here reads a
stream, and nothing but `judge`, which needs no transaction, asks a validator.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..contract import Contract, ContractError
from ..history import Message
from ..outcomes import CANCELLED, COMPLETE, DEADLINE, PROVIDER_ERROR, READ_TIMEOUT, Outcome
from ..reader import Settled
from . import payload
from .evidence import evidence
from .reading import Reading
from .records import (
    INTERRUPTED,
    SUPERSEDED,
    Committed,
    Decided,
    Decision,
    DeniedError,
    Origin,
    Quarantined,
    Record,
    Refused,
    Result,
    Superseded,
    Task,
    TaskState,
)
from .store import Transaction

if TYPE_CHECKING:  # jsonschema comes with it, which a program without a validator need not load
    from ..validators import Validator

# The version of the client's dialects; raised when one of them reads an event otherwise than before.
ADAPTER_VERSION = "1"

_FAILED = frozenset({PROVIDER_ERROR, READ_TIMEOUT, DEADLINE})

# Gives microseconds since 1970, UTC.
Clock = Callable[[], int]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An attempt's turn, judged and ready to be decided; `message` is None where it may not be stored."""

    message: Message | None
    bytes: bytes
    decided: Decided


class Moves:
    """The calls under one contract and dialect."""

    def __init__(
        self,
        contract: Contract,
        dialect: str,
        validate: "Validator | None",
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        """Raise ContractError where the contract lacks the dialect, or is the naive control's."""
        if dialect not in contract.dialects:
            raise ContractError(f"contract {contract.name} has no rules for dialect {dialect!r}")
        if contract.attempts.policy != "owned":
            raise ContractError(f"contract {contract.name} is of the policy {contract.attempts.policy!r}, not owned")
        self.contract, self.dialect = contract, dialect
        self._validate, self._clock, self._new_id = validate, clock, new_id

    # -- calls that make an attempt

    def begin(self, tx: Transaction, task_id: str, question: str, conversation_id: str) -> Record:
        """Make the active attempt of a task that has none; a task that is not known is opened first."""
        asked = Task(
            task_id=task_id,
            conversation_id=conversation_id,
            question=question,
            fence=0,
            active=None,
            state=TaskState.OPEN,
        )
        tx.add_task(asked)
        task = self._open(tx, "begin", task_id)
        if (task.conversation_id, task.question) != (conversation_id, question):
            raise DeniedError(f"begin: task {task_id!r} has another question or conversation; give it an id of its own")
        if task.active is not None:
            raise DeniedError(f"begin: task {task_id!r} has the active attempt {task.active}; supersede that one")
        return self._activate(tx, task, Origin.BEGIN, None)

    def supersede(self, tx: Transaction, old: Reading | str) -> Record:
        """Take the right to publish from the active attempt and give it to a new one, at once."""
        record = self._known(tx, "supersede", _id(old))
        task = self._open(tx, "supersede", record.task_id)
        if task.active != record.attempt_id:
            raise DeniedError(f"supersede: attempt {record.attempt_id} is not active; {_state(record)}")
        new = self._activate(tx, task, Origin.SUPERSEDE, record.attempt_id, self._superseded("replaced"))
        if isinstance(old, Reading):
            self._keep(tx, record, old.shown)
        return new

    def retry(self, tx: Transaction, old: Reading | str) -> Record:
        """Make a fresh attempt in place of one that did not succeed; it takes nothing of the old one's text."""
        record = self._known(tx, "retry", _id(old))
        if record.decided is None or record.decided.decision not in (
            Decision.REFUSED,
            Decision.FAILED,
            Decision.CANCELLED,
        ):
            raise DeniedError(f"retry: attempt {record.attempt_id} did not end refused, failed or cancelled")
        task = self._open(tx, "retry", record.task_id)
        if task.fence != record.fence:
            raise DeniedError(f"retry: attempt {record.attempt_id} is not the newest of task {task.task_id!r}")
        made = sum(known.origin is Origin.RETRY for known in tx.attempts(task.task_id))
        if made >= self.contract.attempts.retries:
            raise DeniedError(f"retry: task {task.task_id!r} had its {made} retries ({self.contract.name})")
        return self._activate(tx, task, Origin.RETRY, record.attempt_id)

    # -- calls that end one

    def cancel(self, tx: Transaction, attempt: Reading | str) -> None:
        """Decide an undecided attempt as cancelled."""
        record = self._known(tx, "cancel", _id(attempt))
        if record.decided is not None or not tx.release(record):
            raise DeniedError(f"cancel: attempt {record.attempt_id} is decided; {_state(record)}")
        decided = Decided(
            decision=Decision.CANCELLED, outcome=CANCELLED, why="cancelled by the caller", at_us=self._clock()
        )
        if isinstance(attempt, Reading):
            turn = attempt.stop(CANCELLED, decided.why)
            seen = evidence(turn, attempt.wire, self.contract, self.dialect)
            decided = replace(decided, evidence=seen)
            self._keep(tx, record, attempt.shown)
        tx.decide(record.attempt_id, decided)

    def clear(self, tx: Transaction, conversation_id: str) -> None:
        """Close every task of a conversation; nothing of it is in the history any more."""
        tx.clear(conversation_id, self._superseded("the conversation was cleared"))

    def look(self, tx: Transaction, reading: Reading) -> Result | None:
        """Give the result of an attempt that is decided: ownership is asked before the turn is judged."""
        record = self._known(tx, "commit", reading.id)
        if record.contract != self.contract.name:
            raise DeniedError(
                f"commit: attempt {record.attempt_id} was begun under {record.contract}, not {self.contract.name}"
            )
        return None if record.decided is None else self._again(tx, record, record.decided, reading)

    def judge(self, reading: Reading) -> Judged:
        """Judge the turn: evidence first, then the task's validator. A turn without an outcome ends here."""
        turn = reading.settle()
        message = payload.answer(turn)
        spelt = payload.spell(message or payload.visible(turn))
        asked = self._asked(turn, message)
        why = asked.why
        if asked.outcome == COMPLETE and message is None:
            why = f"the contract does not append the class {asked.reason_class}"
        elif asked.outcome != COMPLETE:
            message = None
        decided = Decided(
            decision=_decision(asked.outcome, message),
            outcome=asked.outcome,
            why=why,
            at_us=self._clock(),
            evidence=evidence(turn, reading.wire, self.contract, self.dialect),
            payload_sha256=payload.sha256(spelt),
            validator=f"{self._validate.name} {self._validate.version}" if self._validate else None,
        )
        return Judged(message=message, bytes=spelt, decided=decided)

    def decide(self, tx: Transaction, reading: Reading, judged: Judged) -> Result:
        """The atomic step: store what was judged, if the attempt is still the one that may publish."""
        record = self._known(tx, "commit", reading.id)
        if record.decided is None:
            if judged.message is not None and tx.publish(record, judged.decided, judged.bytes):
                return self._result(tx, record, judged.decided)
            if judged.message is None and tx.release(record):
                tx.decide(record.attempt_id, judged.decided)
                self._keep(tx, record, reading.shown)
                return self._result(tx, record, judged.decided)
            record = self._known(tx, "commit", reading.id)  # too late: somebody moved the task meanwhile
        decided = record.decided
        if decided is None:  # the task was moved by other means than these calls; such an attempt owns nothing
            decided = self._superseded("no longer the active attempt of its task")
            tx.decide(record.attempt_id, decided)
        return self._again(tx, record, decided, reading)

    # -- what they share

    def _known(self, tx: Transaction, call: str, attempt_id: str) -> Record:
        record = tx.attempt(attempt_id)
        if record is None:
            raise DeniedError(f"{call}: no attempt {attempt_id} in this store")
        return record

    def _open(self, tx: Transaction, call: str, task_id: str) -> Task:
        task = tx.task(task_id)
        if task is None or task.state is not TaskState.OPEN:
            raise DeniedError(f"{call}: task {task_id!r} is {task.state if task else 'not known'}, not open")
        return task

    def _activate(
        self, tx: Transaction, task: Task, origin: Origin, replaces: str | None, loses: Decided | None = None
    ) -> Record:
        """Give the right to publish to a new attempt, with the next fence; `loses` is what the old one ends as."""
        record = Record(
            attempt_id=self._new_id(),
            task_id=task.task_id,
            fence=task.fence + 1,
            origin=origin,
            replaces=replaces,
            adapter=f"{self.dialect}/{ADAPTER_VERSION}",
            contract=self.contract.name,
            started_at_us=self._clock(),
        )
        if not tx.take(task, record.attempt_id, record.fence):
            raise DeniedError(f"{origin}: task {task.task_id!r} was moved by another caller; look at it again")
        if replaces is not None and loses is not None:
            tx.decide(replaces, loses)
        tx.add_attempt(record)
        return record

    def _superseded(self, why: str) -> Decided:
        return Decided(decision=Decision.SUPERSEDED, outcome=SUPERSEDED, why=why, at_us=self._clock())

    def _asked(self, turn: Settled, message: Message | None) -> Settled:
        if self._validate is None or message is None:
            return turn
        from ..validators import accept

        return accept(turn, self._validate)

    def _again(self, tx: Transaction, record: Record, decided: Decided, reading: Reading) -> Result:
        """Say a decision again; what is visible of an attempt that others decided is kept now."""
        if decided.payload_sha256 is None:
            self._keep(tx, record, reading.shown)
        elif decided.payload_sha256 != payload.sha256(payload.spell(reading.shown)):
            raise DeniedError(f"commit: attempt {record.attempt_id} was decided with another payload")
        return self._result(tx, record, decided)

    def _result(self, tx: Transaction, record: Record, decided: Decided) -> Result:
        stored = tx.payload(record.attempt_id)
        if stored is not None and decided.evidence is not None and decided.payload_sha256 is not None:
            return Committed(
                attempt_id=record.attempt_id,
                task_id=record.task_id,
                fence=record.fence,
                message=payload.unspell(stored),
                payload_sha256=decided.payload_sha256,
                evidence=decided.evidence,
            )
        if decided.decision is Decision.SUPERSEDED:
            return Superseded(attempt_id=record.attempt_id, why=decided.why)
        return Refused(
            attempt_id=record.attempt_id, outcome=decided.outcome, why=decided.why, evidence=decided.evidence
        )

    def _keep(self, tx: Transaction, record: Record, shown: Message) -> None:
        calls = tuple(shown.get("tool_calls", ()))
        if shown["content"] or calls:
            partial = Quarantined(
                attempt_id=record.attempt_id,
                task_id=record.task_id,
                fence=record.fence,
                text=shown["content"],
                calls=calls,
                mark=INTERRUPTED,
                at_us=self._clock(),
            )
            tx.keep(partial)


def _id(attempt: Reading | str) -> str:
    return attempt if isinstance(attempt, str) else attempt.id


def _state(record: Record) -> str:
    return f"it is {record.decided.decision}" if record.decided else "another call was quicker"


def _decision(outcome: Outcome, message: Message | None) -> Decision:
    if message is not None:
        return Decision.ACCEPTED
    return Decision.FAILED if outcome in _FAILED or outcome.startswith("HTTP_") else Decision.REFUSED
