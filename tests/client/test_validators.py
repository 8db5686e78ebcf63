"""The second check, and the three records of a call."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from client import CommandSent, EffectSeen, History, Settled, proposals
from client.buffers import Call
from client.outcomes import COMPLETE, INCOMPLETE_STREAM, REJECTED
from client.validators import Validator, ValidatorError, accept, json_schema

ANSWER = Settled(
    outcome=COMPLETE, why="", preview='{"n":1}', finish_reason="stop", reason_class="answer", history_rule="append"
)
CALL = Call(id="a", name="f", arguments='{"n":1}', free=False)
TOOLS = replace(ANSWER, preview="", reason_class="tools", calls=(CALL,))
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def ticket(tmp_path: Path) -> Validator:
    """Give a validator from a schema file."""
    (tmp_path / "ticket-1.json").write_text(json.dumps(SCHEMA))
    return json_schema("ticket/1", tmp_path)


def test_a_callable_is_a_validator() -> None:
    """A refusal is REJECTED with name, version and reason, and does not enter the history."""
    short = Validator(name="short", version="2", check=lambda turn: "too long" if len(turn.preview) > 3 else None)
    turn = accept(ANSWER, short)
    assert (turn.outcome, turn.why) == (REJECTED, "short 2: too long")
    assert not History().accept("q", turn)


def test_only_a_complete_turn_is_asked() -> None:
    """Missing evidence is not the validator's business: it is not even called."""

    def explode(_: Settled) -> str | None:
        raise AssertionError("asked about a turn that is not complete")

    cut = replace(ANSWER, outcome=INCOMPLETE_STREAM)
    assert accept(cut, Validator(name="x", version="1", check=explode)) is cut


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"n":1}', None),
        ('{"n":"1"}', "ticket 1: $.n: '1' is not of type 'integer'"),
        ('{"n":1,"n":2}', 'ticket 1: no JSON: Detected duplicate key "n" at line 1 column 12'),
    ],
)
def test_a_schema_by_name(ticket: Validator, text: str, why: str | None) -> None:
    """An answer, and the arguments of a call, have to fit the schema and to be strict JSON."""
    for turn in (replace(ANSWER, preview=text), replace(TOOLS, calls=(replace(CALL, arguments=text),))):
        found = accept(turn, ticket)
        assert (found.outcome, found.why) == ((COMPLETE, "") if why is None else (REJECTED, why))


@pytest.mark.parametrize("content", [None, "{", '{"type": "nonsense"}'])
def test_a_wrong_schema(tmp_path: Path, content: str | None) -> None:
    """A schema that is missing, no JSON or no schema is the caller's mistake, and named."""
    if content is not None:
        (tmp_path / "x-1.json").write_text(content)
    with pytest.raises(ValidatorError, match=r"x-1\.json"):
        json_schema("x/1", tmp_path)


def test_three_records() -> None:
    """A proposal is one record, a command another, an effect a third, each on top of the last."""
    (proposal,) = proposals(TOOLS)
    assert (proposal.name, proposal.arguments) == ("f", {"n": 1})
    effect = EffectSeen(command=CommandSent(proposal=proposal, command_id="c1"), observation="ticket changed")
    assert effect.command.proposal is proposal


@pytest.mark.parametrize("turn", [replace(TOOLS, outcome=INCOMPLETE_STREAM), replace(TOOLS, outcome=REJECTED), ANSWER])
def test_no_proposal_without_an_accepted_message(turn: Settled) -> None:
    """Arguments that parse are no proposal where the message was not accepted."""
    assert proposals(turn) == []
