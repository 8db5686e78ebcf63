"""The triggers behind the store's statements: what was decided stays, and no stale answer enters.

A guard refuses a change whatever program asks for it, the coordinator included; the coordinator's own
statements never meet one. Conditions are SQL that SQLite and PostgreSQL read alike. Retention is left
to its owner: a partial text may be deleted, and nothing else here may.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A change that is refused: which, when, and in which words."""

    table: str
    change: str
    when: str
    message: str

    @property
    def name(self) -> str:
        """The trigger's name."""
        return f"{self.table}_guard_{self.change.lower()}"


# Whether an answer's attempt is the task's newest, and its task committed by it.
_CURRENT = """EXISTS (SELECT 1 FROM endmark_task AS t WHERE t.task_id = NEW.task_id AND t.fence = NEW.fence
  AND t.state = 'committed') AND NOT EXISTS (SELECT 1 FROM endmark_attempt AS a WHERE a.task_id = NEW.task_id
  AND a.fence > NEW.fence)"""
_STALE = "an answer must be of the newest attempt of a committed task"

GUARDS = (
    Guard(table="endmark_task", change="DELETE", when="TRUE", message="a task is never deleted"),
    Guard(
        table="endmark_task",
        change="UPDATE",
        when="""NEW.task_id <> OLD.task_id OR NEW.conversation_id <> OLD.conversation_id OR NEW.question <> OLD.question
  OR NEW.fence < OLD.fence OR OLD.state = 'cleared' OR (OLD.state = 'committed' AND NEW.state <> 'cleared')""",
        message="a task keeps its question, its fence never falls, and it is not opened again",
    ),
    Guard(table="endmark_attempt", change="DELETE", when="TRUE", message="an attempt is never deleted"),
    Guard(
        table="endmark_attempt",
        change="UPDATE",
        when="""OLD.decision IS NOT NULL OR NEW.attempt_id <> OLD.attempt_id OR NEW.task_id <> OLD.task_id
  OR NEW.fence <> OLD.fence OR NEW.origin <> OLD.origin OR coalesce(NEW.replaces, '') <> coalesce(OLD.replaces, '')
  OR NEW.adapter <> OLD.adapter OR NEW.contract <> OLD.contract OR NEW.started_at_us <> OLD.started_at_us""",
        message="an attempt is decided once, and keeps what it was begun as",
    ),
    Guard(table="endmark_accepted", change="DELETE", when="TRUE", message="an accepted answer is never deleted"),
    Guard(table="endmark_accepted", change="UPDATE", when="TRUE", message="an accepted answer never changes"),
    Guard(table="endmark_quarantine", change="UPDATE", when="TRUE", message="a partial text never changes"),
)


def statements(dialect: str, table: str) -> list[str]:
    """Give the statements that guard a table, for `sqlite` or `postgresql`."""
    make = _sqlite if dialect == "sqlite" else _postgresql
    found = [
        statement
        for guard in GUARDS
        if guard.table == table
        for statement in make(guard.name, f"BEFORE {guard.change} ON {table}", guard.when, guard.message)
    ]
    if table == "endmark_accepted":
        found += (_insert_sqlite if dialect == "sqlite" else _insert_postgresql)(f"{table}_guard_insert", table)
    return found


def _sqlite(name: str, change: str, when: str, message: str) -> list[str]:
    return [f"CREATE TRIGGER {name} {change} WHEN {when}\nBEGIN SELECT RAISE(ABORT, '{message}'); END"]


def _postgresql(name: str, change: str, when: str, message: str) -> list[str]:
    trigger = f"CREATE TRIGGER {name} {change} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {name}()"
    return [_function(name, message), trigger]


def _insert_sqlite(name: str, table: str) -> list[str]:
    return _sqlite(name, f"BEFORE INSERT ON {table}", f"NOT ({_CURRENT})", _STALE)


def _insert_postgresql(name: str, table: str) -> list[str]:
    """Ask in the function: a PostgreSQL trigger's own condition may look at no other table."""
    trigger = f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    return [_function(name, _STALE, f"IF {_CURRENT} THEN RETURN NEW; END IF; "), trigger]


def _function(name: str, message: str, unless: str = "") -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        f"BEGIN {unless}RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
