"""The stores of attempts in SQLite and PostgreSQL: the one file of the client that imports SQLAlchemy.

    store = open_store("sqlite:///chat.db")                     # or postgresql+psycopg://user@host/db
    coordinator = Coordinator(store, load("strict/1"), "openai-chat")

Every statement is SQLAlchemy Core on a `Connection`; asyncio runs the same functions through `run_sync`.
The right to publish changes hands in one conditional UPDATE of one row, whose row count decides; checks,
unique constraints, foreign keys and triggers (`guards`) stand behind it and are never met by it. SQLite
begins each transaction with BEGIN IMMEDIATE in WAL mode with `synchronous = FULL`, so that an acknowledged
commit survives a loss of power, on a local disk. PostgreSQL runs at READ COMMITTED with `synchronous_commit`
on: a caller who waited for the row has its condition asked again of the new one, and has no row.

Texts that others wrote are stored as JSON strings, since PostgreSQL's own text holds no U+0000.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    create_engine,
    event,
    func,
    insert,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from ..history import Message
from . import guards, rows
from .payload import unspell
from .records import INTERRUPTED, Decided, Decision, Origin, Quarantined, Record, Task, TaskState

T = TypeVar("T")

# How long a connection waits for another one that writes, in seconds; SQLite has one writer at a time.
_BUSY_S = 30

# Any number: those who create the tables of one PostgreSQL database at once wait for each other with it.
_LOCK = 0x656E646D61726B


class _Quoted(TypeDecorator[str]):
    """A text as a JSON string: exact, readable, and free of what a database's text cannot hold."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        del dialect
        if value is None:
            return None
        spelt = json.dumps(value, ensure_ascii=False)
        return spelt if _is_utf8(spelt) else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:
        del dialect
        return None if value is None else str(json.loads(value))


def _is_utf8(spelt: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in spelt)


# SQLite's STRICT tables know neither type by its name.
_COUNT = BigInteger().with_variant(Integer(), "sqlite")
_FLAG = Boolean().with_variant(Integer(), "sqlite")

METADATA = MetaData()


def _one_of(column: str, words: type[Decision] | type[Origin] | type[TaskState]) -> str:
    return f"{column} IN ({', '.join(repr(word.value) for word in words)})"


TASK = Table(
    "endmark_task",
    METADATA,
    Column("task_id", Text, primary_key=True),
    Column("conversation_id", Text, nullable=False, index=True),
    Column("question", _Quoted, nullable=False),
    Column("fence", _COUNT, nullable=False),
    Column("active", Text),
    Column("state", Text, nullable=False),
    CheckConstraint("fence >= 0", name="endmark_task_fence"),
    CheckConstraint(_one_of("state", TaskState), name="endmark_task_state"),
    CheckConstraint("active IS NULL OR state = 'open'", name="endmark_task_active"),
    sqlite_strict=True,
)

# What an accepted attempt must have; spelt without a comparison that NULL would let through.
_ACCEPTABLE = """decision IS NULL OR decision <> 'accepted' OR (outcome = 'COMPLETE' AND framing_complete IS TRUE
  AND terminal_class IS NOT NULL AND terminal_class = 'complete'
  AND (terminal_event IS NOT NULL OR needs_terminal IS FALSE)
  AND ((terminal_reason_source IS NOT NULL AND terminal_reason_source = 'provider') OR needs_reason IS FALSE)
  AND payload_sha256 IS NOT NULL)"""

