"""The control: the same calls without an owner. NOT for use; it stores whatever whoever asks has read.

It is what a chat program is before somebody asks who may publish: one buffer for the screen, a commit
that appends, a cancel that changes what the screen says (docs/attempts.md, section A3). Where this
does what the coordinator does, a test has shown nothing. It judges nothing; it only reads, by a
contract whose `[attempts] policy` is `naive`.
"""

import uuid
from collections.abc import Iterable

from ..contract import Contract, ContractError
from ..history import Message
from ..outcomes import INVALID_JSON, INVALID_UTF8, LIMIT, PROTOCOL, PROVIDER_ERROR, Outcome
from ..reader import Control, OnPreview, Reader, Settled

_ERRORS = frozenset({PROVIDER_ERROR, PROTOCOL, INVALID_JSON, INVALID_UTF8, LIMIT})


class NaiveCoordinator:
    """One history and one screen, which every attempt writes to.

    `history` is what the conversation holds before; `display` is what the screen shows, and `state` how:
    `idle`, `generating`, `interrupted` or `accepted`.
    """

    def __init__(self, contract: Contract, dialect: str, history: Iterable[Message] = ()) -> None:
        """Raise ContractError for a contract whose attempts are owned."""
        if contract.attempts.policy != "naive":
            raise ContractError(f"contract {contract.name} is of the policy {contract.attempts.policy!r}, not naive")
        self.contract, self.dialect = contract, dialect
        self._messages = list(history)
        self.stored = 0  # answers of these attempts that the history holds
        self.writes = 0  # answers that were ever written to it
        self.display, self.state = "", "idle"

    def begin(self, task_id: str, question: str, on_preview: OnPreview | None = None) -> "NaiveAttempt":
        """Empty the screen and make an attempt; nobody asks whether the task has one."""
        self.display = ""
        return self._attempt(task_id, question, on_preview)

    def supersede(self, old: "NaiveAttempt", on_preview: OnPreview | None = None) -> "NaiveAttempt":
        """Make another attempt; the old one may do all that it could before."""
        return self._attempt(old.task_id, old.question, on_preview)

    def retry(self, old: "NaiveAttempt", on_preview: OnPreview | None = None) -> "NaiveAttempt":
        """Make another attempt, on the same screen."""
        return self._attempt(old.task_id, old.question, on_preview)

    def clear(self) -> None:
        """Empty history and screen; what comes later is shown and stored again."""
        self._messages.clear()
        self.stored = 0
        self.display, self.state = "", "idle"

    def history(self) -> list[Message]:
        """List what was stored."""
        return list(self._messages)

    def store(self, question: str, text: str) -> None:
        """Append a text as a finished answer."""
        self._messages += [Message(role="user", content=question), Message(role="assistant", content=text)]
        self.stored += 1
        self.writes += 1
        self.state = "accepted"

    def take_out(self) -> None:
        """Take the last stored question and answer out again, if there is one."""
        if self.stored:
            del self._messages[-2:]
            self.stored -= 1

    def _attempt(self, task_id: str, question: str, on_preview: OnPreview | None) -> "NaiveAttempt":
        self.state = "generating"
        return NaiveAttempt(self, task_id, question, on_preview)


class NaiveAttempt:
    """Reads one response onto the screen, with the reader's surface."""

    def __init__(self, owner: NaiveCoordinator, task_id: str, question: str, on_preview: OnPreview | None) -> None:
        self.id, self.task_id, self.question = str(uuid.uuid4()), task_id, question
        self._owner, self._on_preview = owner, on_preview
        self._reader = Reader(owner.contract, owner.dialect, self._show)

    @property
    def preview(self) -> str:
        """The text that this attempt has read so far."""
        return self._reader.preview

    @property
    def settled(self) -> Settled | None:
        """How its turn ended, which changes nothing about what is stored."""
        return self._reader.settled

    def head(self, status: int, content_type: str | None, content_encoding: str | None = None) -> Settled | None:
        """Judge the response head."""
        return self._met(self._reader.head(status, content_type, content_encoding))

    def feed(self, data: bytes) -> Settled | None:
        """Read on; what arrives is shown, whichever attempt it came from."""
        self._owner.state = "generating"
        return self._met(self._reader.feed(data))

    def end(self, transport_end: str = "eof", *, is_framed: bool = True) -> Settled:
        """Judge the end of the body."""
        is_new = self.settled is None
        turn = self._reader.end(transport_end, is_framed=is_framed)
        if is_new:
            self._met(turn)
        return turn

    def stop(self, outcome: Outcome, why: str) -> Settled:
        """Settle the turn from outside."""
        return self._reader.stop(outcome, why)

    def commit(self) -> str:
        """Store whatever was read so far, however often it is asked; give what was stored."""
        self._owner.store(self.question, self.preview)
        return self.preview

    def cancel(self) -> None:
        """Say on the screen that it was interrupted, and nothing else."""
        self._owner.state = "interrupted"

    def _met(self, turn: Settled | None) -> Settled | None:
        if turn is not None and turn.outcome in _ERRORS:
            self._owner.state = "interrupted"
            if turn.outcome == PROVIDER_ERROR:
                self._owner.take_out()
        return turn

    def _show(self, piece: str) -> Control | None:
        self._owner.display += piece
        return self._on_preview(piece) if self._on_preview else None
