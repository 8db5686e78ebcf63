"""`session.py` over real sockets: several attempts, each with an open exchange, moved by steps alone."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from client import Conditions, Contract, History, load
from client.contract import AttemptRules
from client.session import Place, Session
from tests.jump import run

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
BEFORE = [{"role": "user", "content": "earlier"}, {"role": "assistant", "content": "earlier"}]

Play = Callable[[asyncio.StreamWriter], Awaitable[None]]
Line = dict[str, Any]


def event(text: str) -> bytes:
    """Write one text delta."""
    delta = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}, ensure_ascii=False)
    return f"data: {delta}\n\n".encode()


END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
ERROR = b'data: {"error":{"message":"overloaded"}}\n\n'
OLD, NEW = [event("旧"), event(" old"), END], [event("新"), event(" new"), END]


def sending(*parts: bytes) -> Play:
    """Send a body at once."""

    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD % len(b"".join(parts)) + b"".join(parts))
        await writer.drain()

    return play


class Server:
    """Plays one thing for each request, in their order; what it saw is kept."""

    def __init__(self, *plays: Play) -> None:
        self._plays = plays
        self.messages: list[Any] = []  # of each request
        self.gone: list[asyncio.Event] = []  # set once the client of that request has closed its connection
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and wait until its client is gone."""
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        self.messages.append(json.loads(await reader.readexactly(int(length.split(b":")[1])))["messages"])
        gone = asyncio.Event()
        self.gone.append(gone)
        try:
            await self._plays[len(self.messages) - 1](writer)
            await reader.read()
        except ConnectionError:
            pass
        finally:
            gone.set()
            writer.close()


def contract(policy: str = "owned") -> Contract:
    """Give a contract of this policy."""
    strict = load("strict/1")
    return Contract(**(vars(strict) | {"attempts": AttemptRules(policy=policy)}))


def session(
    scene: Callable[[Session, Server], Awaitable[None]], *plays: Play, policy: str = "owned", cap: int = 7
) -> tuple[Server, float]:
    """Play a scene on a session whose requests are answered by plays; give the server and the time that passed."""

    async def main() -> Server:
        seen = Server(*plays)
        async with await asyncio.start_server(seen.handle, "127.0.0.1", 0) as server:
            seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            conditions = Conditions(read_cap_bytes=cap, read_timeout_ms=1000)
            place = Place(base_url=seen.url, dialect="openai-chat", question="question", conditions=conditions)
            made = Session(place, contract(policy), History(BEFORE))
            try:
                await scene(made, seen)
            finally:
                made.close()
            for gone in seen.gone:
                await gone.wait()
        return seen

    return run(main)


async def steps(made: Session, text: str) -> list[Line]:
    """Take steps that are written as `do attempt [of=x] [until_bytes=n]`, one a line or with `;`."""
    found = []
    for words in map(str.split, text.replace("\n", ";").split(";")):
        if words:
            keys = dict(word.split("=") for word in words[2:])
            step: dict[str, Any] = {"do": words[0]} | ({"attempt": words[1]} if words[1:] else {}) | keys
            if "until_bytes" in step:
                step["until_bytes"] = int(step["until_bytes"])
            found.append(await made.step(step))
    return found


def lines(text: str, *plays: Play, policy: str = "owned") -> tuple[list[Line], Line, Server]:
    """Take steps; give the journal, the claim and the server."""
    journal: list[Line] = []
    claim: Line = {}

    async def scene(made: Session, _: Server) -> None:
        journal.extend(await steps(made, text))
        claim.update(made.claim())

    server, _ = session(scene, *plays, policy=policy)
    return journal, claim, server


def of(journal: list[Line], *keys: str) -> list[tuple[Any, ...]]:
    """Give some keys of each line."""
    return [tuple(line[key] for key in keys) for line in journal]


