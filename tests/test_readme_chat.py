"""The README's chat application, end to end: a real server, a real terminal's signals, a real database."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client import load
from client.attempts import Coordinator
from client.attempts.sql import open_store
from harness.cases import Case, Exchange, Step
from harness.measures import measure
from harness.names import HOME
from harness.server.app import FixtureServer
from tests.client.attempts.bodies import event, whole
from tests.harness.support import a_case, an_exchange, run_async
from tests.readme import README

HALF = event({"content": "half an answ"})
PING = b": ping\n"
PINGS = 100


def program() -> str:
    """Give the README's block."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "class Chat" in block)
    return str(code)


def endless() -> Exchange:
    """Give an answer that stops in the middle while its server goes on pinging, for half a minute."""
    body = HALF + PING * PINGS
    ends = [len(HALF) + len(PING) * number for number in range(PINGS)]
    steps = [Step(send_bytes=len(HALF))]
    for _ in range(PINGS):
        steps += [Step(wait_ms=300), Step(send_bytes=len(PING))]
    return an_exchange(body, chunk_ends=tuple(ends), script=tuple(steps))


class Talk:
    """The running chat: lines go in, and what it draws is waited for."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._drawn = ""

    def say(self, line: str) -> None:
        """Type a line."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n".encode())

    async def see(self, wanted: str) -> None:
        """Wait until a text was drawn, and forget what was drawn up to it."""
        assert self._process.stdout
        while wanted not in self._drawn:
            more = await self._process.stdout.read(4096)
            assert more, f"ended without {wanted!r}: {self._drawn!r}"
            self._drawn += more.decode()
        self._drawn = self._drawn.partition(wanted)[2]

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)


async def chat(folder: Path, case: Case) -> list[dict[str, Any]]:
    """Talk: a cut answer that is retried, one that is cancelled and asked again; give the requests' bodies."""
    path = folder / "chat.py"
    path.write_text(program(), encoding="utf-8")
    async with FixtureServer() as server:
        trial = server.open(case)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(path), trial.base_url, str(folder)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(HOME), "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"},
        )
        try:
            talk = Talk(process)
            talk.say("first question")
            await talk.see("[interrupted] half an answ\n")
            await talk.see("[accepted] whole answer\n")
            talk.say("second question")
            await talk.see("[generating] half an answ")
            talk.interrupt()
            await talk.see("[interrupted] half an answ\n")
            talk.say("/retry")
            await talk.see("[accepted] another answer\n")
            talk.say("/retry")
            await talk.see("no more: retry: attempt ")
            talk.say("")
            assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return [json.loads(play.request_body) for play in trial.plays]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """One conversation with the chat: its folder, and what it asked for."""
    folder = tmp_path_factory.mktemp("chat")
    exchanges = [an_exchange(HALF), an_exchange(whole("whole answer")), endless(), an_exchange(whole("another answer"))]
    return folder, run_async(chat(folder, a_case(*exchanges)))


def test_it_is_short() -> None:
    """The chat has at most 60 lines."""
    assert len(program().splitlines()) <= 60


def test_only_accepted_answers_are_kept(talked: tuple[Path, list[dict[str, Any]]]) -> None:
    """The store's history holds the two accepted answers, and its quarantine the two halves."""
    folder, _ = talked
    store = open_store(f"sqlite:///{folder / 'chat.db'}")
    owner = Coordinator(store, load("strict/1"), "openai-chat")
    assert [message["content"] for message in owner.history()] == [
        *("first question", "whole answer", "second question", "another answer")
    ]
    tasks = {json.loads(line)["task_id"] for line in (folder / "records.jsonl").read_text().splitlines()}
    halves = [partial.text for task in tasks for partial in owner.quarantined(task)]
    assert halves == ["half an answ"] * 2
    store.close()


def test_no_half_answer_is_sent(talked: tuple[Path, list[dict[str, Any]]]) -> None:
    """Every request carries accepted answers only, and the question once."""
    _, requests = talked
    said = [[message["content"] for message in request["messages"]] for request in requests]
    first, kept = ["first question"], ["first question", "whole answer", "second question"]
    assert said == [first, first, kept, kept]


def test_every_attempt_is_on_record(talked: tuple[Path, list[dict[str, Any]]]) -> None:
    """Four attempts left four records, which break no rule."""
    folder, _ = talked
    report = measure(folder / "records.jsonl")
    assert {name: count for name, count in report["ends"].items() if count} == {
        "accepted": 2,
        "interrupted": 1,
        "cancelled": 1,
    }
    assert (report["retries_per_accepted"], report["accepted_without_evidence"], report["findings"]) == (1.0, 0, [])
    assert report["waits"]["first_display"]["tasks"] == 2
