"""The words of the coordinator: tasks, attempts, decisions and what is kept of them.

Values only: nothing here decides, stores or reads a stream. docs/attempts.md, section A1, says what each word means.
"""

from dataclasses import dataclass
from enum import StrEnum

from ..history import Message, ToolCall
from ..outcomes import Outcome
from .evidence import Evidence

SUPERSEDED = Outcome("SUPERSEDED")

# How every text in the quarantine is marked.
INTERRUPTED = "interrupted"


class DeniedError(RuntimeError):
    """A call that the state of a task or of an attempt does not allow: a mistake of the caller."""


class TaskState(StrEnum):
    """Where a task stands."""

    OPEN = "open"
    COMMITTED = "committed"
    CLEARED = "cleared"


class Decision(StrEnum):
    """How an attempt ended."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  # the evidence or the validator said no
    SUPERSEDED = "superseded"  # no longer active when it asked, or replaced before it asked
    FAILED = "failed"  # transport, time-out, the provider's own error
    CANCELLED = "cancelled"


class Origin(StrEnum):
    """Which call made an attempt."""

    BEGIN = "begin"
    SUPERSEDE = "supersede"
    RETRY = "retry"


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question of one conversation; `active` is the attempt that may publish, by the task's fence."""

    task_id: str
    conversation_id: str
    question: str
    fence: int
    active: str | None
    state: TaskState


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What is recorded of an attempt with its decision.

    `evidence` and `payload_sha256` are None where the attempt was decided from outside, without its
    buffer; `validator` is NAME VERSION where one was asked. `at_us` is microseconds since 1970, UTC.
    """

    decision: Decision
    outcome: Outcome
    why: str
    at_us: int
    evidence: Evidence | None = None
    payload_sha256: str | None = None
    validator: str | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """One attempt as the store knows it; it is active exactly while `decided` is None.

    `adapter` is DIALECT/VERSION, `contract` NAME/VERSION, `started_at_us` microseconds since 1970, UTC.
    """

    attempt_id: str
    task_id: str
    fence: int
    origin: Origin
    replaces: str | None
    adapter: str
    contract: str
    started_at_us: int
    decided: Decided | None = None


@dataclass(frozen=True, kw_only=True)
class Quarantined:
    """The partial text of an attempt that was not accepted: to be read and shown, never to be sent.

    No `Message`, so that it cannot be added to a history by mistake. `calls` may be cut anywhere.
    """

    attempt_id: str
    task_id: str
    fence: int
    text: str
    calls: tuple[ToolCall, ...]
    mark: str
    at_us: int


@dataclass(frozen=True, kw_only=True)
class Committed:
    """The answer is stored, by this attempt and no other; said again, equal, as often as it is asked.

    `message` is the accepted answer; its tool calls are proposals, and nothing here sends them anywhere.
    """

    attempt_id: str
    task_id: str
    fence: int
    message: Message
    payload_sha256: str
    evidence: Evidence


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The answer is not stored: the turn's outcome, why, and the evidence as far as it came."""

    attempt_id: str
    outcome: Outcome
    why: str
    evidence: Evidence | None


@dataclass(frozen=True, kw_only=True)
class Superseded:
    """The answer is not stored, however complete it is: the attempt may no longer publish."""

    attempt_id: str
    why: str
    outcome: Outcome = SUPERSEDED


Result = Committed | Refused | Superseded