ATTEMPT = Table(
    "endmark_attempt",
    METADATA,
    Column("attempt_id", Text, primary_key=True),
    Column("task_id", Text, ForeignKey(TASK.c.task_id), nullable=False),
    Column("fence", _COUNT, nullable=False),
    Column("origin", Text, nullable=False),
    Column("replaces", Text, ForeignKey("endmark_attempt.attempt_id")),
    Column("adapter", Text, nullable=False),
    Column("contract", Text, nullable=False),
    Column("started_at_us", _COUNT, nullable=False),
    Column("decision", Text),
    Column("outcome", Text),
    Column("why", _Quoted),
    Column("decided_at_us", _COUNT),
    Column("payload_sha256", Text),
    Column("validator", _Quoted),
    Column("rule_version", Text),
    Column("http_status", _COUNT),
    Column("transport_end", Text),
    Column("framing_complete", _FLAG),
    Column("terminal_event", Text),
    Column("needs_terminal", _FLAG),
    Column("finish_reason", _Quoted),
    Column("terminal_reason_source", Text),
    Column("needs_reason", _FLAG),
    Column("reason_class", Text),
    Column("terminal_class", Text),
    Column("tool_args_complete", _FLAG),
    Column("unknown_events", _COUNT),
    Column("saw_usage", _FLAG),
    Column("wire_bytes", _COUNT),
    Column("wire_sha256", Text),
    CheckConstraint("fence >= 1", name="endmark_attempt_fence"),
    CheckConstraint(_one_of("origin", Origin), name="endmark_attempt_origin"),
    CheckConstraint("(origin = 'begin') = (replaces IS NULL)", name="endmark_attempt_replaces"),
    CheckConstraint(f"decision IS NULL OR {_one_of('decision', Decision)}", name="endmark_attempt_decision"),
    CheckConstraint(
        "(decision IS NULL) = (outcome IS NULL) AND (decision IS NULL) = (decided_at_us IS NULL)",
        name="endmark_attempt_decided",
    ),
    CheckConstraint(_ACCEPTABLE, name="endmark_attempt_evidence"),
    UniqueConstraint("task_id", "fence", name="endmark_attempt_once_a_fence"),
    # What an accepted answer refers to; it is unique by its first column alone.
    UniqueConstraint("attempt_id", "task_id", "fence", "decision", "payload_sha256", name="endmark_attempt_whole"),
    Index(
        "endmark_attempt_one_active",
        "task_id",
        unique=True,
        sqlite_where=text("decision IS NULL"),
        postgresql_where=text("decision IS NULL"),
    ),
    sqlite_strict=True,
)

