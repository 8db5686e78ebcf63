"""What is measured of attempt records: counts, waits, and every rule with what breaks it."""

import json
import random
import sqlite3
import time
import tomllib
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness.measures import ENDS, end, measure, percentile, rules
from harness.names import CASES, UsageError
from harness.present_measures import lines

from .attempt_records import LACKS, Record, a_record, at, refused, write
from .support import refused as refused_by_cli
from .support import run_py


def measured(folder: Path, *found: Record) -> dict[str, Any]:
    """Measure records."""
    return measure(write(folder / "records.jsonl", *found))


# -- counts


@pytest.mark.parametrize(
    ("changes", "ended"),
    [
        ({"decision": "accepted"}, "accepted"),
        ({"terminal_class": "length"}, "truncated"),
        ({"terminal_class": "filtered"}, "stopped"),
        ({"terminal_class": "refused"}, "stopped"),
        ({"terminal_class": "paused"}, "stopped"),
        ({"terminal_class": "truncated"}, "interrupted"),
        ({"terminal_class": "truncated", "decision": "failed"}, "interrupted"),
        ({"terminal_class": "error", "decision": "failed"}, "failed"),
        ({"terminal_class": None, "decision": "failed"}, "failed"),
        ({"terminal_class": "unknown"}, "malformed"),
        ({"terminal_class": None}, "malformed"),
        ({"terminal_class": "complete"}, "rejected"),
        ({"decision": "superseded", "terminal_class": "complete"}, "superseded"),
        ({"decision": "cancelled", "terminal_class": "cancelled"}, "cancelled"),
    ],
)
def test_every_attempt_ends_in_one_way(changes: Record, ended: str) -> None:
    """Decision and class say in which one of the counts an attempt is."""
    assert end(refused(**changes)) == ended
    assert ended in ENDS


def test_counts(tmp_path: Path) -> None:
    """Ends are counted apart, retries by their origin, stale drops where a superseded answer was complete."""
    report = measured(
        tmp_path,
        refused(1, task_id="t"),
        a_record(2, task_id="t", fence=2, origin="retry", replaces="attempt-1"),
        refused(3, decision="superseded", terminal_class="complete", task_id="u"),
        refused(4, decision="superseded", terminal_class="truncated", task_id="u", fence=2, origin="supersede"),
        refused(5, terminal_class="length", origin="retry", task_id="u", fence=3),
    )
    assert {name: counted for name, counted in report["ends"].items() if counted} == {
        "accepted": 1,
        "interrupted": 1,
        "superseded": 2,
        "truncated": 1,
    }
    assert (report["attempts"], report["tasks"]) == (5, 2)
    assert (report["retries"], report["retries_per_accepted"], report["stale_drops"]) == (2, 2.0, 1)
    assert (report["from"], report["to"]) == (at(1000), at(5900))
    assert (report["accepted_without_evidence"], report["findings"]) == (0, [])


def test_nothing_accepted_has_no_ratio(tmp_path: Path) -> None:
    """Without an accepted answer there are no retries for one."""
    assert measured(tmp_path, refused(1))["retries_per_accepted"] is None


def test_an_empty_file_measures_nothing(tmp_path: Path) -> None:
    """No record is no good news: it is refused."""
    with pytest.raises(UsageError, match="holds no record, and what is not there proves nothing"):
        measured(tmp_path)


# -- waits


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([15, 20, 35, 40, 50], 30, 20),
        ([15, 20, 35, 40, 50], 40, 20),
        ([15, 20, 35, 40, 50], 50, 35),
        ([15, 20, 35, 40, 50], 100, 50),
        ([15, 20, 35, 40, 50], 0, 15),
        ([7], 50, 7),
        ([1, 2], 50, 1),
        ([1, 2], 51, 2),
        (list(range(1, 101)), 95, 95),
    ],
)
def test_nearest_rank(values: list[float], percent: int, expected: float) -> None:
    """A percentile is the smallest value that at least so many percent of the values do not exceed."""
    assert percentile(values, percent) == expected


def test_waits_begin_with_the_question(tmp_path: Path) -> None:
    """Both waits begin where the task's first attempt did; display counts the first of any, acceptance the accepted."""
    report = measured(
        tmp_path,
        refused(1, task_id="t", started_at=at(1000), first_display_at=at(3000), decided_at=at(5000)),
        a_record(2, task_id="t", fence=2, started_at=at(6000), first_display_at=at(7000), decided_at=at(9000)),
        refused(3, started_at=at(0), first_display_at=None, decided_at=at(100)),
    )
    first, accepted = report["waits"]["first_display"], report["waits"]["accepted_completion"]
    assert (first["tasks"], first["p50_ms"], first["p95_ms"]) == (1, 2.0, 2.0)
    assert (accepted["tasks"], accepted["p50_ms"], accepted["quantiles_ms"]) == (1, 8.0, [8.0] * 101)


def test_the_order_of_the_file_does_not_matter(tmp_path: Path) -> None:
    """Records of one task may stand anywhere: the report is the same."""
    rows = [refused(1, task_id="t"), a_record(2, task_id="t", fence=2), a_record(3), refused(4)]
    assert measured(tmp_path, *rows) == measured(tmp_path, *reversed(rows))


