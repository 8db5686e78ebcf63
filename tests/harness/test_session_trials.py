"""`records.py`: what several attempts of one trial left, as it is written down."""

import json
from pathlib import Path
from typing import Any

from .runs import blob
from .sessions import CASE, LABEL, a_session_run, a_session_subject, body
from .support import a_subject, lines_of

# Reads of each attempt what the step asks for, and says so; it stores nothing.
READS = """
turn = hear()
open_ = {}
read = {}
while (step := hear())["kind"] == "step":
    name = step["attempt"]
    if step["do"] in ("begin", "supersede", "retry"):
        open_[name] = post(turn)
    if step["do"] == "read":
        read[name] = read.get(name, b"") + open_[name].read(step.get("until_bytes"))
    stepped(turn, step, consumed_bytes=len(read.get(name, b"")))
claim(turn, outcome="COMPLETE", dispatched=0)
hear()
"""


def one(
    folder: Path, program: str, case: str = CASE, label: str = LABEL
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Run the session with a throw-away subject; give the archive, the record and the volatile line."""
    archive = a_session_run(folder, a_session_subject(folder, program), case, label)
    (record,) = lines_of(archive / "data/records/trials-00000.jsonl")
    (volatile,) = lines_of(archive / "data/volatile/trials-00000.jsonl")
    return archive, record, volatile


def test_a_session_as_it_was(tmp_path: Path) -> None:
    """The record has each request with its own exchange, as far as its attempt read, and the journal."""
    archive, record, volatile = one(tmp_path, READS)
    assert record.keys() == {
        *("schema", "trial", "suite", "case", "contract", "requests", "exchanges", "journal", "claim", "no_claim"),
    }
    assert (record["schema"], record["trial"]) == ("endmark.session/1", "talks/two@strict/1")
    assert len(record["requests"]) == 2
    assert [blob(archive, item["body"]) for item in record["exchanges"]] == [body("old")[:10], body("new")]
    assert [(item["status"], item["delivered"]) for item in record["exchanges"]] == [(200, True), (200, True)]
    assert all(blob(archive, item["response_head"]).startswith(b"HTTP/1.1 200 OK") for item in record["exchanges"])
    journal = blob(archive, record["journal"])
    assert [line["do"] for line in json.loads(journal)] == ["begin", "read", "supersede", "read", "commit"]
    assert b" " not in journal
    assert (record["claim"]["outcome"], record["claim"]["dispatched"], record["claim"]["reads"]) == (
        "COMPLETE",
        0,
        None,
    )
    assert (volatile["server_end"], volatile["sent_bytes"]) == ("played", len(body("new")))


def test_more_requests_than_exchanges(tmp_path: Path) -> None:
    """A request that no attempt makes is answered by the last exchange, and archived with all that was sent."""
    program = READS.replace("open_[name] = post(turn)", "open_[name] = post(turn)\n        post(turn).read()")
    archive, record, _ = one(tmp_path, program)
    assert len(record["requests"]) == 4
    # the second of them belongs to attempt b by its place, though a made it: the auditor sees four requests
    assert [blob(archive, item["body"]) for item in record["exchanges"]] == [
        body("old")[:10],
        body("new"),
        body("new"),
        body("new"),
    ]


def test_a_denied_attempt_makes_no_request(tmp_path: Path) -> None:
    """The second exchange belongs to the first attempt that was not denied behind the first."""
    c = '[[step]]\ndo = "begin"\nattempt = "c"\n\n[[step]]\ndo = "read"\nattempt = "c"\nuntil_bytes = 5\n'
    case = CASE.replace('body = "new.sse"\n', 'body = "new.sse"\n\n[[exchange]]\nbody = "new.sse"\n')
    program = READS.replace(
        'name = step["attempt"]\n',
        'name = step["attempt"]\n    if name == "b":\n        stepped(turn, step, result="denied")\n        continue\n',
    )
    label = LABEL + 'attempt.c = { decision = "open" }\n'
    archive, record, _ = one(tmp_path, program, f"{case}\n{c}", label)
    assert [blob(archive, item["body"]) for item in record["exchanges"]] == [body("old")[:10], body("new")[:5]]


def test_a_crash_in_the_middle(tmp_path: Path) -> None:
    """Without a claim there is no journal, and the exchanges are archived as they were sent."""
    program = READS.replace("    stepped(", "    step['do'] == 'supersede' and os._exit(3)\n    stepped(")
    archive, record, volatile = one(tmp_path, program)
    assert (record["no_claim"], record["claim"], record["journal"]) == ("exit", None, None)
    assert volatile["note"] == "exit 3"
    assert [blob(archive, item["body"]) for item in record["exchanges"]] == [body("old"), body("new")]


def test_a_claim_of_more_than_was_sent(tmp_path: Path) -> None:
    """An exchange of which more is said to be consumed than was sent was not delivered."""
    _, record, _ = one(tmp_path, READS.replace("consumed_bytes=len(", "consumed_bytes=10_000 + len("))
    assert [item["delivered"] for item in record["exchanges"]] == [False, False]


def test_a_subject_that_takes_no_steps(tmp_path: Path) -> None:
    """Without the capability `steps` the session is never put to a subject."""
    archive = a_session_run(tmp_path, a_subject(tmp_path, "ready()\nhear()\n"))
    (record,) = lines_of(archive / "data/records/trials-00000.jsonl")
    (volatile,) = lines_of(archive / "data/volatile/trials-00000.jsonl")
    assert (record["no_claim"], volatile["note"]) == ("unsupported", "steps")
    assert (record["requests"], record["exchanges"], record["journal"]) == ([], [], None)
    assert volatile["server_end"] == "not-asked"