def test_a_step_reads_no_further_than_it_says() -> None:
    """A read stops at the first logical read that reaches its byte, and between two steps nothing is read."""
    size = len(OLD[0])

    async def scene(made: Session, _: Server) -> None:
        await steps(made, "begin a")
        for _turn in range(50):  # all bytes are here by now, and the loop is free to take them
            await asyncio.sleep(0)
        (line,) = await steps(made, f"read a until_bytes={size}")
        assert (line["consumed_bytes"], line["reads"]) == (-(-size // 7) * 7, -(-size // 7))
        assert (line["preview"], line["outcome"]) == ("旧", None)
        (again,) = await steps(made, f"read a until_bytes={size}")
        assert again == line
        (last,) = await steps(made, "read a")
        assert (last["preview"], last["outcome"], last["consumed_bytes"]) == ("旧 old", "COMPLETE", len(b"".join(OLD)))

    session(scene, sending(*OLD))


def test_two_exchanges_are_open_at_once() -> None:
    """The replaced attempt's bytes come after the new one was accepted, and are read on its open connection."""
    accepted = asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD % len(b"".join(OLD)) + OLD[0])
        await accepted.wait()
        writer.write(OLD[1] + OLD[2])

    async def scene(made: Session, server: Server) -> None:
        size = len(OLD[0])
        journal = await steps(made, f"begin a;read a until_bytes={size - 6};supersede b of=a;read b;commit b")
        assert not server.gone[0].is_set()
        accepted.set()
        journal += await steps(made, "read a;commit a")
        assert of(journal[-2:], "outcome", "result", "preview", "display", "stored") == [
            ("COMPLETE", None, "旧 old", "新 new", 1),
            ("SUPERSEDED", "superseded", "旧 old", "新 new", 1),
        ]
        assert not server.gone[0].is_set()

    session(scene, late, sending(*NEW))


def test_a_cancelled_connection_is_closed() -> None:
    """An owned cancel closes the connection at once and nothing is read after it, not even what had arrived."""

    async def scene(made: Session, server: Server) -> None:
        journal = await steps(made, "begin a;read a until_bytes=60;cancel a")
        await server.gone[0].wait()
        journal += await steps(made, "read a;commit a")
        assert of(journal[-3:], "result", "outcome", "state", "stored") == [
            (None, "CANCELLED", "interrupted", 0),
            (None, "CANCELLED", "interrupted", 0),
            ("refused", "CANCELLED", "interrupted", 0),
        ]
        assert len({line["consumed_bytes"] for line in journal[-4:]}) == 1

    session(scene, sending(*OLD))


def test_the_control_reads_on_after_a_cancel() -> None:
    """A naive cancel changes what the screen says, and nothing else."""

    async def scene(made: Session, server: Server) -> None:
        journal = await steps(made, "begin a;read a until_bytes=60;cancel a")
        assert not server.gone[0].is_set()
        journal += await steps(made, "read a;commit a")
        assert of(journal[-3:], "result", "outcome", "state", "stored") == [
            (None, None, "interrupted", 0),
            (None, "COMPLETE", "generating", 0),
            ("committed", "COMPLETE", "accepted", 1),
        ]

    session(scene, sending(*OLD), policy="naive")


def test_every_request_carries_the_history_as_it_is() -> None:
    """A question is asked behind what was accepted so far; after a clear behind nothing."""
    text = "begin a;read a;commit a;begin b;clear;begin c;read c;commit c;begin d"
    _, claim, server = lines(text, *[sending(*OLD)] * 4)
    question = {"role": "user", "content": "question"}
    answer = {"role": "assistant", "content": "旧 old"}
    assert server.messages == [
        [*BEFORE, question],
        [*BEFORE, question, answer, question],
        [question],
        [question, answer, question],
    ]
    assert claim["history"] == [question, answer]


DENIED = {
    "begin beside an active one": "begin a;begin b",
    "supersede of one that is accepted": "begin a;read a;commit a;supersede b of=a",
    "supersede of one that is superseded": "begin a;supersede c of=a;supersede b of=a",
    "retry of the active one": "begin a;retry b of=a",
    "retry of one that is accepted": "begin a;read a;commit a;retry b of=a",
    "retry of one that is superseded": "begin a;supersede c of=a;retry b of=a",
    "retry of one that is not the newest": "begin a;cancel a;retry c of=a;cancel c;retry b of=a",
    "retry after a clear": "begin a;cancel a;clear;retry b of=a",
    "of one that was denied": "begin a;begin c;supersede b of=c",
}


@pytest.mark.parametrize("name", DENIED)
def test_what_the_policy_does_not_allow(name: str) -> None:
    """A step in the wrong place is denied, asks nothing and changes nothing; so are all later ones of its attempt."""
    journal, _, server = lines(DENIED[name] + ";read b;commit b;cancel b", *[sending(*OLD)] * 3)
    before, denied = journal[-5], journal[-4:]
    assert of(denied, "result", "outcome", "consumed_bytes", "reads", "preview") == [("denied", None, 0, 0, "")] * 4
    shown = ("display", "state", "stored")
    assert of(denied, *shown) == of([before], *shown) * 4
    made = [line for line in journal if line["do"] in ("begin", "supersede", "retry") and line["result"] is None]
    assert len(server.messages) == len(made)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("begin a;cancel a;cancel a", "denied"),
        ("begin a;read a;commit a;cancel a", "denied"),
        ("begin a;clear;cancel a", "denied"),
        ("begin a;commit a;cancel a", "denied"),
        ("begin a;supersede b of=a;cancel a", "denied"),
        ("begin a;read a;cancel a", None),
    ],
)
def test_a_cancel_of_what_is_decided(text: str, result: str | None) -> None:
    """Only an attempt that is not decided can be cancelled, and a whole one can."""
    journal, _, _ = lines(text, sending(*OLD), sending(*NEW))
    assert journal[-1]["result"] == result


