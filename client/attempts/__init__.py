"""Attempts that own their turn: who may publish an answer, decided once and in one place.

    from client import load
    from client.attempts import Committed, Coordinator, MemoryStore

    coordinator = Coordinator(MemoryStore(), load("strict/1"), "openai-chat")
    attempt = coordinator.begin("task-1", "What is new?")
    attempt.feed(b"data: ...")
    result = attempt.commit()  # Committed, Refused or Superseded

The stores in SQLite and PostgreSQL are in `client.attempts.sql`, which needs SQLAlchemy; nothing
else here does. The control that owns nothing is in `client.attempts.naive`. docs/attempts.md has the rules.
"""

from .coordinator import AsyncAttempt, AsyncCoordinator, Attempt, Coordinator
from .evidence import Evidence, Wire, evidence
from .evidence_record import About, append_record, evidence_record
from .memory import AsyncMemoryStore, MemoryStore
from .records import (
    SUPERSEDED,
    Committed,
    Decision,
    DeniedError,
    Quarantined,
    Record,
    Refused,
    Result,
    Superseded,
)

__all__ = [
    "SUPERSEDED",
    "About",
    "AsyncAttempt",
    "AsyncCoordinator",
    "AsyncMemoryStore",
    "Attempt",
    "Committed",
    "Coordinator",
    "Decision",
    "DeniedError",
    "Evidence",
    "MemoryStore",
    "Quarantined",
    "Record",
    "Refused",
    "Result",
    "Superseded",
    "Wire",
    "append_record",
    "evidence",
    "evidence_record",
]
