"""Every case with steps over real HTTP: the client's journal, history and screen are those of the label.

The third witness, the auditor, has its word in test_all_suites.
"""

import asyncio
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client import Conditions, Contract, History, load
from client.session import Place, Session
from harness.cases import Case, load_case
from harness.server.app import FixtureServer

CASES = Path(__file__).parents[1] / "cases"
CONTRACTS: dict[str, Contract] = {}
BEFORE = [{"role": "user", "content": "earlier"}, {"role": "assistant", "content": "earlier"}]


def trials() -> Iterator[tuple[Path, str]]:
    """Give every case with steps, with every contract that its label states."""
    for path in sorted(CASES.glob("*/*/case.toml")):
        if "step" in tomllib.loads(path.read_text("utf-8")):
            for name in tomllib.loads((path.parent / "label.toml").read_text("utf-8"))["contract"]:
                yield path.parent, name


TRIALS = list(trials())


def named(value: Path | str) -> str:
    """Name a case by suite and folder."""
    return f"{value.parent.name}/{value.name}" if isinstance(value, Path) else value


async def take(case: Case, contract: Contract) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Take all steps of a case; give the journal and the claim."""
    async with FixtureServer() as server, asyncio.timeout(20):
        trial = server.open(case)
        place = Place(
            base_url=trial.base_url,
            dialect=case.dialect,
            question="question",
            conditions=Conditions(**case.conditions),
        )
        session = Session(place, contract, History(BEFORE))
        try:
            return [await session.step(step.message) for step in case.steps], session.claim()
        finally:
            session.close()


@pytest.mark.parametrize(("folder", "name"), TRIALS, ids=named)
def test_label(folder: Path, name: str) -> None:
    """What is stored, written, shown and decided is what the label says, and no tool is run."""
    contract = CONTRACTS.setdefault(name, CONTRACTS.get(name) or load(name))
    label = tomllib.loads((folder / "label.toml").read_text("utf-8"))["contract"][name]
    journal, claim = asyncio.run(take(load_case(folder), contract))
    cleared = any(line["do"] == "clear" for line in journal)
    answers = [entry["content"] for entry in claim["history"] if entry["role"] == "assistant"]
    assert answers == ([] if cleared else ["earlier"]) + label["stored"]
    stored = [0, *(line["stored"] for line in journal)]
    writes = [line["do"] for line, before in zip(journal, stored, strict=False) if line["stored"] > before]
    assert writes == ["commit"] * label["writes"]
    assert (journal[-1]["display"], journal[-1]["state"]) == (label["display"], label["state"])
    assert (claim["preview"], claim["dispatched"]) == (label["display"], label["dispatched"])
    outcomes = {line["attempt"]: line["outcome"] for line in journal if line["attempt"]}
    assert outcomes == {attempt: stated.get("outcome") for attempt, stated in label["attempt"].items()}


def test_the_control_has_to_fail() -> None:
    """Of the nine interleavings the control gets one right, and its label says so; it differs in every other."""
    fails = {}
    for folder, name in TRIALS:
        label = tomllib.loads((folder / "label.toml").read_text("utf-8"))["contract"]
        if name == "naive/1":
            keys = ("stored", "writes", "display")
            fails[folder.name] = [key for key in keys if label[name][key] != label["strict/1"][key]]
            assert label[name]["fails"] is bool(fails[folder.name])
    assert len(fails) == 9
    assert [name for name, how in fails.items() if not how] == ["normal"]
