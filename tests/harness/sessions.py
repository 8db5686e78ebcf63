"""A suite with one session in it, and subjects that take sessions: for the tests of several attempts."""

import shutil
from pathlib import Path

from harness.archive import Archive
from harness.cases import CONTRACTS, load_suite
from harness.freeze import freeze
from harness.names import CASES
from harness.runner import Plan, run
from harness.subjects.registry import Subject, find

from .support import edit, run_async, write_subject

SUITE = """\
name = "talks"
version = "1"
licence = "CC0-1.0"
contracts = ["strict/1"]

[conversation]
history = [{ role = "user", content = "earlier" }, { role = "assistant", content = "earlier" }]
question = "question"

[[changelog]]
version = "1"
date = 2026-11-30
text = "For a test."
"""
CASE = """\
title = "an answer that is replaced half-way"
dialect = "openai-chat"
reference = "docs/attempts.md"

[client]
read_cap_bytes = 7

[[exchange]]
body = "old.sse"

[[exchange]]
body = "new.sse"

[[step]]
do = "begin"
attempt = "a"

[[step]]
do = "read"
attempt = "a"
until_bytes = 10

[[step]]
do = "supersede"
attempt = "b"
of = "a"

[[step]]
do = "read"
attempt = "b"

[[step]]
do = "commit"
attempt = "b"
"""
LABEL = """\
why = "For a test."
authority = "judgement"
url = "contracts/strict-1.toml"
date = 2026-11-30

[contract."strict/1"]
stored = ["new"]
writes = 1
dispatched = 0
display = "new"
state = "accepted"
attempt.a = { decision = "superseded" }
attempt.b = { outcome = "COMPLETE", decision = "accepted" }
"""


def body(text: str) -> bytes:
    """Give a stream with one text and its whole end."""
    delta = f'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}\n\n'
    return delta.encode() + b"data: [DONE]\n\n"


def write_session(folder: Path, case: str = CASE, label: str = LABEL) -> Path:
    """Write the suite `talks`, whose one case is `two`, beside the committed contracts; give the root."""
    root = folder / "cases"
    shutil.copytree(CASES / CONTRACTS, root / CONTRACTS)
    home = root / "talks" / "two"
    home.mkdir(parents=True)
    (root / "talks" / "suite.toml").write_text(SUITE, encoding="utf-8")
    (home / "case.toml").write_text(case, encoding="utf-8")
    (home / "label.toml").write_text(label, encoding="utf-8")
    (home / "old.sse").write_bytes(body("old"))
    (home / "new.sse").write_bytes(body("new"))
    return root


# What a throw-away subject needs for a session: one open request for each attempt, and lines of a journal.
PREAMBLE = """
import http.client, urllib.parse

def post(turn):
    url = urllib.parse.urlsplit(turn["base_url"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    connection.request("POST", url.path + "/chat/completions", json.dumps(dict(messages=[])))
    return connection.getresponse()

def stepped(turn, step, **changes):
    line = dict(do=step["do"], attempt=step.get("attempt"), result=None, outcome=None, consumed_bytes=0, reads=0,
                preview="", display="", state="idle", stored=0)
    say(kind="stepped", trial=turn["trial"], journal=line | changes)

ready()
"""


def write_session_subject(folder: Path, program: str) -> Path:
    """Write a subject that takes sessions."""
    home = write_subject(folder, PREAMBLE + program)
    edit(home / "subject.toml", '"read-timeout"]', '"read-timeout", "steps"]')
    return home


def a_session_subject(folder: Path, program: str) -> Subject:
    """Write a subject that takes sessions, and read it as the registry does."""
    return find(str(write_session_subject(folder, program)))


def a_session_run(folder: Path, subject: Subject, case: str = CASE, label: str = LABEL) -> Path:
    """Freeze and run the suite `talks`; give the archive."""
    cases = write_session(folder, case, label)
    freeze(cases, "talks")
    archive = Archive(folder / "run")
    plan = Plan(subject=subject, suites=(load_suite(cases, "talks"),))
    run_async(run(plan, archive, 1, lambda _: None))
    return folder / "run"
