"""The control has to fail: each test here holds the owned coordinator and the naive one to the same story."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client import ContractError, load
from client.attempts import Coordinator, MemoryStore
from client.attempts.naive import NaiveCoordinator

from .bodies import ERROR, HEAD, pieces, whole

# Makes a coordinator's attempts tell a story; gives nothing.
Story = Callable[[Any], None]


def read(attempt: Any, body: bytes) -> Any:
    """Read a body into an attempt."""
    attempt.head(*HEAD)
    attempt.feed(body)
    return attempt


def partial(coordinator: Any) -> None:
    """Commit half an answer."""
    read(coordinator.begin("t", "q"), pieces("half")[0]).commit()


def twice(coordinator: Any) -> None:
    """Commit one answer twice."""
    attempt = read(coordinator.begin("t", "q"), whole("a"))
    attempt.commit()
    attempt.commit()


def stale(coordinator: Any) -> None:
    """Let an older attempt finish after its replacement was accepted."""
    old = coordinator.begin("t", "q")
    read(coordinator.supersede(old), whole("new")).commit()
    read(old, whole("old")).commit()


def cancelled(coordinator: Any) -> None:
    """Commit what was cancelled."""
    attempt = read(coordinator.begin("t", "q"), pieces("half")[0])
    attempt.cancel()
    attempt.commit()


def cleared(coordinator: Any) -> None:
    """Commit into a conversation that was cleared meanwhile."""
    attempt = read(coordinator.begin("t", "q"), whole("late"))
    coordinator.clear()
    attempt.commit()


def failed(coordinator: Any) -> None:
    """Meet a provider's error after an earlier answer was accepted."""
    read(coordinator.begin("t1", "q"), whole("good")).commit()
    read(coordinator.begin("t2", "q"), ERROR)


@dataclass(frozen=True, kw_only=True)
class Held:
    """What the two histories hold in the end."""

    owned: list[str]
    naive: list[str]


STORIES: dict[Story, Held] = {
    partial: Held(owned=[], naive=["half"]),
    twice: Held(owned=["a"], naive=["a", "a"]),
    stale: Held(owned=["new"], naive=["new", "old"]),
    cancelled: Held(owned=[], naive=["half"]),
    cleared: Held(owned=[], naive=["late"]),
    failed: Held(owned=["good"], naive=[]),
}


def answers(coordinator: Any) -> list[str]:
    """List the answers of a history."""
    return [message["content"] for message in coordinator.history()[1::2]]


@pytest.mark.parametrize(("story", "held"), STORIES.items(), ids=[story.__name__ for story in STORIES])
def test_the_control_fails_where_ownership_holds(story: Story, held: Held) -> None:
    """The same calls, the same bytes: the owned history is right and the naive one is wrong."""
    owned = Coordinator(MemoryStore(), load("strict/1"), "openai-chat")
    naive = NaiveCoordinator(load("naive/1"), "openai-chat")
    story(owned)
    story(naive)
    assert (answers(owned), answers(naive)) == (held.owned, held.naive)


def test_two_attempts_share_the_screen() -> None:
    """On the naive screen two answers are spliced to one that neither attempt gave."""
    naive = NaiveCoordinator(load("naive/1"), "openai-chat")
    old = read(naive.begin("t", "q"), pieces("The answer ")[0])
    new = naive.retry(old)
    read(new, pieces("is 42")[0])
    assert (naive.display, naive.state, new.preview) == ("The answer is 42", "generating", "is 42")
    new.cancel()
    assert (naive.display, naive.state) == ("The answer is 42", "interrupted")
    new.commit()
    assert naive.state == "accepted"
    naive.begin("t2", "q")
    assert (naive.display, naive.state) == ("", "generating")
    naive.clear()
    assert (naive.display, naive.state, naive.stored, naive.writes) == ("", "idle", 0, 1)


def test_an_error_on_the_naive_screen() -> None:
    """An error outcome interrupts the screen; an end that is merely early does not."""
    naive = NaiveCoordinator(load("naive/1"), "openai-chat", [{"role": "user", "content": "before"}])
    read(naive.begin("t", "q"), ERROR)
    assert (naive.state, naive.history()) == ("interrupted", [{"role": "user", "content": "before"}])
    attempt = read(naive.begin("t", "q"), pieces("a")[0])
    attempt.end("eof")
    assert naive.state == "generating"


def test_neither_takes_the_others_contract() -> None:
    """A contract says who owns; the coordinator of the other policy refuses it."""
    with pytest.raises(ContractError, match="policy 'naive', not owned"):
        Coordinator(MemoryStore(), load("naive/1"), "openai-chat")
    with pytest.raises(ContractError, match="policy 'owned', not naive"):
        NaiveCoordinator(load("strict/1"), "openai-chat")


def test_a_dialect_that_the_contract_lacks() -> None:
    """A coordinator is refused at once, not at the first byte."""
    with pytest.raises(ContractError, match="no rules for dialect 'anthropic'"):
        Coordinator(MemoryStore(), load("frozen-text/1"), "anthropic")


def test_without_a_database_none_is_loaded() -> None:
    """The coordinator and the store in memory need neither SQLAlchemy nor jsonschema."""
    code = "import sys, client.attempts; sys.exit(any(name in sys.modules for name in ('sqlalchemy', 'jsonschema')))"
    home = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], cwd=home, check=True)
