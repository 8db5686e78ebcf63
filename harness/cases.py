"""Finds and reads cases: folders of TOML and raw bytes, frozen by a manifest.

A case is `cases/<suite>/<fault>/`; discovery is by folder and nothing is registered. What is read
here is what a run needs: script and bytes. Labels are hashed like every other file, but never
opened: the laboratory does not know what is right.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .names import UsageError, is_name
from .schema import check
from .sessions import SessionStep, check_session

MANIFEST = "manifest-sha256.txt"

# The folder beside the suites that holds the contracts.
CONTRACTS = "contracts"

# The framings with which an ending can be seen; behind a whole Content-Length nobody looks.
_PLAYABLE = {
    "bad-chunk": ("chunked",),
    "short-length": ("content-length",),
    "reset": ("chunked", "close"),
    "stall": ("chunked", "close"),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a script: send so many body bytes, or wait; exactly one of the two."""

    send_bytes: int | None = None
    wait_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What the server does with one request."""

    status: int
    content_type: str
    framing: str
    chunk_ends: tuple[int, ...]
    body: bytes
    script: tuple[Step, ...]
    ending: str

    @property
    def silences_ms(self) -> list[int]:
        """How long the server is silent before each send and before its ending: waits in a row are one silence."""
        found = [0]
        for step in self.script:
            if step.wait_ms is None:
                found.append(0)
            else:
                found[-1] += step.wait_ms
        return found


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case without its label."""

    suite: str
    name: str
    title: str
    dialect: str
    conditions: Mapping[str, int]
    exchanges: tuple[Exchange, ...]
    steps: tuple[SessionStep, ...] = ()  # none: one attempt, asked and read to its outcome

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities without which a subject cannot take this case."""
        silences = [ms for exchange in self.exchanges for ms in exchange.silences_ms]
        silent = max(silences, default=0) > self.conditions["read_timeout_ms"]
        stalls = any(exchange.ending == "stall" for exchange in self.exchanges)
        found = {"cancel"} if "cancel_after_utf16" in self.conditions else set()
        found |= {"steps"} if self.steps else set()
        return frozenset(found | ({"read-timeout"} if silent or stalls else set()))


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite: what all its cases share, and the cases that were asked for."""

    name: str
    folder: Path
    contracts: tuple[str, ...]
    history: tuple[Mapping[str, str], ...]
    question: str
    cases: tuple[Case, ...]
    size: int  # how many cases the suite has in all


def suite_names(root: Path) -> list[str]:
    """List the suites below a folder of cases, sorted."""
    try:
        return sorted(path.parent.name for path in root.glob("*/suite.toml"))
    except OSError as error:
        raise UsageError(f"{root}: cannot be read: {error.strerror}") from error


def case_names(folder: Path) -> list[str]:
    """List the cases of a suite's folder, sorted."""
    return sorted(path.parent.name for path in folder.glob("*/case.toml"))


def load_suite(root: Path, name: str, pattern: str = "*") -> Suite:
    """Read a frozen suite and those of its cases whose name matches; refuse a changed byte."""
    folder = root / name
    if not is_name(name) or not (folder / "suite.toml").is_file():
        known = ", ".join(suite_names(root)) or "none"
        raise UsageError(f"{root}: no suite {name!r} (there are: {known})")
    frozen = _frozen(folder)
    names = sorted({path.partition("/")[0] for path in frozen if "/" in path} | set(case_names(folder)))
    wanted = [case for case in names if fnmatchcase(case, pattern)]
    _check_frozen(folder, wanted, frozen)
    path = folder / "suite.toml"
    table = read_toml(path)
    with explained(path, table, "suite"):
        return Suite(
            name=name,
            folder=folder,
            contracts=tuple(table["contracts"]),
            history=tuple(table["conversation"]["history"]),
            question=table["conversation"]["question"],
            cases=tuple(load_case(folder / case) for case in wanted),
            size=len(names),
        )


def load_case(folder: Path) -> Case:
    """Read one case; raise UsageError that names file and key for anything that is not right."""
    path = folder / "case.toml"
    table = read_toml(path)
    with explained(path, table, "case"):
        return _case(path, table)


def check_case(folder: Path) -> Case:
    """Read one case that is not frozen: against the schema as well, so that no key is unknown."""
    path = folder / "case.toml"
    check(read_toml(path), "case", str(path))
    return load_case(folder)


