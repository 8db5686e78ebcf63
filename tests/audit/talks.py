"""Builds an archive of sessions from tests/vectors/sessions.toml, by docs/attempts.md alone.

Each session of the vectors is a case of the suite `talks`, run under strict/1 (owned) and naive/1. What the
vectors say is right becomes the label as well as the claim, so that the archive is sound if the court reads
cases, bodies and steps as the vectors do. Nothing is shared with the laboratory or the court.
"""

import json
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from .forge import HOME, PLAN, PROVENANCE, RUN, VOLATILE, Forge, Row, canonical

VECTORS = tomllib.loads((HOME / "tests/vectors/sessions.toml").read_text("utf-8"))
SESSIONS: dict[str, Row] = {session["case"]: session for session in VECTORS["session"]}
POLICIES = {"owned": "strict/1", "naive": "naive/1"}

SUITE = "data/suite/talks/"
NAIVE = "data/suite/contracts/naive-1.toml"
STRICT = "data/suite/contracts/strict-1.toml"
QUESTION = {"role": "user", "content": VECTORS["conversation"]["question"]}
COLUMNS = ("result", "outcome", "consumed_bytes", "reads", "preview", "display", "state", "stored")
BEGINNINGS = ("begin", "supersede", "retry")


def trial_of(case: str, policy: str = "owned") -> str:
    """Name a trial."""
    return f"talks/{case}@{POLICIES[policy]}"


# -- what the vectors abbreviate -------------------------------------------------------------------


def events(body: list[str]) -> list[bytes]:
    """Spell the events of a body."""
    wire = VECTORS["wire"]
    return [(wire.get(name) or wire["text"] % name).encode() + b"\n\n" for name in body]


def entries(history: list[Any]) -> list[Row]:
    """Spell a history of questions and answers in turn."""
    held = [entry if isinstance(entry, dict) else {"content": entry} for entry in history]
    return [{"role": "assistant" if i % 2 else "user"} | entry for i, entry in enumerate(held)]


def steps(session: Row) -> list[Row]:
    """Spell the steps of a session."""
    third = {"supersede": "of", "retry": "of", "read": "until_bytes"}
    return [dict(zip(("do", "attempt", third.get(step[0], "")), step, strict=False)) for step in session["steps"]]


def journal(session: Row, policy: str) -> list[Row]:
    """Spell a journal."""
    lines = []
    for step, line in zip(steps(session), session[policy]["journal"], strict=True):
        values = dict(zip(COLUMNS, line, strict=True))
        values |= {key: values[key] or None for key in ("result", "outcome")}
        lines.append({"do": step["do"], "attempt": step.get("attempt")} | values)
    return lines


def asked(lines: list[Row]) -> list[str]:
    """Give the attempts that made a request, in this order."""
    return [line["attempt"] for line in lines if line["do"] in BEGINNINGS and line["result"] != "denied"]


def consumed(lines: list[Row], attempt: str) -> int:
    """Give the bytes that an attempt consumed in the end."""
    value: int = [line["consumed_bytes"] for line in lines if line["attempt"] == attempt][-1]
    return value


# -- the suite -------------------------------------------------------------------------------------


def toml(value: object) -> str:
    """Spell a value in TOML: JSON, but for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def table(head: str, values: Row) -> str:
    """Spell a table of TOML."""
    return f"\n{head}\n" + "".join(f"{key} = {toml(value)}\n" for key, value in values.items())


def case_toml(session: Row) -> str:
    """Spell case.toml."""
    text = f'title = {toml(session["why"])}\ndialect = "openai-chat"\nreference = "docs/attempts.md"\n'
    text += table("[client]", {"read_cap_bytes": session.get("read_cap_bytes", 4096)})
    for number, exchange in enumerate(session["exchange"], 1):
        ends = list(accumulate(map(len, events(exchange["body"]))))
        values = exchange | {"body": f"body-{number}.sse", "chunk_ends": ends[:-1]}
        text += table("[[exchange]]", values)
    return text + "".join(table("[[step]]", step) for step in steps(session))


def label_toml(session: Row) -> str:
    """Spell label.toml."""
    text = f'why = {toml(session["why"])}\nauthority = "spec"\nurl = "docs/attempts.md"\ndate = 2026-12-01\n'
    for policy, contract in POLICIES.items():
        right = session[policy]
        last = dict(zip(COLUMNS, right["journal"][-1], strict=True))
        stated = {key: right[key] for key in ("stored", "writes")}
        stated |= {"dispatched": 0, "display": last["display"], "state": last["state"]}
        text += table(f'[contract."{contract}"]', stated | ({"fails": bool(right["how"])} if "how" in right else {}))
        for name, (outcome, decision) in right["attempts"].items():
            said = ({"outcome": outcome} if outcome else {}) | {"decision": decision}
            text += table(f'[contract."{contract}".attempt.{name}]', said)
    return text


SUITE_TOML = f"""\
name = "talks"
version = "1"
licence = "CC0-1.0"
contracts = ["strict/1", "naive/1"]

[conversation]
history = {toml(entries(VECTORS["conversation"]["history"]))}
question = {toml(QUESTION["content"])}

