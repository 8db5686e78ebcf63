"""What is wrong with a contract is said with its key and its file."""

from dataclasses import replace
from pathlib import Path

import pytest

from client.contract import CONTRACTS, AttemptRules, ContractError, load

GOOD = (CONTRACTS / "frozen-text-1.toml").read_text("utf-8")

WRONG = {
    "a syntax error names the line": ("title =", "title = =", "line 4"),
    "an unknown key": ("[limits]", "[limits]\nlines = 1", "limits.lines is not a key"),
    "a missing key": ("events = 256\n", "", "limits.events needs a int"),
    "a limit of zero": ("events = 256", "events = 0", "limits.events needs an integer of at least 1"),
    "a boolean limit": ("events = 256", "events = true", "limits.events needs a int"),
    "an unknown class of reason": ('stop = "answer"', 'stop = "fine"', "reasons.stop is 'fine'"),
    "an unknown rule of the history": ('answer = "append"', 'answer = "keep"', "history.answer is 'keep'"),
    "a switch of another value": ('usage = "optional"', 'usage = "maybe"', "switch.usage is 'maybe'"),
    "a missing switch": ('usage = "optional"\n', "", "switch.usage needs a str"),
    "an unknown switch": ("[switch]", '[switch]\nusages = "x"', "switch.usages is not a key"),
    "a class of ending without a rule": ('paused = "caller"\n', "", "history.paused needs a str"),
    "an unknown framing": ('framing = "sse"', 'framing = "xml"', "framing is 'xml'"),
    "an unknown result": ('results = ["answer"]', 'results = ["text"]', "results is ['text']"),
    "another name than the file": ('name = "frozen-text/1"', 'name = "other/1"', "name is 'other/1'"),
    "an unknown policy": ("[switch]", '[attempts]\npolicy = "free"\n\n[switch]', "attempts.policy is 'free'"),
    "an unknown key of attempts": ("[switch]", "[attempts]\nretry = 1\n\n[switch]", "attempts.retry is not a key"),
    "no number of retries": ("[switch]", '[attempts]\nretries = "3"\n\n[switch]', "attempts.retries needs a int"),
    "no table of reasons": ("[dialect.openai-chat.reasons]", "[dialect.openai-chat.reason]", "reasons needs a table"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_contract(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A contract with a mistake is refused, with the place and the reason."""
    assert old in GOOD
    (tmp_path / "frozen-text-1.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ContractError) as caught:
        load("frozen-text/1", tmp_path)
    assert message in str(caught.value)


def test_missing_contract(tmp_path: Path) -> None:
    """A contract that is not there is named."""
    with pytest.raises(ContractError, match=r"none-1\.toml: contract 'none/1' cannot be read"):
        load("none/1", tmp_path)


def test_attempts_are_owned_unless_a_contract_says_otherwise() -> None:
    """A contract without the table owns its attempts and has three retries; naive/1 owns nothing."""
    assert load("strict/1").attempts == AttemptRules(policy="owned", retries=3)
    assert load("naive/1").attempts.policy == "naive"


def test_the_control_judges_as_strict() -> None:
    """naive/1 is strict/1 but for who may publish, so that a difference is the policy's."""
    strict, naive = load("strict/1"), load("naive/1")
    assert replace(naive, name=strict.name, title=strict.title, attempts=strict.attempts) == strict
