"""The court refuses every archive of sessions that was tampered with, and says why.

The table is in session_mutations.py, the archive in talks.py.
"""

import json
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import forge as tools
from .forge import RECORDS, VOLATILE, Bench, Forge, ask, canonical, codes, copy
from .mutations import ROWS, Mutation, apply, ask_about
from .session_mutations import SESSION_ROWS, drop
from .talks import SESSIONS, SUITE, trial_of
from .test_robustness import JSON_VALUES, MANY, TOML_VALUES, places, put


@pytest.fixture
def archive(talks_bench: Bench) -> Forge:
    """A good archive of sessions that may be spoilt."""
    return talks_bench.fresh()


def named(row: Mutation) -> str:
    """Give a row's name as the name of a test."""
    return row.name.replace(" ", "-")


def test_the_good_archive_is_sound(talks: Path) -> None:
    """The archive that all of this starts from: exit code 0, no finding, every session AGREE."""
    done = tools.court(talks)
    report = json.loads(done.stdout)
    verdicts = {"AGREE": 2 * len(SESSIONS)}
    assert (done.returncode, report["findings"], report["totals"]["verdicts"]) == (0, [], verdicts)


def test_the_names_differ() -> None:
    """No two ways to tamper have one name."""
    names = [row.name for row in ROWS + SESSION_ROWS]
    assert len(set(names)) == len(names)


# What cannot but be found as well: a record that is not taken is missing; a delivery that is denied was none.
FOLLOWS = {"E-SCHEMA": {"E-COVERAGE", "E-VOLATILE", "NO_CLAIM"}, "E-VOLATILE": {"NOT_DELIVERED"}}


@pytest.mark.parametrize("row", SESSION_ROWS, ids=named)
def test_tampering_is_found(row: Mutation, talks: Path, archive: Forge, court: ModuleType) -> None:
    """The expected code is found, and no other one but what follows from it."""
    apply(row, archive)
    report = ask_about(row, court, archive, talks)
    assert court.exit_code(report) == 1
    assert {row.expected} <= codes(report) <= {row.expected} | FOLLOWS.get(row.expected, set())


def test_a_subject_that_was_told_no_contract_is_judged_on_its_history(archive: Forge, court: ModuleType) -> None:
    """What it says about its steps is not looked at; what it keeps is."""
    rows = {row.name: row for row in SESSION_ROWS}
    plan = archive.document(tools.PLAN)
    archive.change(tools.PLAN, subject=plan["subject"] | {"contract_aware": False})
    apply(rows["a journal that claims another reads"], archive)
    assert codes(ask(court, archive.folder)) == set()
    apply(rows["an answer published twice"], archive)
    assert codes(ask(court, archive.folder)) == {"FALSE_COMMIT"}


# -- anything at all -------------------------------------------------------------------------------

KEPT = ("after-clear", "denied", "supersede-new-first")


@pytest.fixture(scope="module")
def few(talks: Path, tmp_path_factory: pytest.TempPathFactory) -> Forge:
    """A copy of a few sessions, for changes that are taken back."""
    forge = copy(talks, tmp_path_factory.mktemp("few") / "archive")
    others = [case for case in SESSIONS if case not in KEPT]
    drop(forge, *(trial_of(case, policy) for case in others for policy in ("owned", "naive")))
    for case in others:
        forge.remove(SUITE + case)
    forge.reseal()
    return forge


@MANY
@given(data=st.data())
def test_a_changed_record(data: st.DataObject, court: ModuleType, few: Forge) -> None:
    """Any member of any record replaced by any JSON, and resealed: no exception, whatever it says."""
    name = data.draw(st.sampled_from([RECORDS, VOLATILE]))
    before = few.read(name)
    try:
        rows = few.rows(name)
        number = data.draw(st.integers(0, len(rows) - 1))
        path = data.draw(st.sampled_from(places(rows[number])))
        rows[number] = put(rows[number], path, data.draw(JSON_VALUES))
        few.save_rows(rows, name)
        few.reseal()
        assert court.exit_code(ask(court, few.folder)) in (0, 1)
    finally:
        few.write(name, before)


@MANY
@given(data=st.data())
def test_a_changed_journal(data: st.DataObject, court: ModuleType, few: Forge) -> None:
    """Any member of a journal or a request replaced by any JSON: no exception."""
    before = few.read(RECORDS)
    rows = few.rows()
    row = data.draw(st.sampled_from(rows))
    said = json.loads(few.content(row["journal"]))
    lines = put(said, data.draw(st.sampled_from(places(said))), data.draw(JSON_VALUES))
    row["journal"] = few.blob(canonical(lines))
    try:
        few.save_rows(rows)
        few.reseal()
        assert court.exit_code(ask(court, few.folder)) in (0, 1)
    finally:
        few.write(RECORDS, before)
        few.sweep()


STEP_VALUES = [*TOML_VALUES, '"a"', '"b"', '"z"', '"begin"', '"clear"', '"retry"', '"read"', "60"]


@MANY
@given(data=st.data())
def test_a_changed_case(data: st.DataObject, court: ModuleType, few: Forge) -> None:
    """Any line of a case, a label or the naive contract given another value, or left out: no exception."""
    files = [f"{SUITE}{case}/{kind}.toml" for case in KEPT for kind in ("case", "label")]
    name = data.draw(st.sampled_from([*files, "data/suite/contracts/naive-1.toml"]))
    before = few.read(name)
    try:
        lines = before.decode().splitlines()
        at = data.draw(st.integers(0, len(lines) - 1))
        value = data.draw(st.one_of(st.none(), st.sampled_from(STEP_VALUES)))
        lines[at] = "" if value is None else f"{lines[at].partition('=')[0]}= {value}"
        few.write(name, "\n".join(lines).encode())
        freeze(few)
        assert court.exit_code(ask(court, few.folder)) in (0, 1)
    finally:
        few.write(name, before)
        freeze(few)


def freeze(forge: Forge) -> None:
    """Freeze suite and contracts, and reseal."""
    forge.freeze("talks")
    forge.freeze("contracts")
    forge.reseal()
