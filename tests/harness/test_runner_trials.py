"""`runner.py`: what the server saw and the subject said in one trial, as it is written down."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.freeze import freeze
from harness.names import CASES
from harness.subjects.registry import Subject

from .runs import ASKS, a_run, blob, records, volatile
from .support import a_subject, copy_cases, edit, tree


def one(folder: Path, body: str, case: str = "seven-byte") -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Run one case with a throw-away subject; give the archive, the record and the volatile line."""
    archive, _ = a_run(folder / "run", a_subject(folder, ASKS + body), case)
    return archive, records(archive)[case], volatile(archive)[case]


def test_an_honest_trial(tmp_path: Path) -> None:
    """A trial's record has the request, head and body as they were, and what the subject said."""
    raised = 'dict(type="ValueError", chain=["OSError"], message="its own words")'
    archive, record, line_ = one(tmp_path, f"    claim(turn, preview=ask(turn).decode()[:5], raised={raised})\n")
    body = (CASES / "frozen/seven-byte/body.sse").read_bytes()
    assert blob(archive, record["body"]) == body
    assert blob(archive, record["response_head"]).startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    (request,) = record["requests"]
    assert blob(archive, request).startswith(b"POST {path} HTTP/1.1\nhost: {host}\naccept-encoding: identity\n")
    assert blob(archive, record["claim"]["preview"]) == b"data:"
    assert json.loads(blob(archive, record["claim"]["history"])) == [
        {"content": "earlier", "role": "user"},
        {"content": "earlier", "role": "assistant"},
    ]
    assert (record["status"], record["delivered"], record["no_claim"]) == (200, True, None)
    assert record["claim"]["raised"] == {"chain": ["OSError"], "type": "ValueError"}
    assert (line_["message"], line_["server_end"], line_["sent_bytes"]) == ("its own words", "played", len(body))
    assert not any(b"its own words" in data for data in tree(archive / "data/records").values())


@pytest.mark.parametrize(
    ("body", "record", "line_"),
    [
        (
            "    claim(turn)\n",
            {"status": None, "requests": [], "body": None, "response_head": None, "delivered": False},
            {"server_end": "not-asked", "sent_bytes": 0},
        ),
        (
            "    ask(turn)\n    os._exit(3)\n",
            {"status": 200, "claim": None, "no_claim": "exit", "delivered": True},
            {"note": "exit 3", "message": None},
        ),
        (
            "    ask(turn)\n    print('nonsense', flush=True)\n",
            {"claim": None, "no_claim": "malformed"},
            {"note": "not a message: b'nonsense\\n'"},
        ),
        (
            "    say(kind='unsupported', trial=turn['trial'], capability='seven')\n",
            {"claim": None, "no_claim": "unsupported", "delivered": False},
            {"note": "seven", "server_end": "not-asked"},
        ),
        (
            "    ask(turn)\n    claim(turn, consumed_bytes=10_000)\n",
            {"delivered": False},
            {"server_end": "played"},
        ),
        ("    ask(turn)\n    claim(turn, consumed_bytes=0, transport_end='left')\n", {"delivered": True}, {}),
        ("    ask(turn)\n    claim(turn, consumed_bytes=253, transport_end='eof')\n", {"delivered": True}, {}),
    ],
    ids=["never asks", "crashes", "nonsense", "unsupported", "claims too much", "leaves", "waits"],
)
def test_what_went_wrong(tmp_path: Path, body: str, record: dict[str, Any], line_: dict[str, Any]) -> None:
    """What the server saw and what the subject did not say are both in the record."""
    _, found, found_line = one(tmp_path, body)
    assert {key: found[key] for key in record} == record
    assert {key: found_line[key] for key in line_} == line_


@pytest.mark.parametrize(
    ("consumed", "size"),
    [("consumed_bytes=100", 100), ("consumed_bytes=0", 0), ("consumed_bytes=10_000", 253), ("", 253)],
)
def test_the_body_is_what_was_consumed(tmp_path: Path, consumed: str, size: int) -> None:
    """The archived body is the prefix that the subject says it consumed, and never more than was sent."""
    archive, record, _ = one(tmp_path, f"    ask(turn)\n    claim(turn, {consumed})\n")
    assert blob(archive, record["body"]) == (CASES / "frozen/seven-byte/body.sse").read_bytes()[:size]