ACCEPTED = Table(
    "endmark_accepted",
    METADATA,
    Column("sequence", _COUNT, Identity(), primary_key=True),
    Column("task_id", Text, nullable=False, unique=True),
    Column("attempt_id", Text, nullable=False, unique=True),
    Column("fence", _COUNT, nullable=False),
    Column("decision", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("payload_sha256", Text, nullable=False),
    CheckConstraint("decision = 'accepted'", name="endmark_accepted_decision"),
    CheckConstraint("length(payload) > 0 AND length(payload_sha256) = 64", name="endmark_accepted_payload"),
    ForeignKeyConstraint(
        ["attempt_id", "task_id", "fence", "decision", "payload_sha256"],
        [ATTEMPT.c[name] for name in ("attempt_id", "task_id", "fence", "decision", "payload_sha256")],
        name="endmark_accepted_attempt",
    ),
    sqlite_strict=True,
    sqlite_autoincrement=True,
)

QUARANTINE = Table(
    "endmark_quarantine",
    METADATA,
    Column("attempt_id", Text, ForeignKey(ATTEMPT.c.attempt_id), primary_key=True),
    Column("task_id", Text, nullable=False, index=True),
    Column("fence", _COUNT, nullable=False),
    Column("text", _Quoted, nullable=False),
    Column("calls", Text, nullable=False),
    Column("mark", Text, nullable=False),
    Column("at_us", _COUNT, nullable=False),
    CheckConstraint(f"mark = '{INTERRUPTED}'", name="endmark_quarantine_mark"),
    sqlite_strict=True,
)


def _guard(table: Table, connection: Connection, **_: object) -> None:
    for statement in guards.statements(connection.dialect.name, table.name):
        connection.exec_driver_sql(statement)


for _table in METADATA.sorted_tables:
    event.listen(_table, "after_create", _guard)

_INSERT: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


class SqlTransaction:
    """The statements of `store.Transaction` on one connection, which is in a transaction already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._insert = _INSERT[connection.dialect.name]

    def task(self, task_id: str) -> Task | None:
        row = self._connection.execute(select(TASK).where(TASK.c.task_id == task_id)).one_or_none()
        return None if row is None else Task(**(dict(row._mapping) | {"state": TaskState(row.state)}))

    def add_task(self, task: Task) -> None:
        values = asdict(task) | {"state": task.state.value}
        self._connection.execute(self._insert(TASK).values(values).on_conflict_do_nothing())

    def attempt(self, attempt_id: str) -> Record | None:
        row = self._connection.execute(select(ATTEMPT).where(ATTEMPT.c.attempt_id == attempt_id)).one_or_none()
        return None if row is None else rows.record(dict(row._mapping))

    def attempts(self, task_id: str) -> list[Record]:
        found = select(ATTEMPT).where(ATTEMPT.c.task_id == task_id).order_by(ATTEMPT.c.fence)
        return [rows.record(dict(row._mapping)) for row in self._connection.execute(found)]

    def take(self, task: Task, attempt_id: str, fence: int) -> bool:
        return self._move(task.task_id, task.active, task.fence, {"active": attempt_id, "fence": fence})

    def release(self, record: Record) -> bool:
        return self._move(record.task_id, record.attempt_id, record.fence, {"active": None})

    def publish(self, record: Record, decided: Decided, payload: bytes) -> bool:
        committed = {"active": None, "state": TaskState.COMMITTED.value}
        if not self._move(record.task_id, record.attempt_id, record.fence, committed):
            return False
        self.decide(record.attempt_id, decided)
        values = {
            "task_id": record.task_id,
            "attempt_id": record.attempt_id,
            "fence": record.fence,
            "decision": decided.decision.value,
            "payload": payload,
            "payload_sha256": decided.payload_sha256,
        }
        self._connection.execute(insert(ACCEPTED).values(values))
        return True

    def add_attempt(self, record: Record) -> None:
        values = asdict(record) | {"origin": record.origin.value}
        del values["decided"]
        self._connection.execute(insert(ATTEMPT).values(values))

    def decide(self, attempt_id: str, decided: Decided) -> None:
        open_one = (ATTEMPT.c.attempt_id == attempt_id) & ATTEMPT.c.decision.is_(None)
        self._connection.execute(update(ATTEMPT).where(open_one).values(rows.decided_values(decided)))

    def clear(self, conversation_id: str, decided: Decided) -> None:
        known = (TASK.c.conversation_id == conversation_id) & (TASK.c.state != TaskState.CLEARED.value)
        found = select(TASK.c.task_id).where(known).order_by(TASK.c.task_id).with_for_update()
        for task_id in self._connection.execute(found).scalars().all():
            open_one = (ATTEMPT.c.task_id == task_id) & ATTEMPT.c.decision.is_(None)
            self._connection.execute(update(ATTEMPT).where(open_one).values(rows.decided_values(decided)))
            cleared = {"state": TaskState.CLEARED.value, "active": None, "fence": TASK.c.fence + 1}
            self._connection.execute(update(TASK).where(TASK.c.task_id == task_id).values(cleared))

    def payload(self, attempt_id: str) -> bytes | None:
        found = select(ACCEPTED.c.payload).where(ACCEPTED.c.attempt_id == attempt_id)
        payload: bytes | None = self._connection.execute(found).scalar()
        return payload

    def history(self, conversation_id: str) -> list[Message]:
        found = (
            select(TASK.c.question, ACCEPTED.c.payload)
            .join_from(TASK, ACCEPTED, TASK.c.task_id == ACCEPTED.c.task_id)
            .where(TASK.c.conversation_id == conversation_id, TASK.c.state == TaskState.COMMITTED.value)
            .order_by(ACCEPTED.c.sequence)
        )
        messages = []
        for question, payload in self._connection.execute(found):
            messages += [Message(role="user", content=question), unspell(payload)]
        return messages

    def keep(self, partial: Quarantined) -> None:
        values = asdict(partial) | {"calls": json.dumps(partial.calls)}
        self._connection.execute(self._insert(QUARANTINE).values(values).on_conflict_do_nothing())

    def quarantined(self, task_id: str) -> list[Quarantined]:
        found = select(QUARANTINE).where(QUARANTINE.c.task_id == task_id).order_by(QUARANTINE.c.fence)
        return [
            Quarantined(**(dict(row._mapping) | {"calls": tuple(json.loads(row.calls))}))
            for row in self._connection.execute(found)
        ]

    def _move(self, task_id: str, active: str | None, fence: int, values: dict[str, Any]) -> bool:
        """Move a task that is open and owned as the caller thinks; the row count says whether it was."""
        owned = (
            (TASK.c.task_id == task_id)
            & (TASK.c.fence == fence)
            & TASK.c.active.is_not_distinct_from(active)
            & (TASK.c.state == TaskState.OPEN.value)
        )
        return self._connection.execute(update(TASK).where(owned).values(values)).rowcount == 1


class SqlStore:
    """Runs each piece of work in a transaction of its own; made by `open_store`, or with an engine like its."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def run(self, work: Callable[[SqlTransaction], T]) -> T:
        """Run the work and commit; roll back where it raises."""
        with self.engine.begin() as connection:
            return work(SqlTransaction(connection))

    def close(self) -> None:
        """Close the connections that are not in use."""
        self.engine.dispose()


class AsyncSqlStore:
    """The same for asyncio."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine

    async def run(self, work: Callable[[SqlTransaction], T]) -> T:
        """Run the work and commit; roll back where it raises."""
        async with self.engine.begin() as connection:
            return await connection.run_sync(lambda sync: work(SqlTransaction(sync)))

    async def close(self) -> None:
        """Close the connections that are not in use."""
        await self.engine.dispose()


class Joined:
    """Runs work in the caller's own transaction, which the caller commits or rolls back.

    `attempt.commit(within=Joined(connection))` stores the answer together with what else the caller
    wrote on that connection, or not at all. A `Coordinator` on a `Joined` does so with every call.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, work: Callable[[SqlTransaction], T]) -> T:
        """Run the work; what it did is kept when the caller commits."""
        return work(SqlTransaction(self._connection))