def test_a_commit_before_the_end() -> None:
    """A commit of the active attempt settles a turn that is not settled, and nothing is read any more."""
    journal, claim, _ = lines(f"begin a;read a until_bytes={len(OLD[0])};commit a;read a;commit a", sending(*OLD))
    assert of(journal[-3:], "result", "outcome", "display", "state") == [
        ("refused", "INCOMPLETE_STREAM", "旧", "interrupted"),
        (None, "INCOMPLETE_STREAM", "旧", "interrupted"),
        ("refused", "INCOMPLETE_STREAM", "旧", "interrupted"),
    ]
    assert len({line["consumed_bytes"] for line in journal[-4:]}) == 1
    assert (claim["outcome"], claim["history"]) == ("INCOMPLETE_STREAM", BEFORE)


def test_a_superseded_commit_settles_nothing() -> None:
    """An attempt that is told that it may not publish reads on, and its outcome stays SUPERSEDED."""
    journal, claim, _ = lines("begin a;supersede b of=a;commit a;read a;commit a", sending(*OLD), sending(*NEW))
    assert of(journal[-3:], "result", "outcome", "preview") == [
        ("superseded", "SUPERSEDED", ""),
        (None, "SUPERSEDED", "旧 old"),
        ("superseded", "SUPERSEDED", "旧 old"),
    ]
    assert claim["outcome"] is None  # of b, the newest, which has not read yet


def test_a_commit_again_after_a_clear() -> None:
    """What was accepted is said again after a clear, and is not written again."""
    journal, claim, _ = lines("begin a;read a;commit a;clear;commit a", sending(*OLD))
    assert of(journal[-2:], "result", "outcome", "stored", "display", "state") == [
        (None, None, 0, "", "idle"),
        ("committed", "COMPLETE", 0, "", "idle"),
    ]
    assert (claim["history"], claim["outcome"]) == ([], "COMPLETE")