def test_a_clock_that_went_backwards(tmp_path: Path) -> None:
    """A wait that ended before it began is counted apart, and not with the others."""
    report = measured(
        tmp_path,
        a_record(1, started_at=at(5000), first_display_at=at(4000), decided_at=at(6000)),
        a_record(2),
    )
    assert (report["backwards"], report["waits"]["first_display"]["tasks"]) == (1, 1)
    assert "left out: 1 wait that ended before it began, by clocks that differ" in lines(report)


# -- rules


def test_the_rules_are_all_there() -> None:
    """Seven rules, each with its words and one statement."""
    assert list(rules()) == ["R1", "R2", "R3", "R4", "R5", "R6", "R7"]
    assert all(words and statement.startswith("SELECT attempt_id FROM ") for words, statement in rules().values())


def test_right_records_break_no_rule(tmp_path: Path) -> None:
    """What may differ among records that are right is no finding."""
    assert (
        measured(
            tmp_path,
            a_record(1),
            a_record(2, tool_args_complete=True),
            a_record(3, terminal_event=None, needs_terminal=False),
            a_record(4, terminal_reason_source="none", needs_reason=False, **{"gen_ai.response.finish_reasons": None}),
            refused(5, terminal_class="length", **{"gen_ai.response.finish_reasons": ["length"]}),
        )["findings"]
        == []
    )


@pytest.mark.parametrize("lack", LACKS)
def test_r1_finds_what_is_missing(tmp_path: Path, lack: str) -> None:
    """R1 names an accepted answer that lacks a piece of evidence, or of which that is not known; no refused one."""
    report = measured(tmp_path, a_record(1), a_record(2, **LACKS[lack]), refused(3, **LACKS[lack]))
    found = {(found["rule"], found["attempt_id"]) for found in report["findings"]} - {
        ("R6", "attempt-2"),
        ("R6", "attempt-3"),
    }
    assert found == {("R1", "attempt-2")}
    assert report["accepted_without_evidence"] == 1


OTHERS: dict[str, list[Record]] = {
    "R2": [a_record(1), a_record(2, task_id="task-1", fence=2, started_at=at(5000), decided_at=at(6000))],
    "R3": [a_record(1), refused(2, attempt_id="attempt-1", started_at=at(5000))],
    "R4": [refused(2, task_id="task-1", fence=2, started_at=at(1500)), a_record(1, decided_at=at(1600))],
    "R6": [refused(1, terminal_class=None)],
    "R7": [a_record(1, **{"gen_ai.response.finish_reasons": ["stop", "length"]})],
}


@pytest.mark.parametrize("rule", OTHERS)
def test_each_other_rule_finds_what_breaks_it(tmp_path: Path, rule: str) -> None:
    """Each rule names one attempt in a file that breaks it once, and no other rule does."""
    report = measured(tmp_path, *OTHERS[rule], a_record(9))
    assert [found["rule"] for found in report["findings"]] == [rule]
    assert report["accepted_without_evidence"] == (rule == "R7")


def test_r3_finds_a_fence_that_was_given_twice(tmp_path: Path) -> None:
    """Two attempts of one task cannot have one fence."""
    report = measured(tmp_path, refused(1, task_id="t"), refused(2, task_id="t"))
    assert [(found["rule"], found["attempt_id"]) for found in report["findings"]] == [("R3", "attempt-2")]


def test_r7_knows_how_providers_say_that_they_stopped_short() -> None:
    """R7 names every reason that the contracts class as truncated, and the common ones of a filter or an error."""
    statement = rules()["R7"][1]
    contract = tomllib.loads((CASES / "contracts/strict-1.toml").read_text("utf-8"))
    reasons = [reason for dialect in contract["dialect"].values() for reason in dialect["reasons"].items()]
    short = {reason.lower() for reason, named in reasons if named == "truncated"}
    assert len(short) > 5
    for reason in short | {"content_filter", "content_filtered", "safety", "refusal", "error"}:
        assert f"'%,{reason},%'" in statement
    for reason in {reason.lower() for reason, named in reasons if named in ("answer", "tools")}:
        assert f",{reason}," not in statement


