"""The court replays sessions as docs/attempts.md says: the vectors, under both policies.

What is right was written by hand (tests/vectors/sessions.toml). Here the court's replay is asked alone, without
any record; test_session_tampering.py asks for verdicts.
"""

import json
import subprocess
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import audit

from . import forge as tools
from . import talks as by_hand
from .forge import Bench, Row, ask
from .talks import POLICIES, SESSIONS, entries, trial_of

INTERLEAVINGS = {
    "normal", "cancel", "clear", "supersede-old-first", "supersede-new-first", "late-preview",
    "duplicate-complete", "truncated", "late-error",
}  # fmt: skip
TRIALS = [(case, policy) for case in SESSIONS for policy in POLICIES]


@pytest.fixture(scope="module")
def archive(talks: Path) -> audit.Archive:
    """The archive of sessions, scanned."""
    return audit.scan(str(talks), audit.Findings())


@pytest.fixture
def replay(case: str, policy: str, archive: audit.Archive) -> audit.Replay:
    """One session, replayed."""
    suite = audit.load_suite(archive, "talks", {})
    contract = audit.load_contract(archive, POLICIES[policy])
    session = audit.load_case(archive, f"data/suite/talks/{case}/")
    assert suite is not None
    assert contract is not None
    assert isinstance(session, audit.Session)
    return audit.Replay(session, contract, suite)


def test_the_interleavings_are_among_the_vectors() -> None:
    """The nine interleavings are written down, each under both policies."""
    assert set(SESSIONS) > INTERLEAVINGS
    assert all({"owned", "naive"} <= session.keys() for session in SESSIONS.values())


@pytest.mark.parametrize(("case", "policy"), TRIALS)
def test_the_journal_is_the_one_written_by_hand(case: str, policy: str, replay: audit.Replay) -> None:
    """Every line: result, outcome, bytes, reads, preview, display, state, stored."""
    assert replay.journal == by_hand.journal(SESSIONS[case], policy)


@pytest.mark.parametrize(("case", "policy"), TRIALS)
def test_the_histories_are_those_written_by_hand(case: str, policy: str, replay: audit.Replay) -> None:
    """Each request carries the history as it was, the one in the end is right, and so is the number of writes."""
    right = SESSIONS[case][policy]
    assert [kept.base + kept.own for kept in replay.sent] == [entries(sent) for sent in right["sent"]]
    assert replay.history.base + replay.history.own == entries(right["history"])
    assert (replay.history.texts, replay.writes) == (right["stored"], right["writes"])


@pytest.mark.parametrize(("case", "policy"), TRIALS)
def test_the_decisions_are_those_written_by_hand(case: str, policy: str, replay: audit.Replay) -> None:
    """What became of each attempt, and the outcome of the session as a whole."""
    right = SESSIONS[case][policy]
    attempts = {name: (outcome or None, decision) for name, (outcome, decision) in right["attempts"].items()}
    assert replay.decisions == attempts
    assert replay.outcome == (right["outcome"] or None)


# -- the report ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(talks: Path, court: ModuleType) -> Row:
    """The report about all sessions."""
    return ask(court, talks)


@pytest.mark.parametrize(("case", "policy"), TRIALS)
def test_a_row_says_what_was_stated_derived_and_claimed(case: str, policy: str, report: Row) -> None:
    """All three witnesses in the same keys, here with the same values; the journal alone gives the decisions."""
    right, last = SESSIONS[case][policy], by_hand.journal(SESSIONS[case], policy)[-1]
    row = next(row for row in report["trials"] if row["trial"] == trial_of(case, policy))
    expected: dict[str, Any] = {key: right[key] for key in ("stored", "writes")}
    expected |= {"dispatched": 0, "display": last["display"], "state": last["state"]}
    expected["attempts"] = {
        name: {"outcome": outcome or None, "decision": decision}
        for name, (outcome, decision) in right["attempts"].items()
    }
    for witness in ("label", "derived", "claim"):
        assert {key: row[witness][key] for key in expected} == expected
    assert row["derived"]["outcome"] == row["claim"]["outcome"] == (right["outcome"] or None)
    assert row["label"]["fails"] == (bool(right["how"]) if policy == "naive" else None)
    assert row["requests"] == len(right["sent"])