def test_a_response_that_is_refused_at_its_head() -> None:
    """A begin whose response is no 200 has that outcome, no reads, and can be retried once it was refused."""

    async def busy(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")

    journal, claim, _ = lines("begin a;read a;commit a;retry b of=a;read b;commit b", busy, sending(*NEW))
    assert of(journal[:3], "result", "outcome", "reads") == [
        (None, "HTTP_503", 0),
        (None, "HTTP_503", 0),
        ("refused", "HTTP_503", 0),
    ]
    assert (journal[-1]["result"], claim["outcome"]) == ("committed", "COMPLETE")


def test_nobody_listens() -> None:
    """An attempt that gets no connection has an outcome like any other."""

    async def scene(made: Session, server: Server) -> None:
        place = made._place
        made._place = Place(**(vars(place) | {"base_url": "http://127.0.0.1:9/v1"}))
        (line,) = await steps(made, "begin a")
        assert (line["outcome"], line["reads"], line["state"]) == ("INCOMPLETE_STREAM", 0, "generating")

    session(scene)


@pytest.mark.parametrize("policy", ["owned", "naive"])
def test_a_read_that_times_out(policy: str) -> None:
    """A silence ends the read of that step with READ_TIMEOUT, whatever the policy."""

    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD % 1000 + OLD[0])

    async def scene(made: Session, _: Server) -> None:
        journal = await steps(made, "begin a;read a;commit a")
        assert of(journal[1:], "outcome", "preview", "stored") == [
            ("READ_TIMEOUT", "旧", 0),
            ("READ_TIMEOUT", "旧", 1 if policy == "naive" else 0),
        ]

    _, elapsed = session(scene, stall, policy=policy)
    assert elapsed >= 1


def test_retries_are_counted() -> None:
    """A task has as many retries as the contract says, and no more."""
    text = "begin a;cancel a;" + "".join(
        f"retry {new} of={old};cancel {new};" for old, new in zip("abcd", "bcde", strict=True)
    )
    journal, _, server = lines(text, *[sending(*OLD)] * 5)
    assert [line["result"] for line in journal if line["do"] == "retry"] == [None, None, None, "denied"]
    assert len(server.messages) == 4


NAIVE: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "an error takes the last answer out": (
        "begin b;read b;commit b;begin a;read a",
        [("新 new", "accepted", 1), ("", "generating", 1), ("旧", "interrupted", 0)],
    ),
    "an error takes nothing out where nothing is": (
        "begin b;begin a;read a;read a;commit a",
        [("旧", "interrupted", 0), ("旧", "generating", 0), ("旧", "accepted", 1)],
    ),
    "an error takes nothing out after a clear": (
        "begin b;read b;commit b;clear;begin a;read a",
        [("", "idle", 0), ("", "generating", 0), ("旧", "interrupted", 0)],
    ),
    "a commit of nothing": (
        "begin b;commit b;commit b",
        [("", "generating", 0), ("", "accepted", 1), ("", "accepted", 2)],
    ),
    "a begin beside a begin": (
        "begin b;read b until_bytes=70;begin a;read a until_bytes=70;read b;commit b",
        [("旧", "generating", 0), ("旧 new", "generating", 0), ("旧 new", "accepted", 1)],
    ),
}


@pytest.mark.parametrize("name", NAIVE)
def test_the_control(name: str) -> None:
    """The control shows every text on one screen, stores what it is told to, and lets an error take an answer out."""
    text, wanted = NAIVE[name]
    journal, _, _ = lines(text, sending(*NEW), sending(OLD[0], ERROR), policy="naive")
    assert of(journal[-3:], "display", "state", "stored") == wanted


def test_a_step_that_does_not_exist() -> None:
    """A step that no page names is a fault of whoever sent it."""

    async def scene(made: Session, _: Server) -> None:
        with pytest.raises(ValueError, match="no step 'publish'"):
            await made.step({"do": "publish", "attempt": "a"})

    session(scene)