class AsyncJoined:
    """The same for asyncio."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def run(self, work: Callable[[SqlTransaction], T]) -> T:
        """Run the work; what it did is kept when the caller commits."""
        return await self._connection.run_sync(lambda sync: work(SqlTransaction(sync)))


def open_store(url: str) -> SqlStore:
    """Open a store at an SQLAlchemy URL (`sqlite:///FILE`, `postgresql+psycopg://...`); make its tables if need be.

    Raises ValueError for another database.
    """
    engine = create_engine(url, **_options(url))
    _prepare(engine)
    with engine.begin() as connection:
        create(connection)
    return SqlStore(engine)


async def open_async_store(url: str) -> AsyncSqlStore:
    """The same for asyncio: `sqlite+aiosqlite:///FILE`, `postgresql+psycopg://...`."""
    engine = create_async_engine(url, **_options(url))
    _prepare(engine.sync_engine)
    async with engine.begin() as connection:
        await connection.run_sync(create)
    return AsyncSqlStore(engine)


def create(connection: Connection) -> None:
    """Make the tables that are not there, with their guards; any number of programs may do so at once."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    METADATA.create_all(connection)


def _options(url: str) -> dict[str, Any]:
    kind = make_url(url).get_backend_name()
    if kind not in _INSERT:
        raise ValueError(f"attempts are not stored in {kind}; use one of {', '.join(_INSERT)}")
    if kind == "sqlite":
        return {"connect_args": {"timeout": _BUSY_S}}
    return {"isolation_level": "READ COMMITTED", "pool_pre_ping": True}


def _prepare(engine: Engine) -> None:
    """See to it that each new connection is durable, and that SQLite asks for the write lock at once."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _connect_sqlite)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    else:
        event.listen(engine, "connect", _connect_postgresql)


def _connect_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # the driver begins no transaction by itself
    _run(connection, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON")


def _connect_postgresql(connection: Any, _: object) -> None:
    _run(connection, "SET synchronous_commit TO on")
    connection.commit()


def _run(connection: Any, *statements: str) -> None:
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    cursor.close()
