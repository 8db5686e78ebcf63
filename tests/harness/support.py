"""What the tests of the laboratory share: exchanges and cases, a raw HTTP client, throw-away subjects.

The client here works on bare sockets on purpose: it sees the bytes as they were on the wire, and
how the connection ended.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from harness.cases import Case, Exchange, Step
from harness.names import CASES, HOME
from harness.subjects.registry import Subject

# Bounds every wait of a test; nothing that is right comes near it.
BOUND_S = 20.0

T = TypeVar("T")

FRAMINGS = ("chunked", "content-length", "close")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine within the bound."""

    async def bounded() -> T:
        async with asyncio.timeout(BOUND_S):
            return await work

    return asyncio.run(bounded())


def an_exchange(body: bytes = b"", **changes: Any) -> Exchange:
    """Give an exchange as case.toml has it by default, but for the changes."""
    fields: dict[str, Any] = {
        "status": 200,
        "content_type": "text/event-stream",
        "framing": "chunked",
        "chunk_ends": (),
        "body": body,
        "script": (),
        "ending": "complete",
    }
    return Exchange(**fields | changes)


def a_case(*exchanges: Exchange) -> Case:
    """Give a case around exchanges."""
    return Case(
        suite="suite",
        name="case",
        title="a case",
        dialect="openai-chat",
        conditions={"read_cap_bytes": 7, "connect_timeout_ms": 1000, "read_timeout_ms": 1000},
        exchanges=exchanges,
    )


def sends(*sizes: int) -> tuple[Step, ...]:
    """Give a script of sends."""
    return tuple(Step(send_bytes=size) for size in sizes)


# -- a client on a bare socket


def post(port: int, path: str, body: bytes = b"{}", *headers: str, host: str | None = None) -> bytes:
    """Spell a request as a subject would send it."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", f"Content-Length: {len(body)}", *headers]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body


class Connection:
    """One connection to the server; use as an async context manager."""

    def __init__(self, port: int, receive_buffer_bytes: int | None = None) -> None:
        self._port = port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._socket.setblocking(False)

    async def __aenter__(self) -> "Connection":
        await asyncio.get_running_loop().sock_connect(self._socket, ("127.0.0.1", self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def end_of_sending(self) -> None:
        """Send a FIN, and go on reading."""
        self._socket.shutdown(socket.SHUT_WR)

    async def exactly(self, size: int) -> bytes:
        """Read so many bytes."""
        data = b""
        while len(data) < size:
            more = await asyncio.get_running_loop().sock_recv(self._socket, size - len(data))
            assert more, f"the end came after {data!r}"
            data += more
        return data

    async def rest(self) -> tuple[bytes, str]:
        """Read to the end; say how it ended, `fin` or `reset`."""
        data = bytearray()
        while True:
            try:
                more = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
            except ConnectionResetError:
                return bytes(data), "reset"
            if not more:
                return bytes(data), "fin"
            data += more


async def ask(port: int, request: bytes) -> tuple[bytes, str]:
    """Send one request on its own connection; give all that came, and how it ended."""
    async with Connection(port) as connection:
        await connection.send(request)
        return await connection.rest()


# -- throw-away subjects

_PREAMBLE = """
import json, os, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)

def ready(**changes):
    hear()
    message = dict(kind="ready", protocol="endmark.subject/1", name="throw-away", version="1", language="Python",
                   dialects=["openai-chat"], capabilities=["cancel", "read-cap", "read-timeout"])
    say(**message | changes)

def claim(turn, **changes):
    message = dict(kind="claim", trial=turn["trial"], history=turn["history"], preview="", raised=None, hints={})
    say(**message | changes)
"""


def write_subject(folder: Path, program: str, name: str = "throw-away") -> Path:
    """Write a subject that runs a program, with `ready`, `hear`, `say` and `claim` at hand."""
    home = folder / name
    home.mkdir(parents=True)
    (home / "program.py").write_text(_PREAMBLE + program, encoding="utf-8")
    (home / "subject.toml").write_text(
        'title = "throw-away"\ncommand = ["{python}", "{here}/program.py"]\nhistory_owner = "library"\n'
        'contract_aware = false\ndialects = ["openai-chat"]\ncapabilities = ["cancel", "read-cap", "read-timeout"]\n',
        encoding="utf-8",
    )
    return home


def a_subject(folder: Path, program: str) -> Subject:
    """Write a subject, and read it as the registry does."""
    from harness.subjects.registry import find

    return find(str(write_subject(folder, program)))


# -- folders of cases, and the command line


def copy_cases(folder: Path) -> Path:
    """Copy the committed cases, to be changed."""
    return Path(shutil.copytree(CASES, folder / "cases"))


def edit(path: Path, old: str, new: str) -> None:
    """Replace the only occurrence of a text in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def command(*words: object) -> list[str]:
    """Give the command line of run.py."""
    return [sys.executable, "run.py", *map(str, words)]


def run_py(
    *words: object, preexec: Callable[[], None] | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python run.py ...` from the checkout."""
    return subprocess.run(
        command(*words),
        cwd=HOME,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        preexec_fn=preexec,
        env=os.environ | (env or {}),
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Assert that a command was refused in one line on stderr with exit code 2; give the line."""
    assert done.returncode == 2, done
    assert done.stderr.startswith("endmark: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stdout == ""
    return done.stderr


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def tree(folder: Path) -> dict[str, bytes]:
    """Give every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def untouched(folder: Path) -> dict[Path, tuple[int, ...]]:
    """Give what would change if anyone wrote below a folder; reading it changes nothing of this."""
    found = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    return {
        path: (s.st_mode, s.st_ino, s.st_nlink, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in found.items()
    }