def test_a_client_that_leaves_early(tmp_path: Path) -> None:
    """A client that left before a wait was over is recorded as such, and the fault reached the wire so far."""
    cases = copy_cases(tmp_path)
    edit(cases / "frozen/read-timeout/case.toml", "wait_ms = 400", "wait_ms = 10000")
    freeze(cases, "frozen")
    body = "    ask(turn, size=0)\n    claim(turn, consumed_bytes=0, transport_end='timeout')\n"
    archive, _ = a_run(tmp_path / "run", a_subject(tmp_path, ASKS + body), "read-timeout", cases=cases)
    assert volatile(archive)["read-timeout"]["server_end"] == "client-left"
    assert records(archive)["read-timeout"]["delivered"] is True


def test_a_claim_of_more_than_was_sent(tmp_path: Path) -> None:
    """Of a body that was sent in part, no more than that part is archived, whatever the subject claims."""
    cases = copy_cases(tmp_path)
    script = "script = [{ send_bytes = 100 }, { wait_ms = 10000 }, { send_bytes = 153 }]"
    edit(cases / "frozen/seven-byte/case.toml", 'ending = "complete"', f'ending = "complete"\n{script}')
    freeze(cases, "frozen")
    subject = a_subject(tmp_path, ASKS + "    ask(turn, size=0)\n    claim(turn, consumed_bytes=200)\n")
    archive, _ = a_run(tmp_path / "run", subject, "seven-byte", cases=cases)
    record = records(archive)["seven-byte"]
    assert (volatile(archive)["seven-byte"]["sent_bytes"], record["delivered"]) == (100, False)
    assert record["body"]["bytes"] == 100


def test_several_requests(tmp_path: Path) -> None:
    """A subject that asks again has every request in its record."""
    archive, record, _ = one(tmp_path, "    [ask(turn, f'/{n}') for n in range(3)]\n    claim(turn)\n")
    assert len(record["requests"]) == 3
    assert len({item["sha256"] for item in record["requests"]}) == 1  # the path is no part of a record
    assert record["delivered"] is True
    assert len(list((archive / "data/blobs").iterdir())) == 5


LESS: dict[str, tuple[Callable[[Subject], Subject], str, str]] = {
    "no cancel": (lambda s: replace(s, capabilities=frozenset()), "cancel", "cancel"),
    "no read-timeout": (lambda s: replace(s, capabilities=frozenset({"cancel"})), "read-timeout", "read-timeout"),
    "no dialect": (lambda s: replace(s, dialects=frozenset()), "seven-byte", "dialect openai-chat"),
}


@pytest.mark.parametrize("name", LESS)
def test_a_capability_it_does_not_have(tmp_path: Path, name: str) -> None:
    """A case that a subject cannot take is never put to it, and is recorded as unsupported."""
    less, case, note = LESS[name]
    archive, _ = a_run(tmp_path / "run", less(a_subject(tmp_path, "ready()\nhear()\n")), case)
    assert records(archive)[case]["no_claim"] == "unsupported"
    assert volatile(archive)[case]["note"] == note


def test_a_crash_costs_one_trial(tmp_path: Path) -> None:
    """After a crash the other trials go on in a fresh process."""
    body = "    if turn['conditions'].get('cancel_after_utf16'): os._exit(1)\n    ask(turn)\n    claim(turn)\n"
    archive, _ = a_run(tmp_path / "run", a_subject(tmp_path, ASKS + body), "[bc]*")
    assert {case: row["no_claim"] for case, row in records(archive).items()} == {
        "bare-cr": None,
        "bom-heartbeat": None,
        "cancel": "exit",
        "crlf": None,
    }


def test_the_turn_says_nothing_of_the_case(tmp_path: Path) -> None:
    """A subject learns its contract and conditions, and neither the case's name nor its label."""
    archive, record, _ = one(
        tmp_path, "    ask(turn)\n    claim(turn, preview=json.dumps(turn))\n", "unterminated-done"
    )
    turn = json.loads(blob(archive, record["claim"]["preview"]))
    assert turn.keys() == {
        *("kind", "trial", "base_url", "dialect", "contract", "history", "question", "conditions"),
    }
    assert not [word for word in ("unterminated", "INCOMPLETE", "frozen/") if word in json.dumps(turn)]
