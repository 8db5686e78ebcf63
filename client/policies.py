"""The two policies of a session: who may publish an attempt, and what the screen shows after each step.

`Owned` asks the coordinator; `Naive` is the control, in which nobody owns anything. Attempts go by
the names of the session's steps. Nothing here reads a stream or does I/O; docs/attempts.md, section
A4, has the rules.
"""

from collections.abc import Iterable
from typing import Protocol

from .attempts import Attempt, Committed, Coordinator, MemoryStore
from .attempts.naive import NaiveAttempt, NaiveCoordinator
from .contract import Contract
from .display import Display
from .history import Message
from .outcomes import CANCELLED, COMPLETE, Outcome
from .reader import Judge

# The result of a commit that stored the answer, now or before.
COMMITTED = "committed"


class Policy(Protocol):
    """What a session asks of a policy; a call that the policy does not allow raises DeniedError."""

    @property
    def display(self) -> str:
        """What the screen shows."""

    @property
    def state(self) -> str:
        """How it shows that: `idle`, `generating`, `interrupted` or `accepted`."""

    @property
    def messages(self) -> list[Message]:
        """The history, as the next request sends it."""

    @property
    def stored(self) -> int:
        """How many answers of the session the history holds."""

    def begin(self, name: str) -> Judge:
        """Make an attempt."""

    def supersede(self, name: str, of: str) -> Judge:
        """Make an attempt in place of another one."""

    def retry(self, name: str, of: str) -> Judge:
        """Make an attempt for one that ended without success."""

    def reads(self) -> None:
        """An attempt is about to be read."""

    def has_read(self, name: str) -> None:
        """An attempt was read."""

    def commit(self, name: str) -> str:
        """Ask to publish; give the result."""

    def cancel(self, name: str) -> bool:
        """Cancel an attempt; say whether its connection is to be closed."""

    def clear(self) -> None:
        """Clear the conversation."""

    def outcome(self, name: str) -> Outcome | None:
        """The outcome of an attempt's decision where it was asked for, or else of its turn."""

    def preview(self, name: str) -> str:
        """The text of an attempt so far."""


class Owned:
    """The coordinator decides; the screen is the display of the active attempt, or of the last one that was."""

    def __init__(self, contract: Contract, dialect: str, history: Iterable[Message], question: str) -> None:
        self._coordinator = Coordinator(MemoryStore(), contract, dialect)
        self._before, self._question = list(history), question
        self._task = 1  # the number of the newest task; one that is closed is followed by the next
        self._attempts: dict[str, Attempt] = {}
        self._decided: dict[str, Outcome] = {}  # by commit or cancel; the others were not told
        self._active: str | None = None
        self._shown: Display | None = None

    @property
    def display(self) -> str:
        return self._shown.screen.text.characters if self._shown else ""

    @property
    def state(self) -> str:
        return self._shown.screen.state.value if self._shown else "idle"

    @property
    def messages(self) -> list[Message]:
        return self._before + self._coordinator.history()

    @property
    def stored(self) -> int:
        return len(self._coordinator.history()) // 2

    def begin(self, name: str) -> Judge:
        display = Display()
        attempt = self._coordinator.begin(f"task-{self._task}", self._question, on_preview=display.show)
        return self._show(name, attempt, display)

    def supersede(self, name: str, of: str) -> Judge:
        display = Display()
        return self._show(name, self._coordinator.supersede(self._attempts[of], display.show), display)

    def retry(self, name: str, of: str) -> Judge:
        display = Display()
        return self._show(name, self._coordinator.retry(self._attempts[of], display.show), display)

    def reads(self) -> None:
        """Nothing: an owned screen changes by what was read."""

    def has_read(self, name: str) -> None:
        """Nothing: each piece was shown as it came, on its own attempt's display."""

    def commit(self, name: str) -> str:
        result = self._attempts[name].commit()
        is_stored = isinstance(result, Committed)
        self._decided[name] = COMPLETE if isinstance(result, Committed) else result.outcome
        if name == self._active and self._shown:
            self._shown.settle(result)
            self._active = None
            self._task += is_stored
        return type(result).__name__.lower()

    def cancel(self, name: str) -> bool:
        self._attempts[name].cancel()
        self._decided[name] = CANCELLED
        if self._shown:  # what could be cancelled was undecided, and so the active one
            self._shown.interrupt()
        self._active = None
        return True

    def clear(self) -> None:
        self._coordinator.clear()
        self._before, self._active, self._shown = [], None, None
        self._task += 1

    def outcome(self, name: str) -> Outcome | None:
        turn = self._attempts[name].settled
        return self._decided.get(name) or (turn.outcome if turn else None)

    def preview(self, name: str) -> str:
        return self._attempts[name].preview

    def _show(self, name: str, attempt: Attempt, display: Display) -> Attempt:
        """Give the screen to a new attempt, with a display of its own: what another one showed is gone."""
        self._attempts[name] = attempt
        self._active, self._shown = name, display
        return attempt


class Naive:
    """The control: every text is shown, every commit stores, and the screen is nobody's."""

    def __init__(self, contract: Contract, dialect: str, history: Iterable[Message], question: str) -> None:
        self._control = NaiveCoordinator(contract, dialect, history)
        self._question = question
        self._attempts: dict[str, NaiveAttempt] = {}

    @property
    def display(self) -> str:
        return self._control.display

    @property
    def state(self) -> str:
        return self._control.state

    @property
    def messages(self) -> list[Message]:
        return self._control.history()

    @property
    def stored(self) -> int:
        return self._control.stored

    def begin(self, name: str) -> Judge:
        return self._known(name, self._control.begin("task", self._question))

    def supersede(self, name: str, of: str) -> Judge:
        return self._known(name, self._control.supersede(self._attempts[of]))

    def retry(self, name: str, of: str) -> Judge:
        return self._known(name, self._control.retry(self._attempts[of]))

    def reads(self) -> None:
        self._control.state = "generating"  # whichever attempt it is; an error that it meets says otherwise

    def has_read(self, name: str) -> None:
        """Nothing: each piece was shown as it came."""

    def commit(self, name: str) -> str:
        self._attempts[name].commit()
        return COMMITTED

    def cancel(self, name: str) -> bool:
        self._attempts[name].cancel()
        return False

    def clear(self) -> None:
        self._control.clear()

    def outcome(self, name: str) -> Outcome | None:
        turn = self._attempts[name].settled
        return turn.outcome if turn else None

    def preview(self, name: str) -> str:
        return self._attempts[name].preview

    def _known(self, name: str, attempt: NaiveAttempt) -> NaiveAttempt:
        self._attempts[name] = attempt
        return attempt


def policy(contract: Contract, dialect: str, history: Iterable[Message], question: str) -> Policy:
    """Give the policy that the contract names."""
    made: type[Owned] | type[Naive] = Naive if contract.attempts.policy == "naive" else Owned
    return made(contract, dialect, history, question)
