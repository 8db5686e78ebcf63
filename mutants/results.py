"""Keeps what became of each mutant, and reads the judgements in docs/mutants.md; knows nothing of tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .make import Key
from .tree import HOME, PLACE

KEPT = PLACE / "results.jsonl"
JUDGED = HOME / "docs" / "mutants.md"


class Judged(NamedTuple):
    """One row of the table of survivors."""

    file: str
    function: str
    line: str
    becomes: str
    judgement: str


def load() -> dict[Key, list[str]]:
    """Give what is known: the last word on each mutant."""
    if not KEPT.is_file():
        return {}
    rows = [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()]
    return {Key(*key): result for key, result in rows}


def keep(key: Key, result: Iterable[str]) -> None:
    """Add a result."""
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps([list(key), list(result)]) + "\n")


def forget(verdict: str, keys: set[Key]) -> None:
    """Drop the results of one kind, so that they are found again."""
    known = load()
    KEPT.unlink(missing_ok=True)
    for key, result in known.items():
        if key not in keys or result[0] != verdict:
            keep(key, result)


def judged(page: Path = JUDGED) -> list[Judged]:
    """Read the tables of survivors: rows of five cells, code between backquotes."""
    if not page.is_file():
        return []
    rows: list[Judged] = []
    file = ""
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("### `"):
            file = line.removeprefix("### `").removesuffix("`")
        cells = [cell.strip().replace("\\|", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")]
        if file and len(cells) == 4 and cells[0].startswith("`"):
            function, before, after, judgement = (cell.replace("\0", "|") for cell in cells)
            rows.append(Judged(file, function.strip("`"), unquote(before), unquote(after), judgement))
    return rows


def unquote(cell: str) -> str:
    """The code of a cell."""
    return cell.removeprefix("`` ").removesuffix(" ``") if cell.startswith("`` ") else cell.strip("`")


def quote(code: str) -> str:
    """Code as a cell."""
    escaped = code.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in code else f"`{escaped}`"


def summary(known: dict[Key, list[str]], keys: Iterable[Key]) -> str:
    """The counts, in one line."""
    counts = Counter(known[key][0] if key in known else "not tried" for key in keys)
    return f"{counts.total()} mutants: " + ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))


def unjudged(known: dict[Key, list[str]], keys: Iterable[Key]) -> list[Key]:
    """The survivors that the page does not judge."""
    rows = {row[:4] for row in judged()}
    return [key for key in keys if known.get(key, [""])[0] in ("survived", "not run") and key[:4] not in rows]