[[changelog]]
version = "1"
date = 2026-12-01
text = "The sessions of the vectors."
"""


def write_case(forge: Forge, session: Row) -> None:
    """Write the case of a session, its bodies and its label."""
    folder = f"{SUITE}{session['case']}/"
    for number, exchange in enumerate(session["exchange"], 1):
        forge.write(f"{folder}body-{number}.sse", b"".join(events(exchange["body"])))
    forge.write(folder + "case.toml", case_toml(session).encode())
    forge.write(folder + "label.toml", label_toml(session).encode())


def write_suite(forge: Forge) -> None:
    """Write the suite and the two contracts, and freeze both."""
    strict = (HOME / "cases/contracts/strict-1.toml").read_text("utf-8")
    forge.write(STRICT, strict.encode())
    naive = strict.replace('name = "strict/1"', 'name = "naive/1"') + '\n[attempts]\npolicy = "naive"\n'
    forge.write(NAIVE, naive.encode())
    forge.write(SUITE + "suite.toml", SUITE_TOML.encode())
    for session in SESSIONS.values():
        write_case(forge, session)
    for suite in ("contracts", "talks"):
        forge.write(f"data/suite/{suite}/manifest-sha256.txt", b"")
        forge.freeze(suite)


# -- the records -----------------------------------------------------------------------------------


def request(history: list[Row]) -> bytes:
    """Spell a redacted request."""
    body = canonical({"messages": [*history, QUESTION], "model": "fixture", "stream": True})
    head = f"POST {{path}} HTTP/1.1\nhost: {{host}}\ncontent-length: {len(body)}\ncontent-type: application/json\n\n"
    return head.encode() + body


def head(status: int) -> bytes:
    """Spell a response head."""
    return f"HTTP/1.1 {status} \r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def exchanges(forge: Forge, session: Row, lines: list[Row]) -> Iterator[Row]:
    """Give what was served to each request."""
    for exchange, name in zip(session["exchange"], asked(lines), strict=False):
        body, status = b"".join(events(exchange["body"])), exchange.get("status", 200)
        yield {
            "status": status,
            "response_head": forge.blob(head(status)),
            "body": forge.blob(body[: consumed(lines, name)]),
            "delivered": True,
        }


def claim(forge: Forge, right: Row, last: Row) -> Row:
    """Give the claim of a session."""
    left_out = ("class", "status", "reads", "consumed_bytes", "consumed_sha256", "transport_end")
    return dict.fromkeys((*left_out, "finish_reason", "raised")) | {
        "history": forge.blob(canonical(entries(right["history"]))),
        "preview": forge.blob(last["display"].encode()),
        "outcome": right["outcome"] or None,
        "dispatched": 0,
    }


def record(forge: Forge, session: Row, policy: str) -> Row:
    """Give the record of one trial."""
    lines, right = journal(session, policy), session[policy]
    return {
        "schema": "endmark.session/1",
        "trial": trial_of(session["case"], policy),
        "suite": "talks",
        "case": session["case"],
        "contract": POLICIES[policy],
        "requests": [forge.blob(request(entries(history))) for history in right["sent"]],
        "exchanges": list(exchanges(forge, session, lines)),
        "journal": forge.blob(canonical(lines)),
        "claim": claim(forge, right, lines[-1]),
        "no_claim": None,
    }


def volatile(session: Row, policy: str) -> Row:
    """Give the volatile record of one trial: every body was played whole."""
    last = session["exchange"][len(session[policy]["sent"]) - 1]
    return {
        "schema": "endmark.volatile/1",
        "trial": trial_of(session["case"], policy),
        "host": "127.0.0.1",
        "port": 1,
        "path": "/",
        "started_ms": 0,
        "duration_ms": 1,
        "sent_bytes": sum(map(len, events(last["body"]))),
        "server_end": "played",
        "redacted": [],
        "message": None,
        "note": None,
    }


def write_documents(forge: Forge) -> None:
    """Write what is about the run as a whole."""
    subject = {"name": "by-hand", "version": "1", "language": "none", "dialects": ["openai-chat"]}
    versions = {"endmark": "1", "python": "3", "platform": "none", "packages": {}, "sources": {}}
    provenance = versions | {"subject": subject | {"capabilities": ["steps"]}}
    forge.save(PROVENANCE, {"schema": "endmark.provenance/1"} | provenance)
    instant = "2026-12-01T00:00:00Z"
    run = {"run_id": "x", "started_at": instant, "finished_at": instant, "host": "x", "jobs": 1, "port": 1}
    forge.save(RUN, {"schema": "endmark.run/1"} | run)
    forge.write("bagit.txt", b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    forge.write("bag-info.txt", b"Bag-Software-Agent: endmark\n")


def make_talks(folder: Path) -> Path:
    """Build the archive of all sessions under both policies and give it."""
    forge = Forge(folder)
    write_suite(forge)
    write_documents(forge)
    trials = sorted((trial_of(case, policy), case, policy) for case in SESSIONS for policy in POLICIES)
    subject = {"name": "by-hand", "history_owner": "library", "contract_aware": True}
    plan = {"subject": subject, "suites": ["talks"], "trials": [trial for trial, _, _ in trials]}
    forge.save(PLAN, {"schema": "endmark.plan/1"} | plan)
    forge.save_rows([record(forge, SESSIONS[case], policy) for _, case, policy in trials])
    forge.save_rows([volatile(SESSIONS[case], policy) for _, case, policy in trials], VOLATILE)
    forge.reseal()
    return folder
