"""Any order of calls, cuts, reopenings and crashes: the store agrees with a model, and no answer lacks its evidence.

The model is docs/attempts.md, section A2, said once more in dictionaries. R1 to R4 are asked of what
the store holds, after every step: an accepted attempt has all its evidence; a task has at most one; an id
is given once; the accepted fence is the newest of its task.
"""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from client import load
from client.attempts import Attempt, Committed, Coordinator, DeniedError, MemoryStore, Record, Refused, Superseded
from client.attempts.sql import SqlStore, open_store
from client.attempts.store import Store, Transaction

from .bodies import ERROR, HEAD, pieces
from .places import Counter

T = TypeVar("T")
TASKS = ("t1", "t2", "t3")
RETRIES = 3

# What a body of each kind settles as, and with which of its pieces.
KINDS = {"good": ("COMPLETE", 3), "length": ("INCOMPLETE_FINISH", 2), "error": ("PROVIDER_ERROR", 2)}
DECISIONS = {"COMPLETE": "accepted", "PROVIDER_ERROR": "failed"}


class CrashError(Exception):
    """The process ended here."""


@dataclass
class Crashing:
    """A store whose work ends before its statement number `left`, or before the commit after its last."""

    store: Store
    left: int

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run the work, and never keep it."""

        def until(tx: Transaction) -> T:
            work(cast(Transaction, _CrashingTransaction(tx, self)))
            raise CrashError

        return self.store.run(until)


class _CrashingTransaction:
    def __init__(self, tx: Transaction, store: Crashing) -> None:
        self._tx, self._store = tx, store

    def __getattr__(self, name: str) -> Any:
        self._store.left -= 1
        if self._store.left < 0:
            raise CrashError
        return getattr(self._tx, name)


@dataclass
class Known:
    """What the model knows of an attempt."""

    attempt_id: str
    task: str
    fence: int
    origin: str
    kind: str
    reading: Attempt | None
    fed: int = 0
    outcome: str | None = None
    decision: str | None = None

    @property
    def text(self) -> str:
        """What it shows: its own id, so that a splice of two attempts would be seen."""
        return f"<{self.attempt_id}>"


@dataclass
class Asked:
    """What the model knows of a task."""

    fence: int = 0
    state: str = "open"
    active: str | None = None
    attempts: list[Known] = field(default_factory=list)


# What a call that was denied adds to the known attempts.
Nothing = MultipleResults[Known]


class Attempts(RuleBasedStateMachine):
    """The calls as rules, on a store in memory."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.counter = Counter()
        self.tasks: dict[str, Asked] = {}
        self.history: list[tuple[str, str]] = []
        self.kept: dict[str, str] = {}
        self.rounds = itertools.count()
        self.open()

    # -- the store, which the machine on a file opens otherwise

    def open(self) -> None:
        """Open an empty store."""
        self.store: Store = MemoryStore()

    def open_again(self) -> None:
        """Open what the store held once more; what is in memory only goes on."""

    def coordinator(self, store: Store | None = None) -> Coordinator:
        """Give a new coordinator: it holds nothing that the store does not."""
        return Coordinator(
            store or self.store,
            load("strict/1"),
            "openai-chat",
            clock=self.counter.now_us,
            new_id=self.counter.new_id,
        )

    # -- rules

    @initialize()
    def first(self) -> None:
        """Begin with tasks that nobody asked."""
        self.task_ids = {name: f"{name}-{next(self.rounds)}" for name in TASKS}

    @rule(target=known, name=st.sampled_from(TASKS), kind=st.sampled_from(sorted(KINDS)))
    def begin(self, name: str, kind: str) -> Known | Nothing:
        task = self.tasks.get(self.task_ids[name], Asked())
        allowed = task.state == "open" and task.active is None
        return self.make(allowed, self.task_ids[name], "begin", kind, lambda c: c.begin(self.task_ids[name], "q"))

    @rule(target=known, old=known, kind=st.sampled_from(sorted(KINDS)))
    def supersede(self, old: Known, kind: str) -> Known | Nothing:
        task = self.tasks[old.task]
        allowed = task.state == "open" and task.active == old.attempt_id
        new = self.make(allowed, old.task, "supersede", kind, lambda c: c.supersede(old.reading or old.attempt_id))
        if isinstance(new, Known):
            old.decision = "superseded"
            self.keep(old)
        return new

    @rule(target=known, old=known, kind=st.sampled_from(sorted(KINDS)))
    def retry(self, old: Known, kind: str) -> Known | Nothing:
        task = self.tasks[old.task]
        made = sum(one.origin == "retry" for one in task.attempts)
        over = old.decision in ("refused", "failed", "cancelled")
        allowed = task.state == "open" and over and old.fence == task.fence and made < RETRIES
        return self.make(allowed, old.task, "retry", kind, lambda c: c.retry(old.reading or old.attempt_id))

    @rule(one=known)
    def feed(self, one: Known) -> None:
        """Feed the next piece of an attempt's own body, whoever owns the task by now."""
        if one.reading is None or one.outcome is not None:
            return
        if one.fed == 0:
            one.reading.head(*HEAD)
        one.reading.feed(body(one)[one.fed])
        one.fed += 1
        outcome, after = KINDS[one.kind]
        if one.fed == after:
            one.outcome = outcome

    @rule(one=known, end=st.sampled_from(["eof", "reset", "short-body"]))
    def cut(self, one: Known, end: str) -> None:
        """End an attempt's body where it is."""
        if one.reading is not None:
            one.reading.end(end)
            one.outcome = one.outcome or "INCOMPLETE_STREAM"

    @rule(one=known)
    def cancel(self, one: Known) -> None:
        if self.allows(one.decision is None, lambda: self.coordinator().cancel(one.reading or one.attempt_id)):
            self.decide(one, "cancelled")
            if one.reading is not None:
                one.outcome = one.outcome or "CANCELLED"

    @rule(one=known)
    def commit(self, one: Known) -> None:
        if one.reading is None:
            return
        result = self.coordinator().commit(one.reading)
        if one.decision is None:
            one.outcome = one.outcome or "INCOMPLETE_STREAM"
            self.decide(one, DECISIONS.get(one.outcome, "refused"))
            if one.decision == "accepted":
                self.tasks[one.task].state = "committed"
                self.history.append((one.task, one.text))
        elif one.decision in ("superseded", "cancelled"):
            self.keep(one)
        assert type(result) is {"accepted": Committed, "superseded": Superseded}.get(str(one.decision), Refused)
        if isinstance(result, Refused):
            assert result.outcome == ("CANCELLED" if one.decision == "cancelled" else one.outcome)

    @rule()
    def clear(self) -> None:
        """Clear the conversation; later questions are new tasks."""
        self.coordinator().clear()
        self.history.clear()
        for task in self.tasks.values():
            if task.state != "cleared":
                task.state, task.active, task.fence = "cleared", None, task.fence + 1
                for one in task.attempts:
                    one.decision = one.decision or "superseded"
        self.first()

    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.open_again()

    @rule(one=consumes(known), call=st.sampled_from(["commit", "supersede", "cancel", "clear"]), left=st.integers(0, 8))
    def crash(self, one: Known, call: str, left: int) -> None:
        """End the process inside of a call: nothing of it is kept, and every buffer is lost."""
        coordinator = self.coordinator(Crashing(self.store, left))
        attempt = one.reading or one.attempt_id
        calls: dict[str, Callable[[], object]] = {
            "commit": lambda: coordinator.commit(one.reading) if one.reading else None,
            "supersede": lambda: coordinator.supersede(attempt),
            "cancel": lambda: coordinator.cancel(attempt),
            "clear": coordinator.clear,
        }
        with contextlib.suppress(CrashError, DeniedError):
            calls[call]()
        for task in self.tasks.values():
            for known in task.attempts:
                known.reading = None
        self.open_again()

    # -- what the rules share

    def make(
        self, allowed: bool, task_id: str, origin: str, kind: str, call: Callable[[Coordinator], Attempt]
    ) -> Known | Nothing:
        """Make an attempt, or see it denied."""
        made: list[Attempt] = []
        if not self.allows(allowed, lambda: made.append(call(self.coordinator()))):
            return multiple()
        (reading,) = made
        task = self.tasks.setdefault(task_id, Asked())
        task.fence += 1
        task.active = reading.id
        assert (reading.task_id, reading.fence, reading.preview) == (task_id, task.fence, "")
        known = Known(reading.id, task_id, task.fence, origin, kind, reading)
        task.attempts.append(known)
        return known

    def allows(self, allowed: bool, call: Callable[[], object]) -> bool:
        """Make a call that has to be denied exactly where the model denies it."""
        try:
            call()
        except DeniedError:
            assert not allowed
            return False
        assert allowed
        return True

    def decide(self, one: Known, decision: str) -> None:
        """Record a decision of the active attempt."""
        one.decision = decision
        self.tasks[one.task].active = None
        if decision != "accepted":
            self.keep(one)

    def keep(self, one: Known) -> None:
        """Keep the partial text of an attempt, once."""
        if one.reading is not None and one.fed:
            self.kept.setdefault(one.attempt_id, one.text)

    # -- what always holds

    def records(self) -> dict[str, list[Record]]:
        """Give the attempts of every task."""
        return {task_id: self.coordinator().attempts(task_id) for task_id in self.tasks}

    @invariant()
    def the_store_agrees(self) -> None:
        """Decisions, history and quarantine are the model's."""
        for task_id, records in self.records().items():
            task = self.tasks[task_id]
            decided = [(one.attempt_id, one.fence, one.decision) for one in task.attempts]
            stored = [
                (record.attempt_id, record.fence, record.decided and record.decided.decision.value)
                for record in records
            ]
            assert stored == decided
            assert [one for one, _, decision in stored if decision is None] == ([task.active] if task.active else [])
            kept = self.coordinator().quarantined(task_id)
            assert {one.attempt_id: one.text for one in kept} == {
                one.attempt_id: self.kept[one.attempt_id] for one in task.attempts if one.attempt_id in self.kept
            }
            assert all(one.mark == "interrupted" for one in kept)
        said = [message["content"] for message in self.coordinator().history()]
        assert said == [word for _, text in self.history for word in ("q", text)]

    @invariant()
    def r1_accepted_has_its_evidence(self) -> None:
        """Framing, class, reason, terminal event and payload's hash are all there."""
        for record in itertools.chain(*self.records().values()):
            decided = record.decided
            if decided is not None and decided.decision == "accepted":
                seen = decided.evidence
                assert seen is not None
                assert (seen.framing_complete, seen.terminal_class, seen.terminal_event) == (True, "complete", "[DONE]")
                assert (seen.terminal_reason_source, seen.finish_reason) == ("provider", "stop")
                assert decided.payload_sha256 is not None

    @invariant()
    def r2_to_r4(self) -> None:
        """At most one accepted a task; ids once; the accepted fence is the newest."""
        ids = [record.attempt_id for record in itertools.chain(*self.records().values())]
        assert len(ids) == len(set(ids))
        for records in self.records().values():
            accepted = [one for one in records if one.decided and one.decided.decision == "accepted"]
            assert len(accepted) <= 1
            assert all(one.fence == max(record.fence for record in records) for one in accepted)