def test_the_control_says_in_what_it_fails(report: Row) -> None:
    """Every naive session is compared with the owned label; where both agree it says so."""
    how = {trial_of(case, "naive"): session["naive"]["how"] for case, session in SESSIONS.items()}
    assert report["controls"]["naive_sessions"] == {
        trial: {"fails": bool(keys), "how": keys} for trial, keys in how.items()
    }
    assert how[trial_of("normal", "naive")] == []


def test_a_row_lists_the_exchanges(report: Row) -> None:
    """Each exchange of the case with the attempt that got it; one that nobody asked for has none."""
    row = next(row for row in report["trials"] if row["trial"] == trial_of("denied"))
    assert [exchange["attempt"] for exchange in row["exchanges"]] == ["a", "d", None, None]
    assert [exchange["consumed_bytes"] for exchange in row["exchanges"]] == [0, 190, None, None]
    assert (row["status"], row["body_bytes"], row["consumed_bytes"]) == (None, None, None)


def test_the_text_tells_every_session_in_words(talks: Path) -> None:
    """A person reads what became of each attempt, what was stored and what the screen says."""
    command = [*tools.PYTHON, str(tools.AUDIT), str(talks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    told = (
        f"session       {trial_of('supersede-new-first')}: a superseded (SUPERSEDED), b accepted (COMPLETE); "
        "stored ['new song'], writes 1; screen accepted 'new song'"
    )
    assert told in lines
    assert f"control       {trial_of('late-preview', 'naive')}: the naive policy fails in display" in lines
    assert f"control       {trial_of('normal', 'naive')}: the naive policy does what the owned policy does" in lines


def test_the_trace_shows_each_attempt(talks: Path, court: ModuleType) -> None:
    """One trace for each exchange that was asked for, as far as it was read."""
    trace = ask(court, talks, "--trace", trial_of("cancel"))["trace"]
    (part,) = trace["exchanges"]
    assert (trace["trial"], part["attempt"]) == (trial_of("cancel"), "a")
    assert (part["read_ends"], [event["end"] for event in part["events"]]) == ([60], [60])
    assert part["chunk_ends"] == [60, 120, 176, 190]
    assert part["end"] == {"kind": "left", "at_byte": 60, "outcome": None, "why": "nothing more was read"}
    old, new = ask(court, talks, "--trace", trial_of("supersede-new-first"))["trace"]["exchanges"]
    assert (old["attempt"], new["attempt"]) == ("a", "b")
    assert (new["end"]["kind"], new["end"]["at_byte"], new["end"]["outcome"]) == ("settled", 190, "COMPLETE")
    assert new["events"][-1]["preview"] == "new song"


def test_the_trace_of_a_session_is_text_too(talks: Path) -> None:
    """Without --json the same is said in lines."""
    command = [*tools.PYTHON, str(tools.AUDIT), str(talks), "--trace", trial_of("cancel")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert f"trace of {trial_of('cancel')}, attempt a: 1 reads that returned bytes" in done.stdout
    assert "not settled: nothing more was read" in done.stdout


def test_a_subject_without_a_claim_has_a_row(talks_bench: Bench, court: ModuleType) -> None:
    """Nothing was claimed: the keys are there and empty, and the control says nothing about it."""
    archive, trial = talks_bench.fresh(), trial_of("cancel", "naive")
    archive.change_row(trial, claim=None, no_claim="exit", journal=None, exchanges=[], requests=[])
    archive.change_volatile(trial, server_end="not-asked", sent_bytes=0)
    archive.reseal()
    said = ask(court, archive.folder)
    row = next(row for row in said["trials"] if row["trial"] == trial)
    assert (said["findings"], row["verdict"]) == ([], "NO_CLAIM")
    assert set(row["claim"].values()) == {None}
    assert trial not in said["controls"]["naive_sessions"]


# -- contracts and limits --------------------------------------------------------------------------


def contract_with(archive: audit.Archive, attempts: Row | None) -> audit.Contract:
    """The strict contract with another table of attempts."""
    document, problem = audit.toml(archive.files[by_hand.STRICT], audit.CONTRACT_SHAPE)
    assert problem == ""
    document |= {} if attempts is None else {"attempts": attempts}
    assert audit.CONTRACT_SHAPE(document) is None
    return audit.contract_of(document)


def test_a_contract_without_attempts_is_owned(archive: audit.Archive) -> None:
    """The table is optional, and so are its keys."""
    for contract in (contract_with(archive, None), contract_with(archive, {})):
        assert (contract.policy, contract.retries) == ("owned", 3)
    assert contract_with(archive, {"policy": "naive"}).policy == "naive"


def test_the_retries_are_those_of_the_contract(archive: audit.Archive) -> None:
    """Under `retries = 0` not even the first retry is allowed; under 4 every one of the four is."""
    suite = audit.load_suite(archive, "talks", {})
    session = audit.load_case(archive, "data/suite/talks/retries/")
    assert suite is not None
    assert isinstance(session, audit.Session)
    asked = {n: len(audit.Replay(session, contract_with(archive, {"retries": n}), suite).sent) for n in (0, 1, 4)}
    assert asked == {0: 1, 1: 2, 4: 5}


def test_the_limits_of_a_session_are_those_of_the_page() -> None:
    """At most 8 exchanges, 64 steps and 1 MiB of bodies."""
    assert (audit.MAX_EXCHANGES, audit.MAX_MOVES, audit.MAX_SESSION_BYTES) == (8, 64, 1 << 20)


@pytest.mark.parametrize("document", [{}, {"do": "begin"}, {"do": ["begin"]}, {"do": None}, [], "begin"])
def test_a_step_that_is_none(document: object) -> None:
    """Whatever stands in place of a step is refused, not a crash."""
    assert audit.move_shape(document)


# -- reads -----------------------------------------------------------------------------------------


def read_by_read(
    body: bytes, ends: list[int], cap: int, until: list[int | None], settled_at: int
) -> list[tuple[int, int]]:
    """Make the logical reads one by one; give reads and consumed bytes after each step."""
    reads = consumed = 0
    told = []
    for wanted in until:
        while consumed < settled_at and (wanted is None or consumed < wanted):
            end = next(end for end in [*ends, len(body)] if end > consumed)
            consumed = min(consumed + cap, end)
            reads += 1
        told.append((reads, consumed))
    return told


WHOLE = b"".join(by_hand.events(["old ", "tale", "STOP", "DONE"]))


@given(
    cap=st.integers(1, 200),
    ends=st.sets(st.integers(1, len(WHOLE) - 1), max_size=6),
    until=st.lists(st.one_of(st.none(), st.integers(1, len(WHOLE) + 9)), min_size=1, max_size=6),
    more=st.integers(0, 90),
)
def test_the_reads_of_a_step(
    cap: int, ends: set[int], until: list[int | None], more: int, archive: audit.Archive
) -> None:
    """Any cap, chunks and steps: the sums are those of the reads made one by one, also where bytes follow the end."""
    body = WHOLE + b":" * more
    case = audit.Case(
        "", "openai-chat", cap, 1000, None, 200, "text/event-stream", "chunked", sorted(ends), body,
        [("send_bytes", len(body))], "complete",
    )  # fmt: skip
    attempt = audit.Attempt("a", audit.derive(case, contract_with(archive, None)), case)
    found = []
    for wanted in until:
        attempt.read(wanted)
        found.append((attempt.reads, attempt.consumed))
    assert found == read_by_read(body, sorted(ends), cap, until, len(WHOLE))


@given(cap=st.integers(1, 200), until=st.lists(st.integers(1, 190), max_size=6))
def test_the_preview_never_runs_ahead(cap: int, until: list[int], archive: audit.Archive) -> None:
    """After each step the preview is the texts of the events whose last byte was consumed."""
    case = audit.Case(
        "", "openai-chat", cap, 1000, None, 200, "text/event-stream", "chunked", [], WHOLE,
        [("send_bytes", len(WHOLE))], "complete",
    )  # fmt: skip
    attempt = audit.Attempt("a", audit.derive(case, contract_with(archive, None)), case)
    ends = list(accumulate([60, 60]))
    for wanted in until:
        attempt.read(wanted)
        whole = sum(end <= attempt.consumed for end in ends)
        assert attempt.preview == "".join(["old ", "tale"][:whole])


def test_the_report_is_one_object(talks: Path) -> None:
    """The command prints the same as JSON, and every row has the keys of the rows of single trials."""
    done = tools.court(talks)
    (row, *_) = json.loads(done.stdout)["trials"]
    frozen = json.loads(tools.court(tools.HOME / "evidence/reference-frozen").stdout)["trials"][0]
    assert set(row) - set(frozen) == {"exchanges"}
    assert set(frozen) - set(row) == set()
