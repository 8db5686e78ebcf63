"""Finds subjects by their folder and reads how each is started. It starts none of them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..cases import explained, read_toml
from ..names import PACKAGE_PREFIX, SUBJECTS, UsageError
from ..schema import check

STRICT = "strict"

# The capability of taking further turns before the claim of the last.
CONCURRENT = "concurrent"

# In a subject's `dialects`: those that it names itself when it is ready.
ANY_DIALECT = "*"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A subject as its folder describes it."""

    name: str
    title: str
    command: tuple[str, ...]
    history_owner: str
    contract_aware: bool
    dialects: frozenset[str]
    capabilities: frozenset[str]


def names(root: Path = SUBJECTS) -> list[str]:
    """List all subjects, controls included, sorted."""
    return sorted(path.parent.relative_to(root).as_posix() for path in root.rglob("subject.toml"))


def find(name: str, root: Path = SUBJECTS) -> Subject:
    """Read one subject; a name with a `/subject.toml` somewhere else is taken as a path."""
    path = root / name / "subject.toml"
    if name not in names(root):
        path = Path(name) / "subject.toml"
        if not path.is_file():
            known = ", ".join(names(root))
            raise UsageError(f"no subject {name!r} (there are: {known}; or name a folder that holds a subject.toml)")
    table = read_toml(path)
    ours = root in path.parents
    if not ours:  # ours were checked by a test; asking the schema in every run costs more than the run
        check(table, "subject", str(path))
    with explained(path, table, "subject"):
        return Subject(
            name=path.parent.relative_to(root).as_posix() if ours else path.parent.resolve().name,
            title=table["title"],
            command=_command(table["command"], path.parent),
            history_owner=table["history_owner"],
            contract_aware=table["contract_aware"],
            dialects=frozenset(table["dialects"]),
            capabilities=frozenset(table["capabilities"]),
        )


def _command(words: list[str], folder: Path) -> tuple[str, ...]:
    """Fill in {python}, {package} (how our islands are spelt for -m) and {here} (the folder)."""
    places: Mapping[str, str] = {"python": sys.executable, "package": PACKAGE_PREFIX, "here": str(folder.resolve())}
    for place, value in places.items():
        words = [word.replace(f"{{{place}}}", value) for word in words]
    return tuple(words)
