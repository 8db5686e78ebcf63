"""What made a run: versions, and a fingerprint of every source file with line ends normalised.

Provenance is inside the archive's manifest but outside its stable root: the same bytes judged by
the same contract give the same stable root on any machine and any Python.
"""

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .cases import digest
from .names import HOME

VERSION = "0.1.0"

_PACKAGES = ("aiohttp", "h11", "jsonschema")
_ISLANDS = ("client", "harness", "plots")
_SUFFIXES = frozenset({".py", ".toml", ".json"})


def provenance(ready: Mapping[str, Any]) -> dict[str, object]:
    """Give the provenance record of a run with the subject that said `ready`."""
    keys = ("name", "version", "language", "dialects", "capabilities")
    return {
        "schema": "endmark.provenance/1",
        "endmark": VERSION,
        "python": platform.python_version(),
        "platform": platform.system(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "subject": {key: ready[key] for key in keys},
        "sources": {name: digest(_normalised(path)) for name, path in source_files(HOME)},
    }


def source_files(home: Path) -> Iterator[tuple[str, Path]]:
    """Give the source files of the islands below a checkout, as (relative path, path)."""
    for name in ("audit.py", "run.py"):
        if (home / name).is_file():
            yield name, home / name
    for island in _ISLANDS:
        for path in sorted((home / island).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                yield path.relative_to(home).as_posix(), path


def _normalised(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # not cheap, and asked for beside the trials

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