class AttemptsInAFile(Attempts):
    """The same on SQLite, where a store that is opened again holds what was committed."""

    empty: Path

    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(self.empty, self.file)
        self.store = open_store(f"sqlite:///{self.file}")

    @property
    def file(self) -> Path:
        """The database."""
        return Path(self.folder.name) / "attempts.db"

    def open_again(self) -> None:
        self.close()
        self.store = open_store(f"sqlite:///{self.file}")

    def close(self) -> None:
        """Close the store."""
        assert isinstance(self.store, SqlStore)
        self.store.close()

    def teardown(self) -> None:
        self.close()
        self.folder.cleanup()


def body(one: Known) -> list[bytes]:
    """Give the pieces of an attempt's own body."""
    if one.kind == "error":
        return [pieces(one.text)[0], ERROR]
    return pieces(one.text, "length" if one.kind == "length" else "stop")


RULES = settings(
    deadline=None, derandomize=True, database=None, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)


def test_in_memory() -> None:
    """The store in memory agrees with the model."""
    run_state_machine_as_test(Attempts, settings=settings(RULES, max_examples=100))


def test_in_a_file(sqlite_file: Path) -> None:
    """The store in SQLite agrees with the model, opened again as often as one likes."""
    AttemptsInAFile.empty = sqlite_file
    run_state_machine_as_test(AttemptsInAFile, settings=settings(RULES, max_examples=40))
