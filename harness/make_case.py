"""Makes a new fault from an existing case, in one step.

Copy, then any of: cut, delete, insert, replace, another field of case.toml, another ending. Of a case
with several exchanges everything is copied, and the first is the one that is changed. The new case is
born with a label that states nothing: what is right about it is for a person to write.
tomlkit edits case.toml in place, so that comments and order survive.
"""

import contextlib
import shutil
import tomllib
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit

from .cases import Case, check_case, load_case, read_toml
from .names import UsageError, is_name
from .schema import check

# An edit takes the bytes of the body and gives the new ones, or refuses.
Edit = Callable[[bytes], bytes]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to change: edits of the body in order, fields of case.toml, the ending."""

    edits: Sequence[Edit] = ()
    fields: Sequence[tuple[str, str]] = field(default=())
    title: str | None = None


def cut(at: int) -> Edit:
    """Keep the first `at` bytes."""

    def edit(body: bytes) -> bytes:
        _inside(at, body)
        return body[:at]

    return edit


def delete(start: int, end: int) -> Edit:
    """Leave body[start:end] out; negative offsets count from the end."""

    def edit(body: bytes) -> bytes:
        low, high, _ = slice(start, end).indices(len(body))
        if low >= high:
            raise UsageError(f"--delete {start}:{end}: nothing there in a body of {len(body)} bytes")
        return body[:low] + body[high:]

    return edit


def splice(at: int, data: bytes) -> Edit:
    """Insert bytes before offset `at`."""

    def edit(body: bytes) -> bytes:
        _inside(at, body)
        return body[:at] + data + body[at:]

    return edit


def replace(old: bytes, new: bytes) -> Edit:
    """Replace the only occurrence of `old`."""

    def edit(body: bytes) -> bytes:
        if body.count(old) != 1:
            raise UsageError(f"--replace: {old!r} occurs {body.count(old)} times in the body, needs to be once")
        return body.replace(old, new)

    return edit


def _inside(at: int, body: bytes) -> None:
    if not 0 <= at <= len(body):
        raise UsageError(f"byte {at} is outside the body of {len(body)} bytes")


def make_case(root: Path, source: str, target: str, recipe: Recipe) -> Path:
    """Make the case `target` (suite/name) from `source`; give its folder."""
    old, new = _folder(root, source), _folder(root, target)
    if not (old / "case.toml").is_file():
        raise UsageError(f"{old}: no such case")
    if new.exists():
        raise UsageError(f"{new}: exists already; a case's name is its permanent id")
    exchange = load_case(old).exchanges[0]
    body = exchange.body
    for edit in recipe.edits:
        body = edit(body)
    document = tomlkit.parse((old / "case.toml").read_text(encoding="utf-8"))
    _fit_script(document["exchange"][0], len(body), exchange.chunk_ends)
    document["title"] = recipe.title or f"{document['title']} (changed: say how)"
    for key, value in recipe.fields:
        _set(document, key, value)
    _write(new, old, document, body)
    return new


def _folder(root: Path, name: str) -> Path:
    suite, _, case = name.partition("/")
    if not is_name(suite) or not is_name(case) or suite == "contracts":
        raise UsageError(f"{name!r} is no case: write suite/name, each of [a-z0-9][a-z0-9._-]*")
    return root / suite / case


def _fit_script(exchange: Any, size: int, chunk_ends: Sequence[int]) -> None:
    """Drop chunk ends behind the new end, and sends that no longer add up."""
    if chunk_ends:
        exchange["chunk_ends"] = [end for end in chunk_ends if end < size]
    steps = exchange.get("script", [])
    if sum(step.get("send_bytes", 0) for step in steps) not in (0, size):
        exchange["script"] = [step for step in steps if "wait_ms" in step]


def _set(document: Any, key: str, value: str) -> None:
    """Set a dotted key of case.toml; `exchange.` means the first exchange."""
    *path, last = key.split(".")
    table = document
    for part in path:
        table = table.get(part) if hasattr(table, "get") else None
        table = table[0] if isinstance(table, list) else table
        if not isinstance(table, MutableMapping):
            raise UsageError(f"--set {key}: no table {part!r} in case.toml")
    try:
        table[last] = tomlkit.value(value)
    except ValueError:
        table[last] = value


def _write(new: Path, old: Path, document: Any, body: bytes) -> None:
    """Write the case, and its suite where that is new; leave nothing behind that cannot be played."""
    text = tomlkit.dumps(document)
    check(tomllib.loads(text), "case", str(new / "case.toml"))
    first, *others = [str(exchange["body"]) for exchange in document["exchange"]]
    bodies = {name: (old / name).read_bytes() for name in others} | {first: body}
    suite, source_suite = new.parent / "suite.toml", old.parent
    contracts = read_toml(suite if suite.is_file() else source_suite / "suite.toml")["contracts"]
    new.mkdir(parents=True)
    try:
        (new / "case.toml").write_text(text, encoding="utf-8")
        for name, data in bodies.items():
            (new / name).write_bytes(data)
        case = check_case(new)
        (new / "label.toml").write_text(_empty_label(contracts, case), encoding="utf-8")
    except UsageError:
        shutil.rmtree(new)
        with contextlib.suppress(OSError):  # the suite's folder, where it was made for this case
            new.parent.rmdir()
        raise
    if not suite.is_file():
        suite.write_text(_new_suite(source_suite / "suite.toml", suite.parent.name), "utf-8")


def _empty_label(contracts: Sequence[str], case: Case) -> str:
    """Name what a person has to state, and state nothing."""
    lines = ['why = ""', 'authority = ""  # spec, provider-doc, capture or judgement', 'url = ""', "date = 2000-01-01"]
    stated = ['# outcome = ""', '# preview = ""', "# committed = false"]
    if case.steps:
        attempts = [f'# attempt.{step.attempt} = {{ outcome = "", decision = "" }}' for step in case.steps if step.asks]
        stated = ["# stored = []", "# writes = 0", "# dispatched = 0", '# display = ""', '# state = ""', *attempts]
    for name in contracts:
        lines += ["", f'[contract."{name}"]', *stated]
    return "\n".join(lines) + "\n"


def _new_suite(source: Path, name: str) -> str:
    """Write the suite.toml of a suite that begins with one case: conversation and contracts of the source."""
    document: Any = tomlkit.parse(source.read_text(encoding="utf-8"))
    document["name"] = name
    document["version"] = "1"
    first = document["changelog"][0]
    del document["changelog"][1:]
    first["version"], first["text"] = "1", f"Begun with a case of {source.parent.name}."
    return tomlkit.dumps(document)