def test_r5_finds_answers_that_nobody_recorded() -> None:
    """R5 names an answer of the product's store without its record, or with a record of other bytes."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE attempt (attempt_id, decision, payload_sha256)")
        database.execute("CREATE TABLE answer (attempt_id, payload_sha256)")
        database.executemany(
            "INSERT INTO attempt VALUES (?, ?, ?)",
            [("right", "accepted", "a"), ("other bytes", "accepted", "b"), ("refused", "refused", "a")],
        )
        for name in ("right", "other bytes", "refused", "unknown"):
            database.execute("INSERT INTO answer VALUES (?, 'a')", (name,))
        assert sorted(database.execute(rules()["R5"][1])) == [("other bytes",), ("refused",), ("unknown",)]
    database.close()


@pytest.mark.parametrize("seed", range(5))
def test_seeded_violations_come_back(tmp_path: Path, seed: int) -> None:
    """The control: K violations strewn among right records are found, exactly these and each once."""
    chance, numbers = random.Random(seed), count(1)
    rows, wanted = [], []
    for _ in range(300):
        number = next(numbers)
        if chance.random() < 0.2:
            changes = chance.choice(list(LACKS.values()))
            rows.append(a_record(number, **changes))
            wanted.append(f"attempt-{number}")
        else:
            rows.append(chance.choice([a_record, refused])(number))
    chance.shuffle(rows)
    report = measured(tmp_path, *rows)
    assert wanted
    assert report["accepted_without_evidence"] == len(wanted)
    assert sorted(found["attempt_id"] for found in report["findings"] if found["rule"] == "R1") == sorted(wanted)


# -- the command


def test_the_table(tmp_path: Path) -> None:
    """The table has every end, both waits, and the measure whose target is zero; exit 0 where that is met."""
    path = write(tmp_path / "records.jsonl", a_record(1), refused(2))
    done = run_py("measures", path)
    assert (done.returncode, done.stderr) == (0, "")
    found = done.stdout.splitlines()
    assert found[0] == f"{path}: 2 attempts of 2 tasks, {at(1000)} to {at(2900)}"
    assert [text.split()[0] for text in found[3:12]] == list(ENDS)
    assert "accepted completion                 1       0.9 ms       0.9 ms" in found
    assert "accepted without evidence           0  the target is 0" in found


def test_a_finding_is_exit_1(tmp_path: Path) -> None:
    """An answer accepted without evidence is exit 1, and the table names it."""
    done = run_py("measures", write(tmp_path / "records.jsonl", a_record(1, framing_complete=False)))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "R1  attempt-1  accepted, though the evidence is missing or not enough"


def test_many_findings_are_counted(tmp_path: Path) -> None:
    """Of many findings the table names twenty, and says how many there are."""
    report = measured(tmp_path, *(a_record(number, payload_sha256=None) for number in range(1, 31)))
    found = list(lines(report))
    assert sum(text.startswith("R1  ") for text in found) == 20
    assert found[-1] == "and 10 more; --json has them all"


def test_hostile_ids_are_shown_harmless(tmp_path: Path) -> None:
    """An id with an escape sequence does not act on the terminal."""
    report = measured(tmp_path, a_record(attempt_id="\x1b[2J", payload_sha256=None))
    assert all(text.isprintable() for text in lines(report))


def test_json(tmp_path: Path) -> None:
    """`--json` prints the report as one object."""
    path = write(tmp_path / "records.jsonl", a_record(1))
    assert json.loads(run_py("measures", path, "--json").stdout) == measure(path)


def test_a_bad_line_is_exit_2(tmp_path: Path) -> None:
    """A line that is no record is exit 2, with its number."""
    path = write(tmp_path / "records.jsonl", a_record(1), {"schema": "attempt/1"})
    assert f"{path}: line 2: " in refused_by_cli(run_py("measures", path))


@pytest.mark.parametrize(("name", "words"), [("nowhere.jsonl", "No such file"), (".", "Is a directory")])
def test_no_file(tmp_path: Path, name: str, words: str) -> None:
    """What is no file is exit 2, in one line."""
    assert words in refused_by_cli(run_py("measures", tmp_path / name))


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_a_picture(tmp_path: Path, ending: str) -> None:
    """`--picture` draws the form whose ending is named, beside the table."""
    path = write(tmp_path / "records.jsonl", a_record(1), refused(2))
    done = run_py("measures", path, "--picture", tmp_path / f"picture{ending}")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == str(tmp_path / f"picture{ending}")
    assert {found.name for found in tmp_path.iterdir()} == {"records.jsonl", f"picture{ending}"}


def test_a_picture_beside_json(tmp_path: Path) -> None:
    """Standard output is the JSON object alone, and both forms are drawn where no ending is named."""
    path = write(tmp_path / "records.jsonl", a_record(1))
    done = run_py("measures", path, "--json", "--picture", tmp_path / "both")
    assert json.loads(done.stdout)["attempts"] == 1
    assert (tmp_path / "both.png").is_file()
    assert (tmp_path / "both.svg").is_file()


def test_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    """A picture that cannot be drawn is exit 2, after the table."""
    path = write(tmp_path / "records.jsonl", a_record(1))
    done = run_py("measures", path, "--picture", tmp_path / "none" / "picture.png")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"endmark: {tmp_path / 'none' / 'picture.png'}: not drawn"


def test_twice_the_records_take_about_twice_the_time(tmp_path: Path) -> None:
    """Nothing in measuring is quadratic: four times the records take less than twelve times as long."""

    def seconds(size: int) -> float:
        path = write(
            tmp_path / f"{size}.jsonl",
            *(
                a_record(number, task_id=f"t{number // 3}", fence=number % 3 + 1, decision="superseded")
                for number in range(size)
            ),
        )
        began = time.process_time()
        measure(path)
        return time.process_time() - began

    assert seconds(8000) < 12 * seconds(2000)
