"""Writes one run's evidence, and seals it: a BagIt-shaped directory (RFC 8493).

    https://www.rfc-editor.org/rfc/rfc8493#section-2

The directory must not exist before. Everything is hashed as it is written; the seal
(`tagmanifest-sha256.txt`) is written last and put in place by a rename, so that a run which was
interrupted never looks finished. This file knows the layout and nothing of what the records mean.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from .canonical import line
from .cases import MANIFEST, digest
from .names import UsageError

SEAL = "tagmanifest-sha256.txt"
SHARD_LINES = 10_000

BAGIT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
BAG_INFO = b"Bag-Software-Agent: endmark\n"

_STABLE = ("data/suite/", "data/records/", "data/blobs/")


class Archive:
    """An archive that is being written."""

    def __init__(self, folder: Path) -> None:
        """Create the directory; raise UsageError where it is there already or cannot be made."""
        self.folder = folder
        self._hashes: dict[str, str] = {}
        self._is_sealed = False
        if folder.is_symlink() or folder.exists():
            raise UsageError(f"{folder}: exists already; name a new directory")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o755)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be made: {error.strerror}") from error

    def write(self, path: str, data: bytes) -> None:
        """Write one new file below the archive; its path is relative and has forward slashes."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _put(target, data)
        self._hashes[path] = digest(data)

    def blob(self, data: bytes) -> dict[str, int | str]:
        """Keep raw bytes under their hash, once, and give the reference to them."""
        name = digest(data)
        path = f"data/blobs/{name}"
        if path not in self._hashes:
            self.write(path, data)
        return {"bytes": len(data), "sha256": name}

    def records(self, folder: str, values: Iterable[object]) -> None:
        """Write record lines into `<folder>/trials-NNNNN.jsonl`, 10,000 a file."""
        for number, shard in enumerate(_shards(values)):
            self.write(f"{folder}/trials-{number:05d}.jsonl", b"".join(shard))

    def copy_suite(self, folder: Path, name: str, wanted: Iterable[str]) -> None:
        """Copy a suite's manifest and suite.toml whole, and the cases that are used."""
        prefixes = tuple(f"{case}/" for case in wanted)
        for path in sorted(folder.rglob("*")):
            below = path.relative_to(folder).as_posix()
            if path.is_file() and (below in (MANIFEST, "suite.toml") or below.startswith(prefixes)):
                self.write(f"data/suite/{name}/{below}", path.read_bytes())

    def seal(self) -> tuple[str, str]:
        """Write the manifests, the seal last; give the stable root and the full root."""
        manifest = "".join(f"{self._hashes[path]}  {path}\n" for path in sorted(self._hashes, key=str.encode))
        tags = {"bag-info.txt": BAG_INFO, "bagit.txt": BAGIT, MANIFEST: manifest.encode()}
        for name, data in tags.items():
            _put(self.folder / name, data)
        seal = "".join(f"{digest(tags[name])}  {name}\n" for name in sorted(tags)).encode()
        part = self.folder / f"{SEAL}.part"
        _put(part, seal)
        os.rename(part, self.folder / SEAL)
        self._is_sealed = True
        return stable_root(manifest), digest(seal)

    def discard(self) -> None:
        """Remove an archive that was not sealed; one that was is evidence, whatever came after."""
        if not self._is_sealed:
            shutil.rmtree(self.folder, ignore_errors=True)


def _put(path: Path, data: bytes) -> None:
    """Write one new file; an OSError says which, where Python leaves that out (a full disk)."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def stable_root(manifest: str) -> str:
    """Hash the manifest lines that only case, contract and client determine."""
    lines = manifest.splitlines(keepends=True)
    return digest("".join(entry for entry in lines if entry[66:].startswith(_STABLE)).encode())


def _shards(values: Iterable[object]) -> Iterator[list[bytes]]:
    shard: list[bytes] = []
    for value in values:
        shard.append(line(value))
        if len(shard) == SHARD_LINES:
            yield shard
            shard = []
    if shard:
        yield shard
