"""A terminal for tests: a real pseudo-terminal, and the few escape sequences that our own programs use.

It understands what it needs and refuses the rest, so that a sequence that came through from a model's text is
seen at once.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from client.terminal import cells

_TOKEN = re.compile(r"\x1b\[(\d*)([A-Za-z])|(\r\n|[^\x1b\x00-\x1f\x7f])")


class Screen:
    """What a terminal of so many cells shows, and every row that it was ever seen to show."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows = [""]
        self._at = 0
        self.seen: list[str] = []

    @property
    def rows(self) -> list[str]:
        """The rows as they are now, without those that are empty at the end."""
        return "\n".join(self._rows).rstrip("\n").split("\n")

    def write(self, text: str) -> None:
        """Take what a program wrote."""
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found, f"no sequence of ours: {text[at : at + 20]!r}"
            at = found.end()
            self._take(found)

    def _take(self, found: re.Match[str]) -> None:
        number, code, char = found.groups()
        if char == "\r\n":
            self.seen.append(self._rows[self._at])
            self._at += 1
            self._rows += [""] if self._at == len(self._rows) else []
        elif char:
            assert cells(self._rows[self._at] + char) <= self._width, f"wrapped: {self._rows[self._at]!r}"
            self._rows[self._at] += char
        elif code == "F":
            self._at -= int(number)
            assert self._at >= 0, "above the first row"
        elif code == "J":
            self._rows[self._at :] = [""]
        else:
            assert code == "m", f"no sequence of ours: {found[0]!r}"


class Terminal:
    """A program on a pseudo-terminal; use as a context manager."""

    def __init__(self, command: Sequence[str], folder: Path, bound_s: float, width: int = 100) -> None:
        self._until_s = time.monotonic() + bound_s
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=env,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whatever the tests were started from
        )
        os.close(theirs)
        self.written = ""
        self._cut = b""  # the first bytes of a character that is not all here
        self.screen = Screen(width)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self._ours)

    def wait_for(self, is_there: Callable[[str], bool]) -> None:
        """Read until what was written is as wanted."""
        while not is_there(self.written):
            assert self._read(), f"ended with {self.written!r}"

    def finish(self) -> tuple[int, str]:
        """Read to the end; give exit code and stderr."""
        while self._read():
            pass
        _, error = self.process.communicate(timeout=max(self._until_s - time.monotonic(), 1))
        self.screen.write(self.written)
        return self.process.returncode, error.decode()

    def _read(self) -> bool:
        left_s = self._until_s - time.monotonic()
        assert select.select([self._ours], [], [], max(left_s, 0))[0], f"nothing more after {self.written!r}"
        try:
            data = self._cut + os.read(self._ours, 65536)
        except OSError:  # how Linux says that nobody has the other end any more
            return False
        text = data.decode("utf-8", "ignore")
        self._cut = data[len(text.encode()) :]
        self.written += text
        return bool(data)
