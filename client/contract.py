"""Reads a contract: which evidence, which reasons and which sizes a turn may have.

A contract is a TOML file in `cases/contracts/`, neutral ground between client and auditor; each
reads it with its own code. It is an allow-list: what it does not name is not accepted. This file
knows how a contract is spelt, not how a turn is judged by it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from .strict_json import MAX_DEPTH

CONTRACTS = Path(__file__).resolve().parent.parent / "cases" / "contracts"

REASON_CLASSES = frozenset({"answer", "tools", "truncated", "filtered", "paused", "error"})
HISTORY_RULES = frozenset({"append", "append-marked", "withhold", "caller"})
RESULTS = frozenset({"answer", "tools"})
FRAMINGS = frozenset({"sse", "ndjson", "eventstream"})
POLICIES = frozenset({"owned", "naive"})

# Where real software differs, and the values that each switch has (docs/judging.md section 1).
SWITCHES: Mapping[str, frozenset[str]] = {
    "finish_without_terminal": frozenset({"incomplete", "complete"}),
    "terminal_without_finish": frozenset({"protocol", "complete"}),
    "repeated_finish": frozenset({"protocol", "same"}),
    "late_filter": frozenset({"protocol", "filtered"}),
    "last_event": frozenset({"discard", "dispatch"}),
    "invalid_utf8": frozenset({"refuse", "replace"}),
    "content_type": frozenset({"refuse", "ignore"}),
    "empty_completion": frozenset({"refuse", "accept"}),
    "usage": frozenset({"optional", "required"}),
    "unknown_event": frozenset({"protocol", "tolerate"}),
    "candidates": frozenset({"one", "many"}),
    "close_delimited": frozenset({"incomplete", "complete"}),
}


class ContractError(ValueError):
    """A contract that cannot be used, by the fault of whoever wrote or named it."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a turn may hold; exactly the limit passes.

    Lines, events, input and output count UTF-16 code units, as the original experiment did.
    """

    line_utf16: int
    event_utf16: int
    input_utf16: int
    output_utf16: int
    events: int
    json_depth: int
    deadline_ms: int


@dataclass(frozen=True, kw_only=True)
class DialectRules:
    """What one dialect needs for an accepted turn, and what its raw terminal reasons mean."""

    media_type: str
    framing: str
    terminal: str
    results: frozenset[str]
    reasons: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class AttemptRules:
    """Who may publish (docs/attempts.md, A2 and A3), and how many retries a task has."""

    policy: str = "owned"
    retries: int = 3


@dataclass(frozen=True, kw_only=True)
class Contract:
    """One version of the acceptance rules, whole."""

    name: str
    title: str
    limits: Limits
    switches: Mapping[str, str]
    dialects: Mapping[str, DialectRules]
    history: Mapping[str, str]
    attempts: AttemptRules = AttemptRules()

    @property
    def utf8_errors(self) -> str:
        """How Python's decoders name what this contract does with bytes that are no UTF-8."""
        return "strict" if self.switches["invalid_utf8"] == "refuse" else "replace"


def load(name: str, folder: Path = CONTRACTS) -> Contract:
    """Load the contract NAME/N from its file NAME-N.toml; raise ContractError if that fails."""
    path = folder / f"{name.replace('/', '-')}.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ContractError(f"{path}: contract {name!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ContractError(f"{path}: not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise ContractError(f"{path}: {error}") from error
    contract = _Table(path, table).contract()
    if contract.name != name:
        raise ContractError(f"{path}: name is {contract.name!r}, expected {name!r}")
    return contract


class _Table:
    """One TOML table, taken key by key; what is left over at the end is an error."""

    def __init__(self, path: Path, table: Mapping[str, object], prefix: str = "") -> None:
        self._path, self._table, self._prefix = path, dict(table), prefix

    def contract(self) -> Contract:
        contract = Contract(
            name=self._text("name"),
            title=self._text("title"),
            limits=self._sub("limits")._limits(),
            switches=self._sub("switch")._switches(),
            dialects={name: self._sub("dialect", name)._dialect() for name in self._names("dialect")},
            history=self._rules("history"),
            attempts=self._attempts(),
        )
        self._done("dialect")
        return contract

    def _limits(self) -> Limits:
        limits = Limits(**{field.name: self._count(field.name) for field in fields(Limits)})
        if limits.json_depth > MAX_DEPTH:
            raise self._error("json_depth", f"is {limits.json_depth}, at most {MAX_DEPTH} is allowed")
        self._done()
        return limits

    def _switches(self) -> Mapping[str, str]:
        switches = {name: self._word(name, values) for name, values in SWITCHES.items()}
        self._done()
        return switches

    def _rules(self, key: str) -> Mapping[str, str]:
        table = self._sub(key)
        rules = {name: table._word(name, HISTORY_RULES) for name in sorted(REASON_CLASSES)}
        table._done()
        return rules

    def _attempts(self) -> AttemptRules:
        if "attempts" not in self._table:
            return AttemptRules()
        table = self._sub("attempts")
        rules = AttemptRules(
            policy=table._word("policy", POLICIES) if "policy" in table._table else AttemptRules.policy,
            retries=table._count("retries", least=0) if "retries" in table._table else AttemptRules.retries,
        )
        table._done()
        return rules

    def _set(self, key: str, allowed: frozenset[str]) -> frozenset[str]:
        values = self._take(key, list)
        if not isinstance(values, list) or not values or not all(value in allowed for value in values):
            raise self._error(key, f"is {values!r}, allowed are {', '.join(sorted(allowed))}")
        return frozenset(values)

    def _dialect(self) -> DialectRules:
        rules = DialectRules(
            media_type=self._text("media_type"),
            framing=self._word("framing", FRAMINGS),
            terminal=self._text("terminal"),
            results=self._set("results", RESULTS),
            reasons=self._words("reasons", REASON_CLASSES),
        )
        self._done()
        return rules

    def _take(self, key: str, kind: type) -> object:
        value = self._table.pop(key, None)
        if type(value) is not kind:
            raise self._error(key, f"needs a {kind.__name__}, has {value!r}")
        return value

    def _text(self, key: str) -> str:
        return str(self._take(key, str))

    def _count(self, key: str, least: int = 1) -> int:
        value = self._take(key, int)
        if not isinstance(value, int) or value < least:
            raise self._error(key, f"needs an integer of at least {least}, has {value!r}")
        return value

    def _word(self, key: str, allowed: frozenset[str]) -> str:
        value = self._text(key)
        if value not in allowed:
            raise self._error(key, f"is {value!r}, allowed are {', '.join(sorted(allowed))}")
        return value

    def _words(self, key: str, allowed: frozenset[str]) -> Mapping[str, str]:
        sub = self._sub(key)
        return {name: sub._word(name, allowed) for name in list(sub._table)}

    def _names(self, key: str) -> list[str]:
        table = self._table.get(key)
        return list(table) if isinstance(table, dict) else []

    def _sub(self, *keys: str) -> "_Table":
        table: object = self._table
        for key in keys:
            table = table.get(key) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            raise self._error(".".join(keys), "needs a table")
        if len(keys) == 1:
            self._table.pop(keys[0])
        return _Table(self._path, table, f"{self._prefix}{'.'.join(keys)}.")

    def _done(self, *but: str) -> None:
        for key in self._table:
            if key not in but:
                raise self._error(key, "is not a key of a contract")

    def _error(self, key: str, what: str) -> ContractError:
        return ContractError(f"{self._path}: {self._prefix}{key} {what}")