@contextmanager
def explained(path: Path, table: Mapping[str, Any], schema: str) -> Iterator[None]:
    """Let the schema say what is wrong with a table that cannot be read.

    A frozen table was checked when it was frozen; asking the schema again in every run would cost
    more than the run.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError):
        check(table, schema, str(path))
        raise


def _case(path: Path, table: Mapping[str, Any]) -> Case:
    client = table["client"]
    conditions = {
        "read_cap_bytes": client["read_cap_bytes"],
        "connect_timeout_ms": client.get("connect_timeout_ms", 1000),
        "read_timeout_ms": client.get("read_timeout_ms", 1000),
    }
    if "cancel_after_utf16" in client:
        conditions["cancel_after_utf16"] = client["cancel_after_utf16"]
    case = Case(
        suite=path.parent.parent.name,
        name=path.parent.name,
        title=table["title"],
        dialect=table["dialect"],
        conditions=conditions,
        exchanges=tuple(_exchange(path, item) for item in table["exchange"]),
        steps=tuple(SessionStep(**step) for step in table.get("step", ())),
    )
    for number, exchange in enumerate(case.exchanges, 1):
        _check_exchange(f"{path}: exchange {number}", exchange, conditions["read_timeout_ms"])
    if case.steps:
        check_session(str(path), case)
    return case


def _exchange(path: Path, item: Mapping[str, Any]) -> Exchange:
    if not is_name(item["body"]):
        raise UsageError(f"{path}: exchange.body: {item['body']!r} is no file name of a case")
    return Exchange(
        status=item.get("status", 200),
        content_type=item.get("content_type", "text/event-stream"),
        framing=item.get("framing", "chunked"),
        chunk_ends=tuple(item.get("chunk_ends", ())),
        body=_read(path.parent / item["body"]),
        script=tuple(Step(**step) for step in item.get("script", ())),
        ending=item.get("ending", "complete"),
    )


def _check_exchange(where: str, exchange: Exchange, read_timeout_ms: int) -> None:
    size, ends = len(exchange.body), exchange.chunk_ends
    if any(step.send_bytes for step in exchange.script):
        sent = sum(step.send_bytes or 0 for step in exchange.script)
        if sent != size:
            raise UsageError(f"{where}: script sends {sent} bytes, the body has {size}")
    if ends and exchange.framing != "chunked":
        raise UsageError(f'{where}: chunk_ends needs framing "chunked"')
    if list(ends) != sorted(set(ends)) or (ends and not 0 < ends[0] <= ends[-1] < size):
        raise UsageError(f"{where}: chunk_ends must rise strictly, inside the body's {size} bytes")
    playable = _PLAYABLE.get(exchange.ending)
    if playable and exchange.framing not in playable:
        raise UsageError(f"{where}: ending {exchange.ending!r} needs framing {' or '.join(map(repr, playable))}")
    for silence_ms in exchange.silences_ms:
        if read_timeout_ms / 2 < silence_ms < read_timeout_ms * 2:
            raise UsageError(
                f"{where}: a wait of {silence_ms} ms is too near read_timeout_ms = {read_timeout_ms}; "
                "take at most half of it or at least twice"
            )


def read_toml(path: Path) -> dict[str, Any]:
    """Read one TOML file; raise UsageError that names the file and the line."""
    try:
        return tomllib.loads(_read(path).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


# -- freezing


def suite_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Give every file of a suite but its manifest, as (path below the folder, path), sorted by bytes."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    found.pop(MANIFEST, None)
    yield from sorted(found.items(), key=lambda item: item[0].encode())


def manifest_text(folder: Path) -> str:
    """Write the manifest that the folder as it is now would have."""
    return "".join(f"{digest(_read(path))}  {name}\n" for name, path in suite_files(folder))


def digest(data: bytes) -> str:
    """Give the sha256 of bytes as lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def _frozen(folder: Path) -> dict[str, str]:
    """Read a suite's manifest, as path → sha256."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"{folder}: not frozen: label every case, then `run.py case freeze {folder.name}`")
    frozen = {}
    for number, line in enumerate(_read(path).decode("utf-8", "replace").splitlines(), 1):
        found, gap, name = line.partition("  ")
        if not gap:
            raise UsageError(f"{path}: line {number} is no `<sha256>  <path>`; undo the change, or freeze on purpose")
        frozen[name] = found
    return frozen


def _check_frozen(folder: Path, cases: list[str], frozen: Mapping[str, str]) -> None:
    """Refuse a suite that is not as it was frozen, in the files that these cases use."""
    used = {"suite.toml"} | {name for name, _ in suite_files(folder) if name.partition("/")[0] in cases}
    gone = {name for name in frozen if name.partition("/")[0] in cases or name == "suite.toml"} - used
    for name in sorted(used | gone):
        _check_file(folder, name, frozen.get(name))


def check_contracts(root: Path, names: Iterable[str]) -> None:
    """Refuse contracts that are missing, or not as they were frozen."""
    folder = root / CONTRACTS
    frozen = _frozen(folder)
    for name in sorted(set(names)):
        path = folder / f"{name.replace('/', '-')}.toml"
        if digest(_read(path)) != frozen.get(path.name):
            check(read_toml(path), "contract", str(path))  # says what is wrong with it, where that is the reason
            raise UsageError(f"{path}: is not as it was frozen; undo the change, or `run.py case freeze {CONTRACTS}`")


def _check_file(folder: Path, name: str, frozen: str | None) -> None:
    path = folder / name
    found = digest(_read(path))
    if found == frozen:
        return
    if path.name == "case.toml":
        check_case(path.parent)  # says what is wrong with it, where that is the reason
    what = "is not in the manifest" if frozen is None else f"has sha256 {found[:12]}…, frozen is {frozen[:12]}…"
    raise UsageError(f"{path}: {what}; undo the change, or freeze on purpose: `run.py case freeze {folder.name}`")
