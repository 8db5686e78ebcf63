"""The court: works out every verdict of an Endmark archive again, from the raw bytes alone.

    python3 -I -S audit.py DIR [--json] [--trace CASE] [--source CHECKOUT]
                           [--expect-root HEX] [--expect-stable-root HEX]

What it is.  One file that needs the standard library and nothing else, so that it can be read in an
afternoon, copied beside an archive and run in ten years.  It shares no line with the laboratory that
wrote the archive nor with the client that was tried: three witnesses (the label a person wrote, the
reading below, the claim of the subject) are compared, and a mistake in one cannot hide in another.
docs/formats.md, docs/judging.md and docs/attempts.md are the contract of all three; a section 3 below
is one of the formats, a section J3 is one of judging, a section A3 is one of attempts.

What it trusts: nothing in DIR.  No path is ever opened because the archive names it; the tree is
scanned once, component by component, without following links, and names are then looked up in what
the scan found.  Every file is read once; what is hashed and what is parsed is the same buffer.  Sizes
are checked before reading, depths before parsing.  Nothing is written, extracted, imported or
configured from DIR.  Outside DIR it trusts the digests in SUITES and CONTRACTS, and whatever root
digest its caller got by another way.

Theory of operation.  A manifest proves little against an editor: whoever can change a file can change
its hash.  So the hashes only tie the bytes together, and the weight lies on three other legs: the
suite must be one whose digest is a constant here; the bytes served must be those of the suite's case;
and outcome, preview, history and read counts are derived again from these bytes, whole-body, where a
client works byte by byte:

    bytes -> well-formed prefix -> lines or frames -> events -> signals -> turn -> outcome, at an offset
    offset, HTTP chunks, cap, script -> reads, consumed bytes, how the transport ended

The outcome never depends on the read cap; only the two numbers of the last line do.  A case with steps
is a session: several such readings, each as far as its steps read, and a policy that says who may
publish.  It is replayed step by step, and its journal and history are compared with the subject's.

What no reading can find is a run that was made up as a whole, consistently.  Against that there are
two anchors: a root digest published elsewhere (--expect-stable-root, --expect-root), and running the
suite again, which gives the same stable root anywhere.  Without one the last line says NOT ANCHORED.

Order of checks: scan (types, names, sizes) - tag files, seal, manifest, hashes - suite and contract
copies against their manifests and the pinned digests - plan - records - volatile records -
provenance - for each trial: its case, label, contract; the wire; the request; the claim; the verdict.
All findings are collected.  A finding is about the archive; what a subject claims wrongly is a verdict.

Exit codes: 0 the archive is sound and every verdict is AGREE; 1 findings, or another verdict; 2 called
wrongly, DIR cannot be read at all, or a bug in this file (it says so).
"""

from __future__ import annotations

import argparse
import base64
import errno
import hashlib
import io
import itertools
import json
import os
import re
import stat
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# ====================================================================================================
# Pinned: changed by hand only, never read from an archive
# ====================================================================================================

# sha256 of cases/<suite>/manifest-sha256.txt for every suite that is shipped.
SUITES = {
    "anthropic": "4bc132d9c1a6832c5acc6de3be943786be7d65f337c13c1e4b11449ce4fcb1d7",
    "bedrock": "a1d95409d65decb5d72f90ef8837e7c6a7b9ddac789db905afeaae0d053125e3",
    "cohere": "67cada96dbdef0212d602d5c532279dac0b7a642b4581bad6707d644da9f2a66",
    "frozen": "39819d8528f447cf7710b290bfdeddee475f965a8b6e70f7af4319d71ce3eb0f",
    "gemini": "41c52b01fbaebee3903e40fcbc73a4c0d1e7d2cf52509c2e0f6844d33a553c89",
    "mistral": "c80646cde26c135c5144013828ed2b3a52fbc9ff5cdbe826742b60ce3ecd543f",
    "ollama": "e6c5fc1a615b6a47a52f56c355a21c43f778a34c2e3295314c59c02a9ea71c8e",
    "openai-chat": "3a2786ddc3a14e913558aba97f800933d8d0337d7b234b0086d6072de8c7d6a9",
    "openai-responses": "02938b6c98d998403662c6108aff2193605f34fbc79b3973aa0f7831e3e6b213",
    "sessions": "eeda7895b1360dcc9c4853a2a936b6f8a5d2b0891eb99a3d9a124030603c1d5a",
    "wild": "7fecb0affaca8e2ac8b5ed0014ad5cfa1b6071e87c5647bac8f91530e98a91f8",
}
# sha256 of cases/contracts/manifest-sha256.txt.
CONTRACTS = "c6669bcaf291d04221ed1793f6ba60f8fd6b0f6b27b01c34d615cede2a1e1333"

BAGIT_TXT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
BAG_INFO_TXT = b"Bag-Software-Agent: endmark\n"

# ====================================================================================================
# Limits of the auditor itself (those of a turn belong to the contract)
# ====================================================================================================

MAX_FILE_BYTES = 64 << 20  # a shard of 10,000 lines is some 10 MB; a body is far smaller
MAX_TOTAL_BYTES = 1 << 30  # everything read is kept in memory
MAX_ENTRIES = 200_000  # a run of 10,000 trials has at most some 60,000 files
MAX_DEPTH = 8  # components of a path; the layout has at most 5
MAX_LINE_BYTES = 1 << 20  # the longest line of the subject protocol; a record is some 1,000 bytes
MAX_JUDGED_BYTES = 64 << 20  # body bytes judged in one audit, so that it ends within minutes
MAX_TOML_BYTES = 512 << 10  # a body of 65,536 bytes, one chunk a byte, still fits
MAX_TOML_DOTS = 4096  # tomllib takes quadratic time on a dotted key
MAX_FINDINGS = 10_000  # more are not listed: a file of empty lines would have millions
MAX_RECORD_DEPTH = 16  # the closed schemas are at most 6 deep
MAX_EVENT_DEPTH = 128  # the most a contract may allow: parsers recurse, and their own bounds lie above this one
MAX_INTEGER = (1 << 53) - 1  # what every JSON reader holds exactly (RFC 7493 section 2.2)
MAX_INTEGER_DIGITS = 309  # an integer with more is beyond the doubles, whatever its digits
SHARD_LINES = 10_000
MAX_EXCHANGES = 8  # of one session
MAX_MOVES = 64  # steps of one session
MAX_SESSION_BYTES = 1 << 20  # of its bodies together: its journal repeats what they say, line after line

# ====================================================================================================
# Words
# ====================================================================================================

OUTCOMES = (
    "COMPLETE", "INCOMPLETE_STREAM", "INCOMPLETE_FINISH", "UNSUPPORTED_OUTCOME", "PROVIDER_ERROR",
    "PROTOCOL", "INVALID_JSON", "INVALID_UTF8", "LIMIT", "CONTENT_TYPE", "CANCELLED", "READ_TIMEOUT",
    "DEADLINE",
)  # fmt: skip
AUTHORITIES = ("spec", "provider-doc", "capture", "judgement")
FRAMINGS = ("chunked", "content-length", "close")
# ending -> framings it can be played with
ENDINGS = {
    "complete": FRAMINGS,
    "fin": FRAMINGS,
    "reset": ("chunked", "close"),  # behind a whole content-length nobody could see it
    "short-length": ("content-length",),
    "bad-chunk": ("chunked",),
    "stall": ("chunked", "close"),
}
# What the switches of a contract may say (section J1).
SWITCHES = {
    "finish_without_terminal": ("incomplete", "complete"),
    "terminal_without_finish": ("protocol", "complete"),
    "repeated_finish": ("protocol", "same"),
    "late_filter": ("protocol", "filtered"),
    "last_event": ("discard", "dispatch"),
    "invalid_utf8": ("refuse", "replace"),
    "content_type": ("refuse", "ignore"),
    "empty_completion": ("refuse", "accept"),
    "usage": ("optional", "required"),
    "unknown_event": ("protocol", "tolerate"),
    "candidates": ("one", "many"),
    "close_delimited": ("incomplete", "complete"),
}
# What one entry of the history of a contract may say.  Only a completion enters the history by itself
# (section J6), and only as what it is; of the other endings no rule but `append` would be judged wrongly
# here, and that one is none for them: they never complete.
_NOT_BY_ITSELF = ("append", "append-marked", "withhold", "caller")
HISTORY_RULES = {
    "answer": ("append",),
    "tools": ("append",),
    "truncated": _NOT_BY_ITSELF,
    "filtered": _NOT_BY_ITSELF,
    "paused": _NOT_BY_ITSELF,
    "error": _NOT_BY_ITSELF,
}
RESULTS = ("answer", "tools")
# Sessions (docs/attempts.md): who may publish, what became of an attempt, what the screen says.
POLICIES = ("owned", "naive")
DECISIONS = ("accepted", "cancelled", "superseded", "refused", "failed", "open")
SCREENS = ("idle", "generating", "interrupted", "withdrawn", "accepted")
STEP_RESULTS = ("committed", "refused", "superseded", "denied")

# A name, and what is made of names.  Portable on every file system: no case, no Unicode, no space.
_NAME = r"[a-z0-9][a-z0-9._-]{0,99}"
_HEX = r"[0-9a-f]{64}"
NAME = re.compile(_NAME)
HEX = re.compile(_HEX)
CONTRACT_NAME = re.compile(rf"({_NAME})/([1-9][0-9]{{0,8}})")
TRIAL_ID = re.compile(rf"({_NAME})/({_NAME})@({_NAME}/[1-9][0-9]{{0,8}})")
MANIFEST_LINE = re.compile(rf"({_HEX})  ({_NAME}(?:/{_NAME})*)")
LAYOUT = re.compile(
    rf"data/(?:provenance\.json|suite/{_NAME}/(?:{_NAME}|{_NAME}/{_NAME})|records/plan\.json"
    rf"|(?:records|volatile)/trials-[0-9]{{5}}\.jsonl|blobs/{_HEX}|volatile/run\.json)"
)

SEALED = ("bag-info.txt", "bagit.txt", "manifest-sha256.txt")
SEAL = "tagmanifest-sha256.txt"
PROVENANCE = "data/provenance.json"
PLAN = "data/records/plan.json"
RUN = "data/volatile/run.json"
REQUIRED = (
    *SEALED, SEAL, PROVENANCE, PLAN, RUN, "data/records/trials-00000.jsonl",
    "data/volatile/trials-00000.jsonl", "data/suite/contracts/manifest-sha256.txt",
)  # fmt: skip
STABLE = ("data/suite/", "data/records/", "data/blobs/")

# ====================================================================================================
# Findings
# ====================================================================================================


def plain(text: str) -> str:
    """`text` with everything escaped that could drive a terminal, or that no encoding can carry."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Finding(NamedTuple):
    """What is wrong, where, and a fact by which anybody can check it by hand."""

    code: str
    place: str
    text: str
    witness: str


class Findings:
    """All findings, in the order of the checks; notes are harmless and change no exit code."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.notes: list[Finding] = []

    @property
    def full(self) -> bool:
        return len(self.findings) >= MAX_FINDINGS

    def add(self, code: str, place: str, text: str, witness: str) -> None:
        if not self.full:
            self.findings.append(Finding(code, plain(place), plain(text), plain(witness)))

    def note(self, code: str, place: str, text: str, witness: str) -> None:
        self.notes.append(Finding(code, plain(place), plain(text), plain(witness)))


def brief(value: object, most: int = 80) -> str:
    """A value as a witness: quoted, and cut where it is long."""
    if isinstance(value, (bytes, str)) and len(value) > most:
        return f"{value[:most]!r}... ({len(value)} long)"
    try:
        text = repr(value)
    except RecursionError:  # TOML can nest deeper than Python prints
        return "a value that nests too deep to be shown"
    return text if len(text) <= 2 * most else f"{text[: 2 * most]}..."


def difference(found: bytes, expected: bytes) -> str:
    """The first byte at which two byte strings differ, with what stands there."""
    at, end = 0, min(len(found), len(expected))
    while at < end:  # found[:at] is common; halve what is not yet known to be
        middle = (at + end + 1) // 2
        if found[at:middle] == expected[at:middle]:
            at = middle
        else:
            end = middle - 1
    return f"offset {at}: {found[at : at + 16]!r}, expected {expected[at : at + 16]!r}"


# ====================================================================================================
# Shapes: closed schemas as data
# ====================================================================================================

# A shape takes a value and says what is wrong with it, or None.
Shape = Callable[[object], "str | None"]


def text(value: object) -> str | None:
    """Any string."""
    return None if type(value) is str else f"is {brief(value)}, not a string"


def flag(value: object) -> str | None:
    """A boolean."""
    return None if type(value) is bool else f"is {brief(value)}, not a boolean"


def date(value: object) -> str | None:
    """A TOML date without a time."""
    # tomllib makes datetime.date of a TOML local date, and subclasses of it for nothing else.
    return None if type(value).__name__ == "date" else f"is {brief(value)}, not a date"


def integer(least: int, most: int = MAX_INTEGER) -> Shape:
    """An integer within bounds, both included."""

    def shape(value: object) -> str | None:
        # type() and not isinstance(): True is no integer here.
        if type(value) is int and least <= value <= most:
            return None
        return f"is {brief(value)}, not an integer from {least} to {most}"

    return shape


def one_of(*allowed: str) -> Shape:
    """One of a few strings."""

    def shape(value: object) -> str | None:
        return None if type(value) is str and value in allowed else f"is {brief(value)}, not one of {allowed}"

    return shape


def matching(pattern: re.Pattern[str], what: str) -> Shape:
    """A string that a pattern matches as a whole."""

    def shape(value: object) -> str | None:
        good = type(value) is str and pattern.fullmatch(value)
        return None if good else f"is {brief(value)}, not {what}"

    return shape


def maybe(inner: Shape) -> Shape:
    """What `inner` allows, or null."""
    return lambda value: None if value is None else inner(value)


def listed(inner: Shape) -> Shape:
    """A list of what `inner` allows."""

    def shape(value: object) -> str | None:
        if type(value) is not list:
            return f"is {brief(value)}, not a list"
        problems = ((i, inner(item)) for i, item in enumerate(value))
        return next((f"[{i}] {problem}" for i, problem in problems if problem), None)

    return shape


def mapping(inner: Shape) -> Shape:
    """An object with any names, whose values `inner` allows."""

    def shape(value: object) -> str | None:
        if type(value) is not dict:
            return f"is {brief(value)}, not an object"
        problems = ((key, inner(item)) for key, item in value.items())
        return next((f"{key!r} {problem}" for key, problem in problems if problem), None)

    return shape


def closed(required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Shape:
    """An object with exactly these keys; those of `optional` may be missing."""
    known = required | (optional or {})

    def shape(value: object) -> str | None:
        if type(value) is not dict:
            return f"is {brief(value)}, not an object"
        if unknown := sorted(value.keys() - known.keys()):
            return f"has the unknown key {unknown[0]!r}"
        if missing := sorted(required.keys() - value.keys()):
            return f"lacks the key {missing[0]!r}"
        problems = ((key, inner(value[key])) for key, inner in known.items() if key in value)
        return next((f"{key!r} {problem}" for key, problem in problems if problem), None)

    return shape


COUNT = integer(0)
POSITIVE = integer(1)
SHA256 = matching(HEX, "64 lower-case hex digits")
OUTCOME = matching(re.compile("|".join([*OUTCOMES, "HTTP_[1-5][0-9][0-9]"])), "an outcome")
ATTEMPT_OUTCOME = matching(
    re.compile("|".join([*OUTCOMES, "HTTP_[1-5][0-9][0-9]", "SUPERSEDED"])), "an outcome of an attempt"
)
CONTRACT_ID = matching(CONTRACT_NAME, "a contract (NAME/N)")
INSTANT = matching(re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"), "a UTC time")
BLOB = closed({"bytes": COUNT, "sha256": SHA256})
MESSAGES = listed(closed({"role": text, "content": text}))
TOOL_CALLS = listed(closed({"id": maybe(text), "name": text, "arguments": text}))
HISTORY = listed(closed({"role": text, "content": text}, {"tool_calls": TOOL_CALLS}))

PLAN_SHAPE = closed({
    "schema": one_of("endmark.plan/1"),
    "subject": closed({
        "name": text,
        "history_owner": one_of("library", "application", "driver"),
        "contract_aware": flag,
    }),
    "suites": listed(matching(NAME, "a name")),
    "trials": listed(matching(TRIAL_ID, "a trial id (SUITE/CASE@CONTRACT)")),
})  # fmt: skip
CLAIM_KEYS: dict[str, Shape] = {
    "history": BLOB,
    "preview": BLOB,
    "outcome": maybe(text),
    "finish_reason": maybe(text),
    "class": maybe(text),
    "dispatched": maybe(COUNT),
    "transport_end": maybe(text),
    "status": maybe(COUNT),
    "reads": maybe(COUNT),
    "consumed_bytes": maybe(COUNT),
    "consumed_sha256": maybe(text),
    "raised": maybe(closed({"type": text, "chain": listed(text)})),
}
CLAIM_SHAPE = closed(CLAIM_KEYS)
TRIAL_SHAPE = closed({
    "schema": one_of("endmark.trial/1"),
    "trial": text,
    "suite": text,
    "case": text,
    "contract": text,
    "requests": listed(BLOB),
    "status": maybe(COUNT),
    "response_head": maybe(BLOB),
    "body": maybe(BLOB),
    "delivered": flag,
    "claim": maybe(CLAIM_SHAPE),
    "no_claim": maybe(one_of("unsupported", "timeout", "exit", "malformed")),
})  # fmt: skip


def null(value: object) -> str | None:
    """Nothing."""
    return None if value is None else f"is {brief(value)}, not null"


# What one attempt alone could claim is left out of the claim of a session (section A5).
LEFT_OUT = ("class", "status", "reads", "consumed_bytes", "consumed_sha256", "transport_end")
SESSION_SHAPE = closed({
    "schema": one_of("endmark.session/1"),
    "trial": text,
    "suite": text,
    "case": text,
    "contract": text,
    "requests": listed(BLOB),
    "exchanges": listed(closed({"status": COUNT, "response_head": BLOB, "body": BLOB, "delivered": flag})),
    "journal": maybe(BLOB),
    "claim": maybe(closed(CLAIM_KEYS | dict.fromkeys(LEFT_OUT, null))),
    "no_claim": maybe(one_of("unsupported", "timeout", "exit", "malformed")),
})  # fmt: skip


def record_shape(value: object) -> str | None:
    """A record of either form, by the schema that it names."""
    is_session = type(value) is dict and value.get("schema") == "endmark.session/1"
    return (SESSION_SHAPE if is_session else TRIAL_SHAPE)(value)


JOURNAL_SHAPE = listed(closed({
    "do": text,
    "attempt": maybe(text),
    "result": maybe(one_of(*STEP_RESULTS)),
    "outcome": maybe(text),
    "consumed_bytes": COUNT,
    "reads": COUNT,
    "preview": text,
    "display": text,
    "state": one_of(*SCREENS),
    "stored": COUNT,
}))  # fmt: skip
VOLATILE_SHAPE = closed({
    "schema": one_of("endmark.volatile/1"),
    "trial": text,
    "host": maybe(text),
    "port": maybe(COUNT),
    "path": maybe(text),
    "started_ms": COUNT,
    "duration_ms": COUNT,
    "sent_bytes": COUNT,
    "server_end": one_of("played", "client-left", "not-asked", "failed"),
    "redacted": listed(text),
    "message": maybe(text),
    "note": maybe(text),
})  # fmt: skip
RUN_SHAPE = closed({
    "schema": one_of("endmark.run/1"),
    "run_id": text,
    "started_at": INSTANT,
    "finished_at": INSTANT,
    "host": text,
    "jobs": POSITIVE,
    "port": COUNT,
})  # fmt: skip
PROVENANCE_SHAPE = closed({
    "schema": one_of("endmark.provenance/1"),
    "endmark": text,
    "python": text,
    "platform": text,
    "packages": mapping(text),
    "subject": closed({
        "name": text,
        "version": text,
        "language": text,
        "dialects": listed(text),
        "capabilities": listed(text),
    }),
    "sources": mapping(SHA256),
})  # fmt: skip

_SEND = closed({"send_bytes": POSITIVE})
_WAIT = closed({"wait_ms": POSITIVE})


def script_step(value: object) -> str | None:
    """One step of a script: it sends or it waits."""
    return None if _SEND(value) is None else _WAIT(value)


ATTEMPT = matching(re.compile("[a-z]"), "an attempt (one letter)")
# What a session's step holds besides `do`, by what it does (section A4).
_INSTEAD = closed({"do": text, "attempt": ATTEMPT, "of": ATTEMPT})
_OF_ONE = closed({"do": text, "attempt": ATTEMPT})
MOVES = {
    "begin": _OF_ONE,
    "supersede": _INSTEAD,
    "retry": _INSTEAD,
    "read": closed({"do": text, "attempt": ATTEMPT}, {"until_bytes": POSITIVE}),
    "commit": _OF_ONE,
    "cancel": _OF_ONE,
    "clear": closed({"do": text}),
}
BEGINNINGS = ("begin", "supersede", "retry")
_DO = one_of(*MOVES)


def move_shape(value: object) -> str | None:
    """One step of a session."""
    if type(value) is not dict or _DO(value.get("do")):
        return f"is {brief(value)}, whose `do` is not one of {tuple(MOVES)}"
    return MOVES[value["do"]](value)


CASE_SHAPE = closed(
    {
        "title": text,
        "dialect": text,
        "reference": text,
        "client": closed(
            {"read_cap_bytes": POSITIVE},
            {
                "connect_timeout_ms": POSITIVE,
                "read_timeout_ms": POSITIVE,
                "cancel_after_utf16": POSITIVE,
            },
        ),
        "exchange": listed(
            closed(
                {"body": matching(NAME, "a file name")},
                {
                    "status": integer(200, 599),
                    "content_type": text,
                    "framing": one_of(*FRAMINGS),
                    "chunk_ends": listed(POSITIVE),
                    "script": listed(script_step),
                    "ending": one_of(*ENDINGS),
                },
            )
        ),
    },
    {"step": listed(move_shape)},
)


def label_shape(stated: Shape) -> Shape:
    """A label, whatever it states under each contract."""
    return closed({
        "why": text,
        "authority": one_of(*AUTHORITIES),
        "url": text,
        "date": date,
        "contract": mapping(stated),
    })  # fmt: skip


LABEL_SHAPE = label_shape(
    closed({"outcome": OUTCOME, "preview": text, "committed": flag}, {"class": one_of(*HISTORY_RULES)})
)
SESSION_LABEL_SHAPE = label_shape(
    closed(
        {
            "stored": listed(text),
            "writes": COUNT,
            "dispatched": integer(0, 0),
            "display": text,
            "state": one_of(*SCREENS),
            "attempt": mapping(closed({"decision": one_of(*DECISIONS)}, {"outcome": ATTEMPT_OUTCOME})),
        },
        {"fails": flag},
    )
)
SUITE_SHAPE = closed({
    "name": text,
    "version": text,
    "licence": text,
    "contracts": listed(CONTRACT_ID),
    "conversation": closed({"history": MESSAGES, "question": text}),
    "changelog": listed(closed({"version": text, "date": date, "text": text})),
})  # fmt: skip
RULES_SHAPE = closed({
    "media_type": text,
    "framing": one_of("sse", "ndjson", "eventstream"),
    "terminal": text,
    "results": listed(one_of(*RESULTS)),
    "reasons": mapping(one_of(*HISTORY_RULES)),
})  # fmt: skip
CONTRACT_SHAPE = closed({
    "name": text,
    "title": text,
    "limits": closed({
        "line_utf16": POSITIVE,
        "event_utf16": POSITIVE,
        "input_utf16": POSITIVE,
        "output_utf16": POSITIVE,
        "events": POSITIVE,
        "json_depth": integer(1, MAX_EVENT_DEPTH),
        "deadline_ms": POSITIVE,
    }),
    "switch": closed({name: one_of(*allowed) for name, allowed in SWITCHES.items()}),
    "dialect": mapping(RULES_SHAPE),
    "history": closed({ending: one_of(*rules) for ending, rules in HISTORY_RULES.items()}),
}, {
    "attempts": closed({}, {"policy": one_of(*POLICIES), "retries": COUNT}),
})  # fmt: skip

# ====================================================================================================
# Strict JSON: RFC 8259 <https://www.rfc-editor.org/rfc/rfc8259>, unique names of RFC 7493 section 2.3
# ====================================================================================================
#
# The standard parser already refuses every other spelling of a token, trailing data and control
# characters.  What it accepts beyond the grammar is taken away here: duplicate names, NaN and Infinity,
# numbers beyond the finite doubles, escapes that leave a lone surrogate.  Depth is counted on the text
# before parsing, so that the parser never recurses further than a limit says.


class NotStrictError(ValueError):
    """The text is not strict JSON; the message says why."""


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a name is there twice, after escapes are resolved."""
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise NotStrictError(f"the name {brief(name)} is there twice in one object")
        names.add(name)
    return dict(pairs)


def no_constant(spelling: str) -> Any:
    """Refuse NaN, Infinity and -Infinity."""
    raise NotStrictError(f"{spelling} is no JSON")


def finite_real(spelling: str) -> float:
    """A number with a fraction or an exponent."""
    value = float(spelling)
    if value in (float("inf"), float("-inf")):
        raise NotStrictError(f"the number {brief(spelling, 30)} is beyond the finite doubles")
    return value


def finite_integer(spelling: str) -> int:
    """An integer that does not round to infinity."""
    # Digits are counted first: int() of a long text is quadratic, and refused by a setting of Python.
    if len(spelling.lstrip("-")) <= MAX_INTEGER_DIGITS:
        value = int(spelling)
        try:
            float(value)
        except OverflowError:
            pass
        else:
            return value
    raise NotStrictError(f"the number {brief(spelling, 30)} is beyond the finite doubles")


def no_real(spelling: str) -> Any:
    """Refuse what the laboratory never writes."""
    raise NotStrictError(f"the number {brief(spelling, 30)} is no integer")


def exact_integer(spelling: str) -> int:
    """An integer below 2^53."""
    if len(spelling) > 17 or abs(value := int(spelling)) > MAX_INTEGER:
        raise NotStrictError(f"the integer {brief(spelling, 30)} is not below 2^53")
    return value


# What a server or a subject said: any number that a double can hold.
FOREIGN_JSON = json.JSONDecoder(
    object_pairs_hook=unique_names,
    parse_constant=no_constant,
    parse_float=finite_real,
    parse_int=finite_integer,
)
# What the laboratory wrote: integers below 2^53 alone.
RECORD_JSON = json.JSONDecoder(
    object_pairs_hook=unique_names,
    parse_constant=no_constant,
    parse_float=no_real,
    parse_int=exact_integer,
)

# A string, or the rest of the text where it is not closed; possessive, hence linear.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def nesting(document: str) -> int:
    """How deep containers nest.  Exact on JSON; on other text a guess, and that text is refused anyway."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", document)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def strict_json(document: str, max_depth: int, decoder: json.JSONDecoder = FOREIGN_JSON) -> Any:
    """The value of `document`, or NotStrictError."""
    if (depth := nesting(document)) > max_depth:
        raise NotStrictError(f"containers nest {depth} deep, {max_depth} are allowed")
    try:
        value = decoder.decode(document)
    except json.JSONDecodeError as error:
        raise NotStrictError(f"{error.msg} at character {error.pos}") from None
    if _SURROGATE_ESCAPE.search(document):
        refuse_lone_surrogates(value)
    return value


def refuse_lone_surrogates(value: object) -> None:
    """Strict UTF-8 cannot carry a lone surrogate; that is the test."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotStrictError("a string holds a lone surrogate") from None


def canonical(value: object) -> bytes:
    """The one spelling that section 3 allows."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def record_json(raw: bytes, end: bytes, place: str, shape: Shape, found: Findings) -> Any:
    """The value of one document the laboratory wrote, ended by `end`; None where it is not acceptable."""
    try:
        value = strict_json(raw.decode(), MAX_RECORD_DEPTH, RECORD_JSON)
    except (NotStrictError, UnicodeDecodeError) as error:
        found.add("E-JSON", place, "is not strict JSON", str(error))
        return None
    if (expected := canonical(value) + end) != raw:
        found.add("E-CANON", place, "is not the canonical spelling of its value", difference(raw, expected))
    if problem := shape(value):
        found.add("E-SCHEMA", place, "does not have the closed shape of section 3", problem)
        return None
    return value


# ====================================================================================================
# Reading the directory
# ====================================================================================================


class Archive:
    """What a scan of the directory found.  From here on nothing is opened any more."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.present: set[str] = set()  # every regular file, also one that could not be read
        self.files: dict[str, bytes] = {}
        self.digests: dict[str, str] = {}
        self.entries = 0
        self.total_bytes = 0

    def below(self, folder: str) -> list[str]:
        return sorted(path for path in self.present if path.startswith(folder))


def scan(directory: str, found: Findings) -> Archive:
    """Read everything below `directory`.  OSError where the directory itself cannot be opened."""
    archive = Archive(found)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        scan_folder(archive, descriptor, "", 1)
    finally:
        os.close(descriptor)
    return archive


def scan_folder(archive: Archive, descriptor: int, prefix: str, depth: int) -> None:
    """Scan one open directory, in the order of its names."""
    with os.scandir(descriptor) as entries:
        names = sorted(entry.name for entry in itertools.islice(entries, MAX_ENTRIES + 1))
    if not names and prefix:
        archive.found.add("E-EMPTY-DIR", prefix, "is an empty directory", "0 entries")
    for name in names:
        archive.entries += 1
        if archive.entries > MAX_ENTRIES:
            if archive.entries == MAX_ENTRIES + 1:
                archive.found.add("E-SIZE", prefix + name, "too many entries", f"more than {MAX_ENTRIES}")
            return
        scan_entry(archive, descriptor, prefix, name, depth)


def scan_entry(archive: Archive, folder: int, prefix: str, name: str, depth: int) -> None:
    """Look at one entry without following it, and read or enter it."""
    path = prefix + name
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            enter(archive, folder, path + "/", name, depth)
        elif stat.S_ISREG(status.st_mode):
            archive.present.add(path)
            read(archive, folder, path, name)
        else:
            kind = stat.filemode(status.st_mode)
            archive.found.add("E-FILETYPE", path, "is neither a regular file nor a directory", kind)
    except OSError as error:
        archive.found.add("E-UNREADABLE", path, "cannot be read", os.strerror(error.errno or 0))


def enter(archive: Archive, folder: int, prefix: str, name: str, depth: int) -> None:
    """Scan a directory inside another."""
    if depth >= MAX_DEPTH:
        archive.found.add("E-SIZE", prefix, "directories nest too deep", f"more than {MAX_DEPTH} levels")
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        scan_folder(archive, descriptor, prefix, depth + 1)
    finally:
        os.close(descriptor)


def read(archive: Archive, folder: int, path: str, name: str) -> None:
    """Read one file, once.  O_NONBLOCK: should a FIFO have taken its place, nothing hangs."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_nlink != 1:
            archive.found.add("E-HARDLINK", path, "has more than one link", f"{status.st_nlink} links")
        if status.st_size > MAX_FILE_BYTES:
            archive.found.add("E-SIZE", path, "the file is too long", f"{status.st_size} > {MAX_FILE_BYTES}")
            return
        if archive.total_bytes + status.st_size > MAX_TOTAL_BYTES:
            archive.found.add("E-SIZE", path, "the files are too long together", f"> {MAX_TOTAL_BYTES}")
            return
        data = file.read(status.st_size + 1) if stat.S_ISREG(status.st_mode) else None
    if data is None or len(data) != status.st_size:
        raise OSError(errno.ESTALE, "changed while it was read")
    archive.total_bytes += len(data)
    archive.files[path] = data
    archive.digests[path] = hashlib.sha256(data).hexdigest()


# ====================================================================================================
# Manifests, seal, roots
# ====================================================================================================


def manifest(archive: Archive, place: str) -> dict[str, str]:
    """Read path -> sha256 of the lines that are well formed.  A missing file is reported elsewhere."""
    raw = archive.files.get(place, b"")
    if raw and not raw.endswith(b"\n"):
        archive.found.add("E-MANIFEST", place, "the last line has no LF", brief(raw[-16:]))
    entries: dict[str, str] = {}
    before = ""
    for number, line in enumerate(raw.decode("latin-1").removesuffix("\n").split("\n"), 1):
        if archive.found.full:
            break
        match = MANIFEST_LINE.fullmatch(line)
        if not match:
            if raw:
                archive.found.add(
                    "E-MANIFEST", f"{place}:{number}", "is not '<sha256>  <path>'", brief(line.encode("latin-1"))
                )
            continue
        if match[2] <= before:
            archive.found.add(
                "E-MANIFEST",
                f"{place}:{number}",
                "the paths are not strictly increasing",
                f"{match[2]} after {before}",
            )
        before = match[2]
        entries.setdefault(match[2], match[1])
    return entries


def check_tag_files(archive: Archive) -> None:
    """Compare the two files that are the same in every archive."""
    for place, constant in (("bagit.txt", BAGIT_TXT), ("bag-info.txt", BAG_INFO_TXT)):
        if place in archive.files and archive.files[place] != constant:
            witness = difference(archive.files[place], constant)
            archive.found.add("E-TAGFILE", place, "is not the constant text of section 3", witness)


def check_seal(archive: Archive) -> None:
    """The seal is a function of the three files it covers, so it is compared whole."""
    if SEAL not in archive.files or any(place not in archive.files for place in SEALED):
        return
    expected = "".join(f"{archive.digests[place]}  {place}\n" for place in SEALED).encode()
    if archive.files[SEAL] != expected:
        witness = difference(archive.files[SEAL], expected)
        archive.found.add("E-SEAL", SEAL, "does not seal the three files beside it", witness)


def check_files(archive: Archive, entries: dict[str, str]) -> None:
    """What is listed is there, what is there is listed, and it has the bytes that were hashed."""
    found = archive.found
    for path in sorted({*REQUIRED, *entries} - archive.present):
        found.add("E-MISSING", path, "is listed or required, and is not there", "no regular file")
    for path in sorted(archive.present - entries.keys() - {*SEALED, SEAL}):
        # No manifest can list an odd name: the grammar of its lines has no room for one.
        if all(NAME.fullmatch(name) for name in path.split("/")):
            found.add("E-EXTRA", path, "is there, and manifest-sha256.txt does not list it", "not listed")
        else:
            found.add("E-NAME", path, f"a name in the path does not match {_NAME}", brief(path))
    for path, digest in entries.items():
        if not LAYOUT.fullmatch(path):
            found.add("E-EXTRA", path, "has no place in the layout of section 3", "listed")
        if path in archive.digests and archive.digests[path] != digest:
            witness = f"sha256 is {archive.digests[path]}, listed {digest}"
            found.add("E-HASH", path, "does not have the bytes that the manifest lists", witness)


def stable_root(archive: Archive, entries: dict[str, str]) -> str | None:
    """Hash what two runs of one suite have in common; None without a manifest."""
    if "manifest-sha256.txt" not in archive.files:
        return None
    lines = (f"{digest}  {path}\n" for path, digest in entries.items() if path.startswith(STABLE))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# ====================================================================================================
# Suites, cases, labels, contracts
# ====================================================================================================


class Case(NamedTuple):
    """A case with its defaults filled in, and the bytes it serves."""

    title: str
    dialect: str
    read_cap: int
    read_timeout_ms: int
    cancel_after: int | None
    status: int
    content_type: str
    framing: str
    chunk_ends: list[int]
    body: bytes
    script: list[tuple[str, int]]  # ("send_bytes", N) and ("wait_ms", N), always with every byte sent
    ending: str


class Move(NamedTuple):
    """One step of a session (section A4)."""

    do: str
    attempt: str | None = None
    of: str | None = None
    until_bytes: int | None = None


class Session(NamedTuple):
    """A case with steps: its exchanges, each as a case of its own, and what happens between them."""

    exchanges: list[Case]
    moves: list[Move]

    def exchange(self, request: int) -> Case:
        """What answers a request, counted from 0; requests beyond the exchanges get the last one."""
        return self.exchanges[min(request, len(self.exchanges) - 1)]


class Label(NamedTuple):
    """What a person wrote: the right result under one contract."""

    outcome: str
    preview: str
    committed: bool
    authority: str
    ending: str | None  # the class, where it is stated


Decisions = dict[str, tuple["str | None", str]]  # of attempts: name -> outcome, decision


class SessionLabel(NamedTuple):
    """What a person wrote about a session under one contract (section A7)."""

    stored: list[str]
    writes: int
    display: str
    state: str
    attempts: Decisions
    fails: bool | None  # whether this control has to fail; None under an owned policy
    authority: str


class Limits(NamedTuple):
    """The limits of a turn, as a contract states them."""

    line_utf16: int
    event_utf16: int
    input_utf16: int
    output_utf16: int
    events: int
    json_depth: int
    deadline_ms: int


class Switch(NamedTuple):
    """What a contract says where strict engineers differ: the keys and values of SWITCHES."""

    finish_without_terminal: str
    terminal_without_finish: str
    repeated_finish: str
    late_filter: str
    last_event: str
    invalid_utf8: str
    content_type: str
    empty_completion: str
    usage: str
    unknown_event: str
    candidates: str
    close_delimited: str


class Rules(NamedTuple):
    """What a contract says about one dialect."""

    media_type: str
    framing: str
    terminal: str
    results: list[str]
    reasons: dict[str, str]


class Contract(NamedTuple):
    """What counts as enough evidence."""

    limits: Limits
    switch: Switch
    history: dict[str, str]
    dialects: dict[str, Rules]
    policy: str = "owned"  # of sessions; a case without steps is judged the same under both
    retries: int = 3  # of one task


class Suite(NamedTuple):
    """What the trials of one suite have in common."""

    contracts: list[str]
    cases: set[str]  # all of them, by the suite's manifest, not only those that were copied
    history: list[dict[str, str]]
    question: str


def toml(raw: bytes, shape: Shape) -> tuple[dict[str, Any], str]:
    """The document and "", or nothing and what is wrong with it."""
    if len(raw) > MAX_TOML_BYTES or raw.count(b".") > MAX_TOML_DOTS:
        return {}, f"too long: {len(raw)} bytes, {raw.count(b'.')} dots"
    try:
        document = tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        return {}, str(error)
    return document, shape(document) or ""


def check_copy(archive: Archive, folder: str, wanted: set[str]) -> dict[str, str]:
    """Compare a copied folder with its own manifest; `wanted` are the entries that the plan needs."""
    found = archive.found
    own = folder + "manifest-sha256.txt"
    entries = manifest(archive, own)
    for path in archive.below(folder):
        name = path.removeprefix(folder)
        if path == own:
            continue
        if name not in entries:
            found.add("E-SUITE", path, "is not a file of the suite", f"not listed in {own}")
        elif archive.digests.get(path, entries[name]) != entries[name]:
            witness = f"sha256 is {archive.digests[path]}, frozen as {entries[name]}"
            found.add("E-SUITE", path, "is not the file that was frozen", witness)
        if name.split("/")[0] not in wanted:
            found.add("E-COVERAGE", path, "belongs to nothing that was planned", "copied all the same")
    for name in entries:
        if name.split("/")[0] in wanted and folder + name not in archive.present:
            found.add("E-SUITE", folder + name, "the copy of the suite lacks a file", f"listed in {own}")
    for name in sorted(wanted - {entry.split("/")[0] for entry in entries}):
        found.add("E-COVERAGE", PLAN, "the plan names what the suite does not have", folder + name)
    return entries


def check_pins(archive: Archive, suites: list[str]) -> None:
    """Compare the manifests of suites and contracts with the constants in this file."""
    found = archive.found
    for name in suites:
        place = f"data/suite/{name}/manifest-sha256.txt"
        digest = archive.digests.get(place)
        if name not in SUITES:
            text = "is no suite that is shipped: its labels are the archive's own word"
            found.note("N-UNPINNED", place, text, f"sha256 {digest}")
        elif digest != SUITES[name]:
            text = "is not the shipped suite of this name"
            found.add("E-SUITE", place, text, f"sha256 is {digest}, pinned {SUITES[name]}")
    place = "data/suite/contracts/manifest-sha256.txt"
    digest = archive.digests.get(place)
    if digest != CONTRACTS:
        witness = f"sha256 is {digest}, pinned {CONTRACTS}"
        if any(name in SUITES for name in suites):
            found.add("E-SUITE", place, "the contracts are not the shipped ones", witness)
        else:
            found.note("N-UNPINNED", place, "the contracts are not the shipped ones", witness)


def load_suite(archive: Archive, name: str, entries: dict[str, str]) -> Suite | None:
    """Read suite.toml, or find what is wrong with it."""
    place = f"data/suite/{name}/suite.toml"
    document, problem = toml(archive.files.get(place, b""), SUITE_SHAPE)
    if not problem and document["name"] != name:
        problem = f"name is {document['name']!r}, the folder's is {name!r}"
    if problem:
        archive.found.add("E-SUITE", place, "is not a suite (section 1)", problem)
        return None
    cases = {path.split("/")[0] for path in entries if path.endswith("/case.toml")}
    talk = document["conversation"]
    return Suite(document["contracts"], cases, talk["history"], talk["question"])


def load_case(archive: Archive, folder: str) -> Case | Session | None:
    """Read case.toml and the bodies it names, or find what is wrong with them."""
    place = folder + "case.toml"
    document, problem = toml(archive.files.get(place, b""), CASE_SHAPE)
    problem = problem or case_problem(document, archive, folder)
    if problem:
        archive.found.add("E-CASE", place, "is not a case (section 1)", problem)
        return None
    exchanges = [
        case_of(document, exchange, archive.files[folder + exchange["body"]]) for exchange in document["exchange"]
    ]
    if "step" not in document:
        return exchanges[0]
    return Session(exchanges, [Move(**step) for step in document["step"]])


def case_of(document: dict[str, Any], exchange: dict[str, Any], body: bytes) -> Case:
    """One exchange of a case whose shape was checked, with the defaults filled in."""
    client = document["client"]
    steps = [next(iter(step.items())) for step in exchange.get("script", [])]
    if all(kind != "send_bytes" for kind, _ in steps):
        steps.append(("send_bytes", len(body)))
    return Case(
        document["title"],
        document["dialect"],
        client["read_cap_bytes"],
        client.get("read_timeout_ms", 1000),
        client.get("cancel_after_utf16"),
        exchange.get("status", 200),
        exchange.get("content_type", "text/event-stream"),
        exchange.get("framing", "chunked"),
        exchange.get("chunk_ends", []),
        body,
        steps,
        exchange.get("ending", "complete"),
    )


def case_problem(document: dict[str, Any], archive: Archive, folder: str) -> str:
    """What the shape of case.toml cannot say: how its values hang together."""
    if document["dialect"] not in DIALECTS:
        return f"the dialect {document['dialect']!r} is unknown here"
    if "step" not in document and len(document["exchange"]) != 1:
        return f"{len(document['exchange'])} exchanges, expected 1"
    bodies = [archive.files.get(folder + exchange["body"]) for exchange in document["exchange"]]
    patience = document["client"].get("read_timeout_ms", 1000)
    for exchange, body in zip(document["exchange"], bodies, strict=True):
        if problem := exchange_problem(exchange, body, patience):
            return problem
    sizes = [len(body or b"") for body in bodies]
    return session_problem(document, sizes, patience) if "step" in document else ""


def exchange_problem(exchange: dict[str, Any], body: bytes | None, patience: int) -> str:
    """How the values of one exchange hang together."""
    if body is None:
        return f"the body {exchange['body']!r} is not there"
    framing, ending = exchange.get("framing", "chunked"), exchange.get("ending", "complete")
    if framing not in ENDINGS[ending]:
        return f"the ending {ending!r} cannot be played with the framing {framing!r}"
    ends = exchange.get("chunk_ends", [])
    if ends and (framing != "chunked" or ends != sorted(set(ends)) or ends[-1] >= len(body)):
        return f"chunk_ends {brief(ends)} are not increasing offsets inside {len(body)} bytes, chunked"
    steps = exchange.get("script", [])
    sent = [step["send_bytes"] for step in steps if "send_bytes" in step]
    if sent and sum(sent) != len(body):
        return f"the script sends {sum(sent)} bytes, the body has {len(body)}"
    for step in steps:
        if patience < 2 * step.get("wait_ms", 0) < 4 * patience:
            return f"a wait of {step['wait_ms']} ms is too near the read time-out of {patience} ms"
    return ""


def session_problem(document: dict[str, Any], sizes: list[int], patience: int) -> str:
    """How exchanges, conditions and steps of a session hang together; `sizes` are those of the bodies."""
    moves = [Move(**step) for step in document["step"]]
    if not 1 <= len(moves) <= MAX_MOVES:
        return f"{len(moves)} steps, expected 1 to {MAX_MOVES}"
    if not 1 <= len(sizes) <= MAX_EXCHANGES:
        return f"{len(sizes)} exchanges, expected 1 to {MAX_EXCHANGES}"
    if (total := sum(sizes)) > MAX_SESSION_BYTES:
        return f"the bodies have {total} bytes together, at most {MAX_SESSION_BYTES} are allowed"
    if units := document["client"].get("cancel_after_utf16"):
        return f"cancel_after_utf16 is {units}; a session cancels by a step"
    for exchange in document["exchange"]:
        # Between two steps time passes that no script knows of.
        if 2 * (silence := longest_silence(exchange.get("script", []))) > patience:
            return f"a silence of {silence} ms is too long between steps, the read time-out is {patience} ms"
    if (begun := sum(move.do in BEGINNINGS for move in moves)) != len(sizes):
        return f"{begun} steps begin an attempt, there are {len(sizes)} exchanges"
    return moves_problem(moves, sizes)


def longest_silence(script: list[dict[str, int]]) -> int:
    """The most ms in which a script sends nothing."""
    longest = silence = 0
    for step in script:
        silence = 0 if "send_bytes" in step else silence + step["wait_ms"]
        longest = max(longest, silence)
    return longest


def moves_problem(moves: list[Move], sizes: list[int]) -> str:
    """How the steps of a session speak of their attempts."""
    begun: dict[str | None, int] = {}  # attempt -> size of the body of its exchange
    for number, move in enumerate(moves, 1):
        begins = move.do in BEGINNINGS
        for name in (move.of,) if begins else (move.attempt,):
            if name is not None and name not in begun:
                return f"step {number} is about the attempt {name!r}, which no step has begun"
        if begins and move.attempt in begun:
            return f"step {number} begins the attempt {move.attempt!r} again"
        if begins:
            begun[move.attempt] = sizes[len(begun)]
        if (move.until_bytes or 0) > begun.get(move.attempt, 0):
            return f"step {number} reads until byte {move.until_bytes} of {begun[move.attempt]}"
    return ""


def label_document(archive: Archive, folder: str, contract: str, shape: Shape) -> tuple[dict[str, Any], str]:
    """The label and "", or nothing to rely on and what is wrong with it."""
    document, problem = toml(archive.files.get(folder + "label.toml", b""), shape)
    if not problem and contract not in document["contract"]:
        problem = f"says nothing about {contract}"
    return document, problem


def load_label(archive: Archive, folder: str, contract: str) -> Label | None:
    """Read what label.toml states under one contract, or find what is wrong with it."""
    document, problem = label_document(archive, folder, contract, LABEL_SHAPE)
    if problem:
        archive.found.add("E-LABEL", folder + "label.toml", "is not a label for this trial (section 1)", problem)
        return None
    stated = document["contract"][contract]
    return Label(stated["outcome"], stated["preview"], stated["committed"], document["authority"], stated.get("class"))


def load_session_label(
    archive: Archive, folder: str, contract: str, moves: list[Move], rules: Contract | None
) -> SessionLabel | None:
    """The same of a session; where the contract was not copied, nobody knows its policy."""
    document, problem = label_document(archive, folder, contract, SESSION_LABEL_SHAPE)
    if not problem:
        problem = session_label_problem(document["contract"][contract], moves, rules)
    if problem:
        archive.found.add("E-LABEL", folder + "label.toml", "is not a label for this session (section A7)", problem)
        return None
    stated = document["contract"][contract]
    return SessionLabel(
        stated["stored"],
        stated["writes"],
        stated["display"],
        stated["state"],
        {name: (attempt.get("outcome"), attempt["decision"]) for name, attempt in stated["attempt"].items()},
        stated.get("fails"),
        document["authority"],
    )


def session_label_problem(stated: dict[str, Any], moves: list[Move], rules: Contract | None) -> str:
    """What the shape of a label cannot say: how it hangs together with the steps and the contract."""
    names = {move.attempt or "" for move in moves if move.do in BEGINNINGS}
    if unknown := sorted(stated["attempt"].keys() - names):
        return f"states the attempt {unknown[0]!r}, which no step begins"
    if missing := sorted(names - stated["attempt"].keys()):
        return f"says nothing about the attempt {missing[0]!r}"
    if rules and ("fails" in stated) is not (rules.policy == "naive"):
        return f"`fails` is {stated.get('fails')}, and the policy is {rules.policy}"
    return ""


def contract_file(contract: str) -> str:
    """The file of the contract NAME/N."""
    return contract.replace("/", "-") + ".toml"


def load_contract(archive: Archive, contract: str) -> Contract | None:
    """Read a contract, or find what is wrong with it."""
    place = "data/suite/contracts/" + contract_file(contract)
    document, problem = toml(archive.files.get(place, b""), CONTRACT_SHAPE)
    if not problem and document["name"] != contract:
        problem = f"name is {document['name']!r}, expected {contract!r}"
    if problem:
        archive.found.add("E-CONTRACT", place, "is not a contract that can be judged by", problem)
        return None
    return contract_of(document)


def contract_of(document: dict[str, Any]) -> Contract:
    """A contract of a document that has the shape of one."""
    dialects = {name: Rules(**rules) for name, rules in document["dialect"].items()}
    limits, switch = Limits(**document["limits"]), Switch(**document["switch"])
    return Contract(limits, switch, document["history"], dialects, **document.get("attempts", {}))


# ====================================================================================================
# Bytes to events (section J3): UTF-8 and what all framings have in common
# ====================================================================================================


class Offence(Exception):  # noqa: N818 - of the provider, not of a program
    """What its framing or its dialect does not allow."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


def require(holds: bool, why: str) -> None:
    """PROTOCOL, unless the rule holds."""
    if not holds:
        raise Offence("PROTOCOL", why)


# An offset that proves something stands after the byte that proves it.  What only the end of the body
# proves has an offset beyond the body: judge() tells the two apart.


class Stop(NamedTuple):
    """An offence of the bytes: the offset that proves it."""

    at: int
    outcome: str
    why: str


class Event(NamedTuple):
    """One event of a framing, where it stood, and where it was dispatched."""

    start: int  # where its first line, or its frame, begins
    dispatch: int  # after the byte that ends its blank line: a CR ends a line at once
    end: int  # after the whole blank line, with an LF that belongs to its CR
    type: str
    data: str


# RFC 3629 section 4 <https://www.rfc-editor.org/rfc/rfc3629#section-4>, written out:
#   UTF8-2 = %xC2-DF UTF8-tail
#   UTF8-3 = %xE0 %xA0-BF UTF8-tail / %xE1-EC 2( UTF8-tail ) / %xED %x80-9F UTF8-tail / %xEE-EF 2( ... )
#   UTF8-4 = %xF0 %x90-BF 2( UTF8-tail ) / %xF1-F3 3( UTF8-tail ) / %xF4 %x80-8F 2( UTF8-tail )
_WIDE = (
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
# What may yet become a character: every proper prefix of the above.
_UNFINISHED = (
    rb"[\xc2-\xdf]|\xe0[\xa0-\xbf]?|[\xe1-\xec\xee\xef][\x80-\xbf]?|\xed[\x80-\x9f]?"
    rb"|\xf0(?:[\x90-\xbf][\x80-\xbf]?)?|[\xf1-\xf3][\x80-\xbf]{0,2}|\xf4(?:[\x80-\x8f][\x80-\xbf]?)?"
)
WELL_FORMED = re.compile(rb"(?:[\x00-\x7f]++|" + _WIDE + rb")*+")
UNFINISHED = re.compile(rb"(?:" + _UNFINISHED + rb")?")
CUT_CHARACTER = re.compile(rb"(?:" + _UNFINISHED + rb")\Z")
# One character as `replace` reads it: a whole one, or a maximal subpart, or one byte, each of the latter
# U+FFFD <https://encoding.spec.whatwg.org/#utf-8-decoder>.  Only the byte after a subpart shows its end.
CHARACTER = re.compile(rb"[\x00-\x7f]|" + _WIDE + rb"|(?P<subpart>" + _UNFINISHED + rb")|.", re.DOTALL)
WIDE_CHARACTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
LONGEST_CUT = 3  # bytes

BOM = "\ufeff"


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def lossy(raw: bytes) -> str:
    """The text of bytes; on well-formed bytes nothing is replaced."""
    return raw.decode("utf-8", "replace")


def excess(raw: bytes, limit: int) -> tuple[int, int] | None:
    """The character that makes `raw` exceed `limit` units: where it begins, what proves it; or None."""
    if len(raw) <= limit:
        return None  # no unit takes less than a byte: most lines need no second look
    wide = lossy(raw).encode("utf-16-le")
    if len(wide) <= 2 * limit:
        return None
    fitting = wide[: 2 * limit].decode("utf-16-le", "ignore")  # ignore: half a surrogate pair
    before = fitting.encode()
    if raw.startswith(before):
        character = CHARACTER.match(raw, len(before))
    else:  # something was replaced; once in a body at most
        character = next(itertools.islice(CHARACTER.finditer(raw), len(fitting), None), None)
    if character is None:
        raise AssertionError("there are more characters than fit")
    return character.start(), character.end() + (character["subpart"] is not None)


class Sound(NamedTuple):
    """What can be read of a body as text, and what ends it."""

    body: bytes  # whole characters alone, but for those that are to be replaced
    offence: Stop | None
    ended: bool  # the end of the body is to dispatch what it cuts


def sound_prefix(body: bytes, limits: Limits, switch: Switch, ended: bool) -> Sound:
    """The body up to its first offence of encoding or input length, and that offence."""
    if switch.invalid_utf8 == "replace":
        cut = None if ended else CUT_CHARACTER.search(body, max(0, len(body) - LONGEST_CUT))
        body = body[: cut.start()] if cut else body
        offence, whole = None, body
    else:
        well_formed = WELL_FORMED.match(body)
        end = well_formed.end() if well_formed else 0
        unfinished = UNFINISHED.match(body, end)
        at = unfinished.end() if unfinished else end
        offence = None
        if at < len(body):
            offence = Stop(at + 1, "INVALID_UTF8", f"byte {body[at]:02X} at {at} cannot stand there")
        # A cut character is no offence; nor is what it stands in a whole line that could be dispatched.
        whole, ended = body[:end], ended and end == len(body)
    if over := excess(whole, limits.input_utf16):
        offence = Stop(over[1], "LIMIT", f"more than input_utf16 = {limits.input_utf16} units")
        whole = whole[: over[0]]
    return Sound(whole, offence, ended and offence is None)


def line_offence(line: bytes, start: int, limits: Limits) -> Stop | None:
    """The character that makes a line too long, before its end has come."""
    if over := excess(line, limits.line_utf16):
        return Stop(start + over[1], "LIMIT", f"a line exceeds line_utf16 = {limits.line_utf16} units")
    return None


# ====================================================================================================
# Framing `sse`: WHATWG HTML 9.2 <https://html.spec.whatwg.org/multipage/server-sent-events.html>
# ====================================================================================================

# 9.2.5 #parsing-an-event-stream
#   end-of-line = ( cr lf / cr / lf )
# The last match has no end of line: it is what the end of the body cut off, mostly nothing.
LINE = re.compile(rb"([^\r\n]*+)(\r\n?|\n|\Z)")


class Pending:
    """The fields of an event before its blank line."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.type = ""
        self.data: list[str] = []
        self.units = -1  # of the data joined by LF: one LF fewer than there are values

    def take(self, line: str) -> None:
        """9.2.6: a comment begins with a colon; a value loses one leading space."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self.data.append(value)
            self.units += 1 + units(value)
        elif field == "event":
            self.type = value

    def dispatch(self, at: int, end: int) -> Event:
        return Event(self.start, at, end, self.type or "message", "\n".join(self.data))


def sse(body: bytes, limits: Limits, switch: Switch, ended: bool) -> Iterator[Event | Stop]:
    """The events of an event stream, and last the offence that ends them, if it is one of the bytes."""
    sound = sound_prefix(body, limits, switch, ended)
    pending = Pending(0)
    for match in LINE.finditer(sound.body + b"\n\n" if sound.ended else sound.body):
        line, stop = match[1], match.end(1) + 1
        start = match.start()
        if start == 0 and line.startswith(BOM.encode()):
            start = len(BOM.encode())
            line = line[start:]
        if too_long := line_offence(line, start, limits):
            yield too_long
            return
        if not match[2]:
            break
        if line:
            pending.take(lossy(line))
            if pending.units > limits.event_utf16:
                yield Stop(stop, "LIMIT", f"an event exceeds event_utf16 = {limits.event_utf16} units")
                return
            continue
        if pending.data:
            yield pending.dispatch(stop, min(match.end(), len(body)))
        pending = Pending(match.end())
    if sound.offence:
        yield sound.offence


# ====================================================================================================
# Framing `ndjson`: one JSON text a line <https://github.com/ndjson/ndjson-spec>
# ====================================================================================================

#   3.1: each JSON text MUST be followed by the newline character '\n' (0x0A); it MAY be preceded by '\r'
LF_LINE = re.compile(rb"([^\n]*+)(\n|\Z)")


def ndjson(body: bytes, limits: Limits, switch: Switch, ended: bool) -> Iterator[Event | Stop]:
    """Every line that is not empty is an event."""
    sound = sound_prefix(body, limits, switch, ended)
    for match in LF_LINE.finditer(sound.body + b"\n" if sound.ended else sound.body):
        if too_long := line_offence(match[1], match.start(), limits):
            yield too_long
            return
        line = match[1].removesuffix(b"\r")
        if match[2] and line:
            yield Event(match.start(), match.end(), min(match.end(), len(body)), "message", lossy(line))
    if sound.offence:
        yield sound.offence


# ====================================================================================================
# Framing `eventstream` <https://smithy.io/2.0/aws/amazon-eventstream.html>
# ====================================================================================================

#   message = total length (4), headers length (4), CRC32 of these 8, headers, payload, CRC32 of all before
#   header  = name length (1), name, value type (1), value
PRELUDE_BYTES = 12
FRAME_BYTES = 16  # of a frame without headers and payload
MOST_HEADERS_BYTES = 128 << 10
MOST_PAYLOAD_BYTES = 24 << 20
STRING_VALUE = 7
# value type -> bytes of the value: true, false, int8, int16, int32, int64, timestamp, UUID
FIXED_VALUES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
COUNTED_VALUES = (6, STRING_VALUE)  # bytes and string, behind a length of 2 bytes
# :message-type -> the header that names the event, or the error
MESSAGE_TYPES = {"event": ":event-type", "exception": ":exception-type"}


def number(raw: bytes, at: int, size: int) -> int:
    """An unsigned integer, the most significant byte first."""
    require(at + size <= len(raw), "a header leaves the headers")
    return int.from_bytes(raw[at : at + size], "big")


def read_headers(raw: bytes) -> dict[str, str | None]:
    """The headers of a frame by name; None for a value that is no string."""
    headers: dict[str, str | None] = {}
    at = 0
    while at < len(raw):
        begin = at + 1
        end = begin + raw[at]
        kind = number(raw, end, 1)
        name = raw[begin:end].decode()
        require(bool(name) and name not in headers, f"a header has the name {brief(name)}, empty or there twice")
        require(kind in FIXED_VALUES or kind in COUNTED_VALUES, f"a header has the unknown type {kind}")
        begin = end + 1 + (0 if kind in FIXED_VALUES else 2)
        at = begin + (FIXED_VALUES[kind] if kind in FIXED_VALUES else number(raw, end + 1, 2))
        require(at <= len(raw), "the value of a header leaves the headers")
        headers[name] = raw[begin:at].decode() if kind == STRING_VALUE else None
    return headers


def event_name(headers: dict[str, str | None]) -> str:
    """The type of a frame's event."""
    kind = headers.get(":message-type")
    if kind == "error":
        return "error/" + (headers.get(":error-code") or "")
    name = headers.get(MESSAGE_TYPES.get(kind or "", ""))
    require(name is not None, f"a frame has the :message-type {brief(kind)}, or no name for its event")
    return f"{kind}/{name}"


def read_frame(frame: bytes, headers_bytes: int, start: int, limits: Limits) -> Event:
    """A whole frame whose prelude is good."""
    require(zlib.crc32(frame[:-4]) == number(frame, len(frame) - 4, 4), "the message CRC is wrong")
    headers_end = PRELUDE_BYTES + headers_bytes
    try:
        headers = read_headers(frame[PRELUDE_BYTES:headers_end])
    except UnicodeDecodeError:
        raise Offence("PROTOCOL", "a name or a string among the headers is no UTF-8") from None
    try:
        payload = frame[headers_end:-4].decode()
    except UnicodeDecodeError as error:
        raise Offence("INVALID_UTF8", f"the payload is no UTF-8: {error.reason}") from None
    if units(payload) > limits.event_utf16:
        raise Offence("LIMIT", f"an event exceeds event_utf16 = {limits.event_utf16} units")
    end = start + len(frame)
    return Event(start, end, end, event_name(headers), payload)


def prelude_offence(size: int, headers_bytes: int, crc_holds: bool, at: int) -> Stop | None:
    """What the first 12 bytes of a frame already show."""
    if not crc_holds:
        return Stop(at, "PROTOCOL", "the prelude CRC is wrong")
    if headers_bytes > size - FRAME_BYTES:
        return Stop(at, "PROTOCOL", f"a frame of {size} bytes cannot have {headers_bytes} bytes of headers")
    if headers_bytes > MOST_HEADERS_BYTES or size - headers_bytes - FRAME_BYTES > MOST_PAYLOAD_BYTES:
        return Stop(at, "LIMIT", f"a frame of {size} bytes with {headers_bytes} bytes of headers is too long")
    return None


def eventstream(body: bytes, limits: Limits, switch: Switch, ended: bool) -> Iterator[Event | Stop]:  # noqa: ARG001
    """The events of the whole frames; nothing can end a frame but its last byte."""
    sound = body[: limits.input_utf16]
    start = 0
    while len(sound) - start >= PRELUDE_BYTES:
        size, headers_bytes, crc = (number(sound, start + at, 4) for at in (0, 4, 8))
        crc_holds = zlib.crc32(sound[start : start + 8]) == crc
        if broken := prelude_offence(size, headers_bytes, crc_holds, start + PRELUDE_BYTES):
            yield broken
            return
        end = start + size
        if end > len(sound):
            break
        try:
            yield read_frame(sound[start:end], headers_bytes, start, limits)
        except Offence as offence:
            yield Stop(end, offence.outcome, offence.why)
            return
        start = end
    if len(body) > len(sound):
        yield Stop(len(sound) + 1, "LIMIT", f"more than input_utf16 = {limits.input_utf16} bytes")


# What reads the events of a body, by the name a contract has for its framing.
Framing = Callable[[bytes, Limits, Switch, bool], Iterator[Event | Stop]]
EVENT_FRAMINGS: dict[str, Framing] = {"sse": sse, "ndjson": ndjson, "eventstream": eventstream}

# ====================================================================================================
# Events to signals (section J4): what the dialects have in common
# ====================================================================================================


class Signal(NamedTuple):
    """What an event says to the turn."""

    kind: str  # one of SIGNALS
    value: str = ""  # a text, a fragment, the raw reason, or the kind of a block
    candidate: int = 0
    block: int | None = None
    call: int | None = None  # of a `tool`
    id: str | None = None
    name: str | None = None
    only: str = ""  # UNOPENED, or the kind that the block must have if it is open
    free_text: bool = False  # the arguments are not asked for JSON


CONTENT = ("text", "refusal", "reasoning", "tool")
SIGNALS = ("start", "open", "close", *CONTENT, "finish", "usage", "meta", "unknown", "error", "done")

FUNCTION_CALL = -1  # the call of the member `function_call`, which has no index
NEW_CALL = -2  # a call of its own for every signal
UNOPENED = "only where the block was never open"
TOOL_BLOCKS = 1_000_000  # cohere counts its calls and its contents apart

START, USAGE, META = Signal("start"), Signal("usage"), Signal("meta")
UNKNOWN, ERROR, DONE = Signal("unknown"), Signal("error"), Signal("done")

KINDS = {str: "a string", dict: "an object", list: "a list", int: "an integer that is not negative", bool: "a boolean"}


def json_object(event: Event, json_depth: int) -> dict[str, Any]:
    """The one JSON object that an event must hold."""
    try:
        value = strict_json(event.data, json_depth)
    except NotStrictError as error:
        raise Offence("INVALID_JSON", str(error)) from None
    require(type(value) is dict, "the event is not a JSON object")
    return value  # type: ignore[no-any-return]


def optional(holder: dict[str, Any], name: str, kind: type) -> Any:
    """A member of that type, or None: absent and null alike."""
    value: Any = holder.get(name)
    # type() and not isinstance(): True is no integer here.
    good = value is None or (type(value) is kind and not (type(value) is int and value < 0))
    require(good, f"{name} is not {KINDS[kind]}")
    return value


def needed(holder: dict[str, Any], name: str, kind: type) -> Any:
    """A member of that type, which must be there."""
    value = optional(holder, name, kind)
    require(value is not None, f"{name} is not there")
    return value


def needed_path(holder: dict[str, Any], *names: str) -> dict[str, Any]:
    """The object at the end of a path of objects."""
    for name in names:
        holder = needed(holder, name, dict)
    return holder


def objects(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects; an absent one is empty."""
    values: list[dict[str, Any]] = optional(holder, name, list) or []
    require(all(type(value) is dict for value in values), f"{name} does not hold objects alone")
    return values


def assistant(holder: dict[str, Any]) -> None:
    """A role is that of the assistant, where there is one."""
    require(holder.get("role") in (None, "assistant"), "the role is not assistant")


def named(event: Event, value: dict[str, Any]) -> str:
    """The type of an event that names it twice."""
    kind: str = needed(value, "type", str)
    require(event.type in ("message", kind), f"the event field is {event.type!r}, type is {kind!r}")
    return kind


def said(kind: str, value: str | None, candidate: int = 0, block: int | None = None) -> list[Signal]:
    """A text, refusal or reasoning, unless it is empty."""
    return [Signal(kind, value, candidate, block)] if value else []


def arguments_text(arguments: dict[str, Any] | None) -> str:
    """The text of arguments that came as an object."""
    return canonical(arguments or {}).decode()


# ====================================================================================================
# The dialects, each a function (sections J4.1 to J4.8)
# ====================================================================================================


# --- openai-chat <https://github.com/openai/openai-openapi>, mistral <https://docs.mistral.ai/api/>


class Spelling(NamedTuple):
    """How two providers that share a format differ."""

    content: Callable[[dict[str, Any]], tuple[str, str]]  # of a delta: its reasoning and its text
    arguments: Callable[[dict[str, Any]], str | None]  # of a function
    call_index: Callable[[dict[str, Any], str, type], int | None]  # of a call


def openai_chat(event: Event, json_depth: int) -> list[Signal]:
    """Chat completion chunks."""
    return chat_chunk(event, json_depth, Spelling(openai_content, openai_arguments, needed))


def mistral(event: Event, json_depth: int) -> list[Signal]:
    """The same, but that content may be a list, arguments an object, and calls without an index."""
    return chat_chunk(event, json_depth, Spelling(mistral_content, mistral_arguments, optional))


def openai_content(delta: dict[str, Any]) -> tuple[str, str]:
    """Content is text."""
    return "", optional(delta, "content", str) or ""


def mistral_content(delta: dict[str, Any]) -> tuple[str, str]:
    """Content is text, or a list of text and thinking."""
    if type(delta.get("content")) is not list:
        return openai_content(delta)
    thoughts, texts = [], []
    for part in objects(delta, "content"):
        kind = needed(part, "type", str)
        if kind == "text":
            texts.append(needed(part, "text", str))
        elif kind == "thinking":
            needed(part, "thinking", list)
            thoughts += [optional(thought, "text", str) or "" for thought in objects(part, "thinking")]
    return "".join(thoughts), "".join(texts)


def openai_arguments(function: dict[str, Any]) -> str | None:
    """A fragment of text."""
    arguments: str | None = optional(function, "arguments", str)
    return arguments


def mistral_arguments(function: dict[str, Any]) -> str | None:
    """A fragment of text, or all of them as an object."""
    arguments = function.get("arguments")
    return arguments_text(arguments) if type(arguments) is dict else openai_arguments(function)


def chat_chunk(event: Event, json_depth: int, spelling: Spelling) -> list[Signal]:
    """The signals of a chunk."""
    if event.data == "[DONE]":
        return [DONE]
    chunk = json_object(event, json_depth)
    if chunk.get("error") is not None or chunk.get("object") == "error" or event.type == "error":
        return [ERROR]
    if chunk.get("choices") is None:
        return [UNKNOWN]
    signals: list[Signal] = []
    for choice in objects(chunk, "choices"):
        signals += chat_choice(choice, spelling)
    return signals + ([USAGE] if optional(chunk, "usage", dict) is not None else [])


def chat_choice(choice: dict[str, Any], spelling: Spelling) -> list[Signal]:
    """The signals of one choice, which is one candidate."""
    index = needed(choice, "index", int)
    delta = optional(choice, "delta", dict) or {}
    reason = optional(choice, "finish_reason", str)
    assistant(delta)
    thought, text = spelling.content(delta)
    signals = said("reasoning", optional(delta, "reasoning_content", str), index)
    signals += said("reasoning", optional(delta, "reasoning", str), index)
    signals += said("reasoning", thought, index) + said("text", text, index)
    signals += said("refusal", optional(delta, "refusal", str), index)
    signals += chat_tools(delta, index, spelling)
    if reason is not None:
        signals.append(Signal("finish", reason, index))
    return signals or [META._replace(candidate=index)]


def chat_tools(delta: dict[str, Any], candidate: int, spelling: Spelling) -> list[Signal]:
    """The calls of a delta; an empty list is none, but says that there are tools."""
    signals: list[Signal] = []
    for position, call in enumerate(objects(delta, "tool_calls")):
        index = spelling.call_index(call, "index", int)
        function = optional(call, "function", dict) or {}
        fragment, name = spelling.arguments(function) or "", optional(function, "name", str)
        number = position if index is None else index
        signals.append(Signal("tool", fragment, candidate, None, number, optional(call, "id", str), name))
    if delta.get("tool_calls") == []:
        signals.append(Signal("tool", candidate=candidate))
    function = optional(delta, "function_call", dict)
    if function is not None:
        fragment, name = spelling.arguments(function) or "", optional(function, "name", str)
        signals.append(Signal("tool", fragment, candidate, call=FUNCTION_CALL, name=name))
    return signals


# --- openai-responses <https://github.com/openai/openai-openapi>

RESPONSE_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "tool",
    "response.custom_tool_call_input.delta": "tool",
}
# terminal event -> the status it must have
RESPONSE_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete"}
# type of an item that is a call -> the member that has its arguments
RESPONSE_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def openai_responses(event: Event, json_depth: int) -> list[Signal]:
    """Events of the Responses API: items are blocks."""
    if event.data == "[DONE]":
        return [META]
    value = json_object(event, json_depth)
    kind = named(event, value)
    if kind in RESPONSE_DELTAS:
        index, delta = needed(value, "output_index", int), needed(value, "delta", str)
        tool = RESPONSE_DELTAS[kind] == "tool"
        return (
            [Signal("tool", delta, block=index, call=index)] if tool else said(RESPONSE_DELTAS[kind], delta, 0, index)
        )
    if kind in RESPONSE_ENDS:
        return response_end(needed(value, "response", dict), RESPONSE_ENDS[kind])
    if kind == "response.output_item.added":
        return response_item(needed(value, "output_index", int), needed(value, "item", dict))
    if kind == "response.output_item.done":
        status = optional(needed(value, "item", dict), "status", str)
        require(status in (None, "completed", "incomplete"), f"an item is done with the status {status!r}")
        return [Signal("close", status or "", block=needed(value, "output_index", int))]
    if kind == "response.created":
        return [START]
    if kind in ("error", "response.failed"):
        return [ERROR]
    return [META] if kind.startswith("response.") or kind == "keepalive" else [UNKNOWN]


def response_item(index: int, item: dict[str, Any]) -> list[Signal]:
    """An item opens a block, and a call where it is one."""
    kind = needed(item, "type", str)
    signals = [Signal("open", kind, block=index)]
    if kind in RESPONSE_CALLS:
        arguments = optional(item, RESPONSE_CALLS[kind], str) or ""
        call = Signal("tool", arguments, 0, index, index, optional(item, "call_id", str), optional(item, "name", str))
        signals.append(call._replace(free_text=kind == "custom_tool_call"))
    return signals


def response_end(response: dict[str, Any], status: str) -> list[Signal]:
    """The terminal events; why a response is incomplete is their raw reason."""
    found = needed(response, "status", str)
    require(found == status, f"the status is {found!r}, the event says {status!r}")
    usage = optional(response, "usage", dict)
    details = (optional(response, "incomplete_details", dict) or {}) if status == "incomplete" else {}
    reason = optional(details, "reason", str)
    finish = Signal("finish", status if reason is None else reason)
    return [*([] if usage is None else [USAGE]), finish, DONE]


# --- anthropic <https://platform.claude.com/docs/en/build-with-claude/streaming>


def anthropic(event: Event, json_depth: int) -> list[Signal]:
    """Events of the Messages API."""
    value = json_object(event, json_depth)
    kind = named(event, value)
    if kind == "content_block_delta":
        return anthropic_delta(needed(value, "index", int), needed(value, "delta", dict))
    if kind == "content_block_start":
        return anthropic_block(needed(value, "index", int), needed(value, "content_block", dict))
    if kind == "content_block_stop":
        return [Signal("close", block=needed(value, "index", int))]
    if kind == "message_start":
        needed(value, "message", dict)
        return [START]
    if kind == "message_delta":
        reason = optional(needed(value, "delta", dict), "stop_reason", str)
        usage = [] if optional(value, "usage", dict) is None else [USAGE]
        return usage if reason is None else [*usage, Signal("finish", reason)]
    return {"ping": [META], "error": [ERROR], "message_stop": [DONE]}.get(kind, [UNKNOWN])


def anthropic_block(index: int, block: dict[str, Any]) -> list[Signal]:
    """A block opens, with a first text or as a call."""
    kind = needed(block, "type", str)
    signals = [Signal("open", kind, block=index)]
    if kind == "text":
        signals += said("text", optional(block, "text", str), 0, index)
    elif kind == "tool_use":
        signals.append(Signal("tool", "", 0, index, index, needed(block, "id", str), needed(block, "name", str)))
    return signals


def anthropic_delta(index: int, delta: dict[str, Any]) -> list[Signal]:
    """Input of other blocks than tool_use is the server's own and has no effect."""
    kind = needed(delta, "type", str)
    if kind == "text_delta":
        return said("text", needed(delta, "text", str), 0, index)
    if kind == "thinking_delta":
        return said("reasoning", needed(delta, "thinking", str), 0, index)
    if kind == "input_json_delta":
        fragment = needed(delta, "partial_json", str)
        return [Signal("tool", fragment, block=index, call=index, only="tool_use")]
    return [UNKNOWN]


# --- gemini <https://ai.google.dev/api/generate-content>


def gemini(event: Event, json_depth: int) -> list[Signal]:
    """Events of streamGenerateContent, each a whole response; the event's type is not used."""
    value = json_object(event, json_depth)
    if value.get("error") is not None:
        return [ERROR]
    feedback = optional(value, "promptFeedback", dict)
    blocked = optional(feedback or {}, "blockReason", str)
    if blocked is not None:
        return [Signal("finish", "prompt:" + blocked)]
    signals: list[Signal] = []
    for candidate in objects(value, "candidates"):
        signals += gemini_candidate(candidate)
    if optional(value, "usageMetadata", dict) is not None:
        signals.append(USAGE)
    if not signals and feedback is None and value.get("candidates") is None:
        return [UNKNOWN]
    return signals


def gemini_candidate(candidate: dict[str, Any]) -> list[Signal]:
    """The parts of a candidate, then its finish."""
    index = optional(candidate, "index", int) or 0
    signals: list[Signal] = []
    for part in objects(optional(candidate, "content", dict) or {}, "parts"):
        text, call = optional(part, "text", str), optional(part, "functionCall", dict)
        signals += said("reasoning" if part.get("thought") is True else "text", text, index)
        if call is not None:
            # Arguments in parts must not be taken for whole.
            parts = call.get("willContinue") is True or call.get("partialArgs") is not None
            require(not parts, "a call comes in parts")
            name, identity = needed(call, "name", str), optional(call, "id", str)
            fragment = arguments_text(optional(call, "args", dict))
            signals.append(Signal("tool", fragment, index, call=NEW_CALL, id=identity, name=name))
    if reason := optional(candidate, "finishReason", str):
        signals.append(Signal("finish", reason, index))
    return signals or [META._replace(candidate=index)]


# --- bedrock <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>


BEDROCK_EVENTS = (
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata",
)  # fmt: skip


def bedrock(event: Event, json_depth: int) -> list[Signal]:
    """Events of ConverseStream, named by their frames."""
    kind = event.type.removeprefix("event/")
    if kind not in BEDROCK_EVENTS:  # what an error or an unknown event holds is not looked at
        return [UNKNOWN if event.type.startswith("event/") else ERROR]
    value = json_object(event, json_depth)
    if kind == "contentBlockDelta":
        return bedrock_delta(needed(value, "contentBlockIndex", int), needed(value, "delta", dict))
    if kind == "contentBlockStart":
        return bedrock_start(needed(value, "contentBlockIndex", int), optional(value, "start", dict) or {})
    if kind == "contentBlockStop":
        return [Signal("close", block=needed(value, "contentBlockIndex", int))]
    if kind == "messageStop":
        return [Signal("finish", needed(value, "stopReason", str)), DONE]
    if kind == "metadata":
        return [] if optional(value, "usage", dict) is None else [USAGE]
    return [START]


def bedrock_start(index: int, start: dict[str, Any]) -> list[Signal]:
    """A block opens, as a call or as something else."""
    tool = optional(start, "toolUse", dict)
    if tool is None:
        return [Signal("open", "other", block=index)]
    call = Signal("tool", "", 0, index, index, needed(tool, "toolUseId", str), needed(tool, "name", str))
    return [Signal("open", "tool_use", block=index), call]


def bedrock_delta(index: int, delta: dict[str, Any]) -> list[Signal]:
    """Text blocks have no start: their first delta opens them."""
    text, tool = optional(delta, "text", str), optional(delta, "toolUse", dict)
    thought = optional(optional(delta, "reasoningContent", dict) or {}, "text", str)
    signals = [] if tool is not None else [Signal("open", "text", block=index, only=UNOPENED)]
    signals += said("text", text, 0, index)
    if tool is not None:
        signals.append(Signal("tool", optional(tool, "input", str) or "", block=index, call=index))
    return signals + said("reasoning", thought, 0, index)


# --- cohere <https://docs.cohere.com/v2/docs/streaming>


def cohere(event: Event, json_depth: int) -> list[Signal]:
    """Events of the chat API, version 2."""
    if event.data == "[DONE]":
        return [META]
    value = json_object(event, json_depth)
    kind = named(event, value)
    if kind in ("content-start", "content-delta"):
        return cohere_content(value, opens=kind == "content-start")
    if kind in ("tool-call-start", "tool-call-delta"):
        return cohere_call(value, opens=kind == "tool-call-start")
    if kind in ("content-end", "tool-call-end"):
        first = TOOL_BLOCKS if kind == "tool-call-end" else 0
        return [Signal("close", block=first + needed(value, "index", int))]
    if kind == "tool-plan-delta":
        return said("reasoning", optional(needed_path(value, "delta", "message"), "tool_plan", str))
    if kind == "message-end":
        delta = needed(value, "delta", dict)
        usage = [] if optional(delta, "usage", dict) is None else [USAGE]
        return [*usage, Signal("finish", needed(delta, "finish_reason", str)), DONE]
    known = {"message-start": [START], "citation-start": [META], "citation-end": [META]}
    return known.get(kind, [UNKNOWN])


def cohere_content(value: dict[str, Any], opens: bool) -> list[Signal]:
    """A piece of content, the first with the kind of its block."""
    index, content = needed(value, "index", int), needed_path(value, "delta", "message", "content")
    signals = [Signal("open", optional(content, "type", str) or "", block=index)] if opens else []
    signals += said("text", optional(content, "text", str), 0, index)
    return signals + said("reasoning", optional(content, "thinking", str), 0, index)


def cohere_call(value: dict[str, Any], opens: bool) -> list[Signal]:
    """A piece of a call, the first with its id and name."""
    index, call = needed(value, "index", int), needed_path(value, "delta", "message", "tool_calls")
    function, block = needed(call, "function", dict), TOOL_BLOCKS + index
    if not opens:
        return [Signal("tool", needed(function, "arguments", str), block=block, call=index)]
    fragment = optional(function, "arguments", str) or ""
    tool = Signal("tool", fragment, 0, block, index, needed(call, "id", str), needed(function, "name", str))
    return [Signal("open", "tool", block=block), tool]


# --- ollama <https://github.com/ollama/ollama/blob/main/docs/api.md>


def ollama(event: Event, json_depth: int) -> list[Signal]:
    """Lines of the native chat API."""
    value = json_object(event, json_depth)
    if value.get("error") is not None:
        return [ERROR]
    message = optional(value, "message", dict)
    if message is None and value.get("done") is None:
        return [UNKNOWN]
    signals = ollama_message(message or {})
    if needed(value, "done", bool):
        if optional(value, "eval_count", int) is not None:
            signals.append(USAGE)
        signals += [Signal("finish", optional(value, "done_reason", str) or ""), DONE]
    return signals


def ollama_message(message: dict[str, Any]) -> list[Signal]:
    """A piece of the answer; calls come whole."""
    assistant(message)
    text = optional(message, "content", str)
    signals = said("reasoning", optional(message, "thinking", str)) + said("text", text)
    for call in objects(message, "tool_calls"):
        function = needed(call, "function", dict)
        fragment = arguments_text(optional(function, "arguments", dict))
        signals.append(Signal("tool", fragment, call=NEW_CALL, name=needed(function, "name", str)))
    return signals


class Dialect(NamedTuple):
    """What this file must know of a dialect; the rest is in the contract."""

    read: Callable[[Event, int], list[Signal]]  # without memory; the int is the depth of its JSON
    texts: tuple[str, ...]  # where a careless client finds text: paths, see pieces()
    starts: bool = False  # begins in the state new
    empty_arguments: bool = False  # a call without any fragment has the arguments {}


DIALECTS: dict[str, Dialect] = {
    "openai-chat": Dialect(openai_chat, ("choices 0 delta content",)),
    "mistral": Dialect(mistral, ("choices 0 delta content", "choices 0 delta content * text")),
    "openai-responses": Dialect(openai_responses, ("type=response.output_text.delta delta",), starts=True),
    "anthropic": Dialect(anthropic, ("content_block text", "delta text"), starts=True, empty_arguments=True),
    "gemini": Dialect(gemini, ("candidates 0 content parts * -thought text",)),
    "bedrock": Dialect(bedrock, ("delta text",), starts=True, empty_arguments=True),
    "cohere": Dialect(cohere, ("delta message content text",), starts=True),
    "ollama": Dialect(ollama, ("message content",)),
}

# ====================================================================================================
# Signals to an outcome: the turn is a table (section J5)
# ====================================================================================================

_PASSIVE = ("usage", "meta", "unknown", "error")
# state -> the signals that it knows.  A missing entry is PROTOCOL.
TURN = {
    "new": ("start", *_PASSIVE),
    "open": ("open", "close", *CONTENT, *_PASSIVE, "finish", "done"),
    "finished": (*_PASSIVE, "finish", "done"),
}
# class of the raw reason -> the outcome that it settles at once
CLASSES = {
    "answer": "",
    "tools": "",
    "truncated": "INCOMPLETE_FINISH",
    "filtered": "INCOMPLETE_FINISH",
    "paused": "INCOMPLETE_FINISH",
    "error": "PROVIDER_ERROR",
    None: "UNSUPPORTED_OUTCOME",  # a reason that the contract does not list has no class
}


class Call:
    """One proposal to call a tool, as far as it has come."""

    def __init__(self, candidate: int, free_text: bool) -> None:
        self.candidate = candidate
        self.free_text = free_text
        self.id: str | None = None
        self.name: str | None = None
        self.fragments: list[str] = []

    def identify(self, id_: str | None, name: str | None) -> bool:
        """Take an id, then a name; False at the first that is another than before."""
        if id_ is not None and self.id not in (None, id_):
            return False
        self.id = self.id if id_ is None else id_
        if name is not None and self.name not in (None, name):
            return False
        self.name = self.name if name is None else name
        return True


class Turn:
    """Where a turn stands: one of the states of TURN, or the outcome it was settled with."""

    def __init__(self, dialect: str, contract: Contract, cancel_after: int | None) -> None:
        self.dialect = DIALECTS[dialect]
        self.rules = contract.dialects[dialect]
        self.switch = contract.switch
        self.limits = contract.limits
        self.cancel_after = cancel_after
        self.state = "new" if self.dialect.starts else "open"
        self.why = ""
        self.blocks: dict[int | None, str] = {}  # those that are open, with their kinds
        self.opened: set[int | None] = set()  # those that ever were
        self.unfinished: set[int] = set()  # candidates
        self.finished: dict[int, tuple[str, str]] = {}  # candidate -> raw reason, class
        self.calls: dict[tuple[int, int], Call] = {}  # in the order they were opened
        self.callers: set[int] = set()  # candidates with a call
        self.refusals: set[int] = set()  # candidates with a refusal
        self.texts: list[str] = []  # of candidate 0
        self.preview_units = 0
        self.output_units = 0
        self.usage = False
        self.unknown_events = 0
        self.reason: str | None = None  # of candidate 0, the last seen
        self.cut_block = False  # a block was closed as incomplete
        self.ending: str | None = None  # the class of the turn, beside the outcomes that have one

    @property
    def settled(self) -> bool:
        return self.state not in TURN

    def settle(self, outcome: str, why: str, ending: str | None = None) -> None:
        self.state, self.why, self.ending = outcome, why, ending

    def take(self, signals: list[Signal]) -> list[str]:
        """The signals of one event, until one of them settles the turn."""
        signals = [signal for signal in signals if self.applies(signal)] or [META]
        if problem := next(filter(None, map(self.not_allowed, signals)), ""):
            self.settle("PROTOCOL", problem)
        for signal in signals:
            if not self.settled:
                self.take_signal(signal)
        return [signal.kind for signal in signals]

    def applies(self, signal: Signal) -> bool:
        """Whether a signal is one here: some hang on the block they speak of."""
        if signal.only == UNOPENED:
            return signal.block not in self.opened
        return not signal.only or self.blocks.get(signal.block, signal.only) == signal.only

    def not_allowed(self, signal: Signal) -> str:
        """What the contract does not allow in any state."""
        if signal.kind == "unknown" and self.switch.unknown_event == "protocol":
            return "an event that the dialect does not know"
        if signal.candidate != 0 and self.switch.candidates == "one":
            return f"candidate {signal.candidate}, and there is to be one"
        if signal.kind in ("tool", "refusal") and "tools" not in self.rules.results:
            return f"a signal {signal.kind}, and the results are {self.rules.results}"
        return ""

    def take_signal(self, signal: Signal) -> None:
        before = self.state
        if signal.kind == "finish" and signal.candidate == 0:
            self.reason = signal.value
        if signal.kind not in TURN[before]:
            shown = f"finish_reason {signal.value!r}" if signal.kind == "finish" else f"the signal {signal.kind}"
            self.settle("PROTOCOL", f"{shown} in the state {before}")
            return
        if effect := EFFECTS.get(signal.kind):
            effect(self, signal)
        if self.settled:
            return
        if signal.kind == "start":
            self.state = "open"
        elif self.unfinished or self.finished:
            self.state = "open" if self.unfinished else "finished"

    # ---- blocks

    def open(self, signal: Signal) -> None:
        if signal.block in self.opened:
            self.settle("PROTOCOL", f"block {signal.block} is opened again")
        self.opened.add(signal.block)
        self.blocks[signal.block] = signal.value

    def close(self, signal: Signal) -> None:
        self.cut_block |= signal.value == "incomplete"
        if self.blocks.pop(signal.block, None) is None:
            self.settle("PROTOCOL", f"block {signal.block} is closed and was not open")

    # ---- content

    def content(self, signal: Signal) -> None:
        if signal.candidate in self.finished:
            self.settle("PROTOCOL", f"a signal {signal.kind} of candidate {signal.candidate}, which has finished")
            return
        if signal.block is not None and signal.block not in self.blocks:
            self.settle("PROTOCOL", f"a signal {signal.kind} in block {signal.block}, which is not open")
            return
        self.unfinished.add(signal.candidate)
        # Before the call: a signal that is too long is not added, nor is the call that it would have opened.
        grown = self.output_units + units(signal.value)
        if grown > self.limits.output_utf16:
            self.settle("LIMIT", f"the output exceeds output_utf16 = {self.limits.output_utf16} units")
            return
        self.output_units = grown
        call = self.call(signal) if signal.kind == "tool" else None
        if call and not call.identify(signal.id, signal.name):
            self.settle("PROTOCOL", f"a call has the id {call.id!r} and the name {call.name!r}, then others")
            return
        if call:
            call.fragments.append(signal.value)
        elif signal.kind == "refusal":
            self.refusals.add(signal.candidate)
        elif signal.kind == "text" and signal.candidate == 0:
            self.preview(signal.value)

    def preview(self, text: str) -> None:
        self.texts.append(text)
        self.preview_units += units(text)
        if self.cancel_after is not None and self.preview_units >= self.cancel_after:
            shown = f"the preview holds {self.preview_units} units, cancelled from {self.cancel_after}"
            self.settle("CANCELLED", shown)

    def call(self, signal: Signal) -> Call | None:
        """The call that a signal belongs to, opened by its first; None for an empty list of calls."""
        if signal.call is None:
            return None
        # Calls without a number of their own count downwards from NEW_CALL.
        number = NEW_CALL - len(self.calls) if signal.call == NEW_CALL else signal.call
        self.callers.add(signal.candidate)
        return self.calls.setdefault((signal.candidate, number), Call(signal.candidate, signal.free_text))

    def arguments(self, call: Call) -> str:
        return "".join(call.fragments) or ("{}" if self.dialect.empty_arguments else "")

    # ---- what settles

    def error(self, _signal: Signal) -> None:
        self.settle("PROVIDER_ERROR", "the provider reports an error", "error")

    def count_usage(self, _signal: Signal) -> None:
        self.usage = True

    def count_unknown(self, _signal: Signal) -> None:
        self.unknown_events += 1

    def finish(self, signal: Signal) -> None:
        reason, candidate = signal.value, signal.candidate
        ending = self.rules.reasons.get(reason)
        shown = f"finish_reason {reason!r}"
        called = candidate in self.callers
        if candidate in self.finished:
            self.finish_again(reason, ending, self.finished[candidate][0])
        elif self.blocks:
            self.settle("PROTOCOL", f"{shown} while block {next(iter(self.blocks))} is open")
        elif ending == "answer" and candidate in self.refusals:
            self.settle("INCOMPLETE_FINISH", f"{shown} after a refusal", "filtered")
        elif outcome := CLASSES[ending]:
            self.settle(outcome, shown, ending)
        elif ending == "tools" and not called:
            self.settle("PROTOCOL", f"{shown} without any call")
        elif self.cut_block:
            self.settle("PROTOCOL", f"{shown} after a block that was closed as incomplete")
        elif (result := "tools" if called else "answer") not in self.rules.results:
            self.settle("UNSUPPORTED_OUTCOME", f"{shown} is {result}, the results are {self.rules.results}")
        else:
            self.unfinished.discard(candidate)
            self.finished[candidate] = reason, result

    def finish_again(self, reason: str, ending: str | None, before: str) -> None:
        shown = f"finish_reason {reason!r} after {before!r}"
        if self.switch.late_filter == "filtered" and ending == "filtered":
            self.settle("INCOMPLETE_FINISH", shown, ending)
        elif self.switch.repeated_finish != "same" or reason != before:
            self.settle("PROTOCOL", shown)

    def done(self, _signal: Signal) -> None:
        if self.state == "finished":
            self.complete(self.finished[0][1] if 0 in self.finished else None, "the terminal event")
            return
        shown = f"the signal done in the state {self.state}"
        if self.blocks or self.finished or self.switch.terminal_without_finish == "protocol":
            self.settle("PROTOCOL", shown)
            return
        ending = "tools" if self.callers else "filtered" if self.refusals else "answer"
        if ending == "filtered":
            self.settle("INCOMPLETE_FINISH", f"{shown}, after a refusal", ending)
        else:
            self.complete(ending, shown)

    def meet_end(self, end: str, framing: str) -> None:
        """A read has met the end of the body."""
        if self.rules.terminal == "closed-framing":
            enough = framing != "close" or self.switch.close_delimited == "complete"
        else:
            enough = self.switch.finish_without_terminal == "complete"
        if enough and end == "eof" and self.state == "finished":
            self.complete(self.finished[0][1] if 0 in self.finished else None, "the end after a finish")
        else:
            self.settle("INCOMPLETE_STREAM", f"the end came first ({end})")

    def complete(self, ending: str | None, why: str) -> None:
        if self.switch.usage == "required" and not self.usage:
            self.settle("INCOMPLETE_STREAM", "a completion without usage")
            return
        for call in self.calls.values():
            if problem := self.call_problem(call):
                self.settle("INVALID_JSON", problem)
                return
        if not self.texts and not self.calls and self.switch.empty_completion == "refuse":
            self.settle("UNSUPPORTED_OUTCOME", "a completion without text or call")
            return
        self.settle("COMPLETE", why, ending)

    def call_problem(self, call: Call) -> str:
        """What is wrong with a call at the completion; "" where nothing is."""
        if not call.name:
            return f"the call {call.id!r} has no name"
        if call.free_text:
            return ""
        try:
            value = strict_json(self.arguments(call), self.limits.json_depth)
        except NotStrictError as error:
            return f"the arguments of {brief(call.name)} are no strict JSON: {error}"
        return "" if type(value) is dict else f"the arguments of {brief(call.name)} are no JSON object"

    def proposals(self) -> list[dict[str, Any]]:
        """The calls of candidate 0, as a history has them."""
        return [
            {"id": call.id, "name": call.name, "arguments": self.arguments(call)}
            for call in self.calls.values()
            if call.candidate == 0
        ]


EFFECTS: dict[str, Callable[[Turn, Signal], None]] = {
    "open": Turn.open,
    "close": Turn.close,
    **dict.fromkeys(CONTENT, Turn.content),
    "finish": Turn.finish,
    "usage": Turn.count_usage,
    "unknown": Turn.count_unknown,
    "error": Turn.error,
    "done": Turn.done,
}


class Step(NamedTuple):
    """One event and what it did, for --trace."""

    event: Event
    signals: list[str]
    before: str
    after: str
    texts: int  # how many pieces of text there were afterwards
    note: str


class Reading(NamedTuple):
    """What the bytes say, whoever reads them in whatever pieces."""

    settled_at: int | None  # the offset that proves the outcome; None at the end
    outcome: str
    why: str
    turn: Turn
    steps: list[Step]


def judge(
    body: bytes,
    dialect: str,
    contract: Contract,
    cancel_after: int | None = None,
    end: str = "eof",
    framing: str = "chunked",
) -> Reading:
    """Judge a body that ends in that way: one of TRANSPORT_ENDS, or one of TIMEOUTS."""
    limits, switch = contract.limits, contract.switch
    turn = Turn(dialect, contract, cancel_after)
    steps: list[Step] = []

    def reading(at: int | None) -> Reading:
        return Reading(at, turn.state, turn.why, turn, steps)

    # Only a clean end is trusted to end a line.
    ended = end == "eof" and switch.last_event == "dispatch"
    for item in EVENT_FRAMINGS[turn.rules.framing](body, limits, switch, ended):
        if not isinstance(item, Stop) and len(steps) == limits.events:
            item = Stop(item.dispatch, "LIMIT", f"more than events = {limits.events}")
        if isinstance(item, Stop):
            turn.settle(item.outcome, item.why)
            return reading(item.at if item.at <= len(body) else None)
        before = turn.state
        signals = take_event(turn, item, limits.json_depth)
        note = turn.why if turn.settled else ""
        steps.append(Step(item, signals, before, turn.state, len(turn.texts), note))
        if turn.settled:
            return reading(item.dispatch if item.dispatch <= len(body) else None)
    if end in TIMEOUTS:
        turn.settle(end, "the end came first (timeout)")
    else:
        turn.meet_end(end, framing)
    return reading(None)


def take_event(turn: Turn, event: Event, json_depth: int) -> list[str]:
    """An event is judged whole before any of its signals takes effect."""
    try:
        signals = turn.dialect.read(event, json_depth)
    except Offence as offence:
        turn.settle(offence.outcome, offence.why)
        return []
    return turn.take(signals)


# ====================================================================================================
# Time and reads (sections 4.2, 4.5, J2)
# ====================================================================================================

NEVER = float("inf")
# How a transport ends for a client that waits for it.
TRANSPORT_ENDS = {
    "complete": "eof",
    "fin": "short-body",
    "reset": "reset",
    "short-length": "short-body",
    "bad-chunk": "bad-framing",
}
TIMEOUTS = ("READ_TIMEOUT", "DEADLINE")


class Supply(NamedTuple):
    """What the server offers a client that never leaves: so many bytes, and then this end."""

    available: int
    end: str  # a transport end, or one of TIMEOUTS


def interruption(since: float, until: float, patience: int, deadline: int) -> str | None:
    """What ends a silence between two times, the earlier first; a tie is the deadline's."""
    timeout = since + patience if until - since > patience else NEVER
    limit = deadline if until >= deadline else NEVER
    if timeout == limit == NEVER:
        return None
    return "READ_TIMEOUT" if timeout < limit else "DEADLINE"


def supply(case: Case, deadline_ms: int) -> Supply:
    """Play the script on paper.  Sending takes no time; only silence does."""
    clock = since = sent = 0
    for kind, amount in case.script:
        if kind == "send_bytes":
            sent, since = sent + amount, clock
            continue
        clock += amount
        if end := interruption(since, clock, case.read_timeout_ms, deadline_ms):
            return Supply(sent, end)
    if (case.framing, case.ending) == ("close", "fin"):
        return Supply(sent, "eof")  # where closing is the framing, a FIN is how a body ends
    if case.ending == "stall":
        end = interruption(since, NEVER, case.read_timeout_ms, deadline_ms)
        return Supply(sent, end or "DEADLINE")
    return Supply(sent, TRANSPORT_ENDS[case.ending])


def count_reads(until: int, length: int, chunk_ends: list[int], cap: int) -> tuple[int, int]:
    """How many reads it takes to have the first `until` bytes, and how many bytes they return."""
    reads = start = 0
    for end in [*(at for at in chunk_ends if at < length), length]:
        needed = -((start - min(end, until)) // cap)  # rounded up
        reads += needed
        if until <= end:
            return reads, min(end, start + needed * cap)
        start = end
    raise AssertionError("until is at most length")


def read_ends(length: int, chunk_ends: list[int], cap: int) -> list[int]:
    """The offset after each read that returns bytes, had the client read to the end."""
    ends: list[int] = []
    start = 0
    for end in [*(at for at in chunk_ends if at < length), length]:
        ends += range(start + cap, end, cap)
        if end > start:
            ends.append(end)
        start = end
    return ends


class Derived(NamedTuple):
    """What is right for one trial: everything a subject could claim."""

    outcome: str
    why: str
    preview: str
    committed: bool
    reads: int
    consumed_bytes: int
    transport_end: str
    finish_reason: str | None
    ending: str | None  # the class of the turn
    unknown_events: int
    proposals: list[dict[str, Any]]  # the calls of the answer, where it has any
    settled_at: int | None
    available: int
    steps: list[Step]
    texts: list[str]

    @property
    def answer(self) -> dict[str, Any]:
        """The entry of the history (section J6)."""
        calls = {"tool_calls": self.proposals} if self.ending == "tools" else {}
        return {"role": "assistant", "content": self.preview} | calls


def refusal(case: Case, rules: Rules, switch: Switch) -> tuple[str, str] | None:
    """Outcome and reason of a refusal before the first read."""
    if case.status != 200:
        return f"HTTP_{case.status}", f"the status is {case.status}"
    essence = case.content_type.split(";")[0].strip(" \t").lower()
    if essence != rules.media_type and switch.content_type == "refuse":
        return "CONTENT_TYPE", f"the content type is {case.content_type!r}, not {rules.media_type!r}"
    return None


def derive(case: Case, contract: Contract) -> Derived:
    """The whole of docs/judging.md for one case under one contract."""
    if refused := refusal(case, contract.dialects[case.dialect], contract.switch):
        outcome, why = refused
        return Derived(outcome, why, "", False, 0, 0, "left", None, None, 0, [], 0, len(case.body), [], [])
    available, end = supply(case, contract.limits.deadline_ms)
    reading = judge(case.body[:available], case.dialect, contract, case.cancel_after, end, case.framing)
    turn, at_end = reading.turn, reading.settled_at is None
    until = available if reading.settled_at is None else reading.settled_at
    reads, consumed = count_reads(until, available, case.chunk_ends, case.read_cap)
    ended = "timeout" if end in TIMEOUTS else end
    return Derived(
        outcome=reading.outcome,
        why=reading.why,
        preview="".join(turn.texts),
        committed=reading.outcome == "COMPLETE" and contract.history.get(turn.ending or "") == "append",
        reads=reads + at_end,  # the read that met the end
        consumed_bytes=consumed,
        transport_end=ended if at_end else "left",
        finish_reason=turn.reason,
        ending=turn.ending,
        unknown_events=turn.unknown_events,
        proposals=turn.proposals() if turn.ending == "tools" else [],
        settled_at=reading.settled_at,
        available=available,
        steps=reading.steps,
        texts=turn.texts,
    )


# ====================================================================================================
# Sessions, replayed (sections A1 to A4): who may publish
# ====================================================================================================

# A commit is refused by what the transport or the provider did: the attempt has failed.
FAILURES = re.compile(r"PROVIDER_ERROR|READ_TIMEOUT|DEADLINE|HTTP_[0-9]{3}")
# What a naive screen calls an interruption when a read meets it.
NAIVE_ERRORS = ("PROVIDER_ERROR", "PROTOCOL", "INVALID_JSON", "INVALID_UTF8", "LIMIT")
RETRIED = ("refused", "failed", "cancelled")

DENIED = "denied"


class Kept(NamedTuple):
    """A history: what was there before the session, and what the session wrote."""

    base: list[dict[str, Any]]
    own: list[dict[str, Any]]

    @property
    def texts(self) -> list[str]:
        """The answers of the session."""
        return [entry["content"] for entry in self.own[1::2]]


class Attempt:
    """One attempt of a session: how far its reads have come, and what became of it."""

    def __init__(self, name: str, derived: Derived, case: Case) -> None:
        self.name = name
        self.case = case  # the exchange that answers it
        self.derived = derived  # what its body says, had it been read until the outcome
        self.reads = 0
        self.consumed = 0
        self.closed = False  # nothing more is read
        self.given: str | None = None  # the outcome of its decision, whatever the turn says
        self.marks: set[str] = set()  # the decisions that were ever taken about it

    def read(self, until: int | None) -> None:
        """Logical reads, until the turn is settled or so many bytes were consumed."""
        derived, case = self.derived, self.case
        reads, consumed = derived.reads, derived.consumed_bytes
        proven = derived.available if derived.settled_at is None else derived.settled_at
        if until is not None and until <= proven:
            reads, consumed = count_reads(until, derived.available, case.chunk_ends, case.read_cap)
        if reads > self.reads and not self.closed:
            self.reads, self.consumed = reads, consumed

    @property
    def settled(self) -> bool:
        return self.reads == self.derived.reads

    @property
    def events(self) -> list[Step]:
        """The events of what was consumed; what only the end dispatches comes with the end."""
        return [step for step in self.derived.steps if self.settled or step.event.dispatch <= self.consumed]

    @property
    def preview(self) -> str:
        if self.settled:
            return self.derived.preview
        return "".join(self.derived.texts[: self.events[-1].texts]) if self.events else ""

    @property
    def outcome(self) -> str | None:
        return self.given or (self.derived.outcome if self.settled else None)

    @property
    def decision(self) -> str:
        """The one decision of an owned attempt; of a naive one the first of DECISIONS that was ever taken."""
        return next(decision for decision in DECISIONS if decision in self.marks or decision == "open")


class Replay:
    """A session on paper: conversation, screen, and who owns the turn."""

    def __init__(self, session: Session, contract: Contract, suite: Suite) -> None:
        self.session = session
        self.contract = contract
        self.question = {"role": "user", "content": suite.question}
        self.base: list[dict[str, Any]] = list(suite.history)  # what was there before; nothing after a clear
        self.kept: list[dict[str, Any]] = []  # questions and answers of the session
        self.writes = 0
        self.attempts: dict[str, Attempt] = {}  # in the order of their requests
        self.sent: list[Kept] = []  # the history that each request carries
        self.published: Attempt | None = None  # the one that was committed last
        self.display, self.state = "", "idle"
        # Of the owned policy alone: the task, open or not, and its one active attempt.
        self.open = False
        self.active: Attempt | None = None
        self.retries = 0
        self.journal = [self.play(move) for move in session.moves]

    def play(self, move: Move) -> dict[str, Any]:
        """One step, and its line of the journal."""
        result = POLICY_EFFECTS[self.contract.policy][move.do](self, move)
        attempt = self.attempts.get(move.attempt or "")
        return {
            "do": move.do,
            "attempt": move.attempt,
            "result": result,
            "outcome": attempt.outcome if attempt else None,
            "consumed_bytes": attempt.consumed if attempt else 0,
            "reads": attempt.reads if attempt else 0,
            "preview": attempt.preview if attempt else "",
            "display": self.display,
            "state": self.state,
            "stored": len(self.kept) // 2,
        }

    def show(self, display: str, state: str) -> None:
        self.display, self.state = display, state

    def post(self, move: Move) -> Attempt:
        """A request with the history as it is, answered by the exchange of its number."""
        case = self.session.exchange(len(self.attempts))
        attempt = Attempt(move.attempt or "", derive(case, self.contract), case)
        self.sent.append(self.history)
        self.attempts[attempt.name] = attempt
        return attempt

    def write(self, attempt: Attempt, answer: dict[str, Any]) -> None:
        """Append question and answer to the history."""
        self.kept += [self.question, answer]
        self.writes += 1
        self.published = attempt
        attempt.marks.add("accepted")

    def forget(self) -> None:
        """Clear history and screen."""
        self.base, self.kept = [], []
        self.show("", "idle")

    @property
    def history(self) -> Kept:
        return Kept(list(self.base), list(self.kept))

    @property
    def decisions(self) -> Decisions:
        """Outcome and decision of every attempt of the case; one that was denied never was."""
        asked = {name: (attempt.outcome, attempt.decision) for name, attempt in self.attempts.items()}
        return {name: asked.get(name, (None, "open")) for name in begun(self.session.moves)}

    @property
    def outcome(self) -> str | None:
        """The outcome of the attempt that was committed last, or else of the newest."""
        shown = self.published or next(reversed(self.attempts.values()), None)
        return shown.outcome if shown else None


def begun(moves: list[Move]) -> list[str]:
    """The names of the attempts of a session, in the order of their steps."""
    return [move.attempt or "" for move in moves if move.do in BEGINNINGS]


# --- the owned policy (section A2): None, or the result of the step


def owned_start(replay: Replay, move: Move) -> str | None:
    """A new attempt becomes the active one."""
    replay.active = replay.post(move)
    replay.show("", "generating")
    return None


def owned_begin(replay: Replay, move: Move) -> str | None:
    """A new task where none is open, else a further attempt of that one, if nobody owns it."""
    if replay.active:
        return DENIED
    if not replay.open:
        replay.open, replay.retries = True, 0
    return owned_start(replay, move)


def owned_supersede(replay: Replay, move: Move) -> str | None:
    """The active attempt loses its right at once."""
    if replay.active is None or replay.active.name != move.of:
        return DENIED
    replay.active.marks.add("superseded")
    return owned_start(replay, move)


def owned_retry(replay: Replay, move: Move) -> str | None:
    """In place of the newest attempt, which ended without an answer, while its task is open."""
    newest = next(reversed(replay.attempts.values()), None)
    if newest is None or newest.name != move.of or newest.decision not in RETRIED:
        return DENIED
    if not replay.open or replay.retries >= replay.contract.retries:
        return DENIED
    replay.retries += 1
    return owned_start(replay, move)


def owned_read(replay: Replay, move: Move) -> str | None:
    """Whoever may not publish any more changes nothing that is visible."""
    attempt = replay.attempts.get(move.attempt or "")
    if attempt is None:
        return DENIED
    attempt.read(move.until_bytes)
    if attempt is replay.active:
        replay.show(attempt.preview, "generating")
    return None


def owned_commit(replay: Replay, move: Move) -> str | None:
    """Ownership is asked before evidence; a decision stays what it is."""
    attempt = replay.attempts.get(move.attempt or "")
    if attempt is None:
        return DENIED
    if attempt is replay.active:
        owned_decide(replay, attempt)
    elif attempt.decision == "superseded":
        attempt.given = "SUPERSEDED"
    return {"accepted": "committed", "superseded": "superseded"}.get(attempt.decision, "refused")


def owned_decide(replay: Replay, attempt: Attempt) -> None:
    """The active attempt asks: its evidence decides."""
    replay.active = None
    if attempt.settled and attempt.derived.committed:
        replay.open = False
        replay.write(attempt, attempt.derived.answer)
        replay.show(attempt.preview, "accepted")
        return
    attempt.given = attempt.outcome or "INCOMPLETE_STREAM"
    attempt.closed = True
    attempt.marks.add("failed" if FAILURES.fullmatch(attempt.given) else "refused")
    replay.show(attempt.preview, "interrupted")


def owned_cancel(replay: Replay, move: Move) -> str | None:
    """Only what is not decided can be cancelled."""
    attempt = replay.active
    if attempt is None or attempt.name != move.attempt:
        return DENIED
    replay.active = None
    attempt.given, attempt.closed = "CANCELLED", True
    attempt.marks.add("cancelled")
    replay.show(attempt.preview, "interrupted")
    return None


def owned_clear(replay: Replay, _move: Move) -> str | None:
    """No attempt of the conversation is active any more."""
    if replay.active:
        replay.active.marks.add("superseded")
    replay.active, replay.open = None, False
    replay.forget()
    return None


# --- the naive policy (section A3): one buffer for the screen, and no owner


def naive_begin(replay: Replay, move: Move) -> str | None:
    """The screen is emptied."""
    replay.post(move)
    replay.show("", "generating")
    return None


def naive_supersede(replay: Replay, move: Move) -> str | None:
    """Nobody loses a right; only the decision has a name for it."""
    replay.attempts[move.of or ""].marks.add("superseded")
    return naive_retry(replay, move)


def naive_retry(replay: Replay, move: Move) -> str | None:
    """The screen stays as it is."""
    replay.post(move)
    replay.show(replay.display, "generating")
    return None


def naive_read(replay: Replay, move: Move) -> str | None:
    """Every text that arrives is shown; an error takes the last stored answer out again."""
    attempt = replay.attempts[move.attempt or ""]
    before, settled = attempt.preview, attempt.settled
    attempt.read(move.until_bytes)
    met = attempt.outcome if attempt.settled and not settled else None
    if met == "PROVIDER_ERROR":
        del replay.kept[-2:]
    brought = attempt.preview[len(before) :]
    replay.show(replay.display + brought, "interrupted" if met in NAIVE_ERRORS else "generating")
    return None


def naive_commit(replay: Replay, move: Move) -> str | None:
    """Whoever asks, however often, whatever was read."""
    attempt = replay.attempts[move.attempt or ""]
    replay.write(attempt, {"role": "assistant", "content": attempt.preview})
    replay.show(replay.display, "accepted")
    return "committed"


def naive_cancel(replay: Replay, move: Move) -> str | None:
    """Only the screen says it."""
    replay.attempts[move.attempt or ""].marks.add("cancelled")
    replay.show(replay.display, "interrupted")
    return None


def naive_clear(replay: Replay, _move: Move) -> str | None:
    """What comes later is appended again."""
    for attempt in replay.attempts.values():
        attempt.marks.add("superseded")
    replay.forget()
    return None


POLICY_EFFECTS: dict[str, dict[str, Callable[[Replay, Move], str | None]]] = {
    "owned": {
        "begin": owned_begin,
        "supersede": owned_supersede,
        "retry": owned_retry,
        "read": owned_read,
        "commit": owned_commit,
        "cancel": owned_cancel,
        "clear": owned_clear,
    },
    "naive": {
        "begin": naive_begin,
        "supersede": naive_supersede,
        "retry": naive_retry,
        "read": naive_read,
        "commit": naive_commit,
        "cancel": naive_cancel,
        "clear": naive_clear,
    },
}


# ====================================================================================================
# Records
# ====================================================================================================

Row = tuple[str, dict[str, Any]]  # the place of a line, and its value


def shards(archive: Archive, folder: str) -> list[str]:
    """The .jsonl files of a folder, whose numbers must have no gap."""
    paths = [path for path in archive.below(folder) if path.endswith(".jsonl")]
    for number, path in enumerate(paths):
        if path != (expected := f"{folder}trials-{number:05}.jsonl"):
            archive.found.add("E-SHARD", path, "the numbers of the files have a gap", f"expected {expected}")
            break
    return paths


def read_rows(archive: Archive, folder: str, shape: Shape) -> list[Row]:
    """Every acceptable line of the .jsonl files of a folder."""
    rows: list[Row] = []
    paths = shards(archive, folder)
    for path in paths:
        lines = read_lines(archive, path)
        if len(lines) > SHARD_LINES or (path != paths[-1] and len(lines) < SHARD_LINES):
            text = f"a file holds {SHARD_LINES} lines, only the last may hold fewer"
            archive.found.add("E-SHARD", path, text, f"{len(lines)} lines")
        for number, line in enumerate(lines, 1):
            if archive.found.full:
                break
            place = f"{path}:{number}"
            if len(line) > MAX_LINE_BYTES:
                archive.found.add("E-SIZE", place, "the line is too long", f"{len(line)} > {MAX_LINE_BYTES}")
                continue
            value = record_json(line, b"", place, shape, archive.found)
            if value is not None:
                rows.append((place, value))
    return rows


def read_lines(archive: Archive, path: str) -> list[bytes]:
    """The lines of one file, without their ends."""
    raw = archive.files.get(path)
    if raw is None:
        return []
    if not raw.endswith(b"\n"):
        archive.found.add("E-TRUNC", path, "is empty, or its last line has no LF", brief(raw[-16:]))
    return raw.removesuffix(b"\n").split(b"\n") if raw else []


def check_order(archive: Archive, planned: list[str], rows: list[Row]) -> None:
    """Every planned trial once, nothing else, in the order of the plan."""
    found = archive.found
    plan = set(planned)
    first: dict[str, str] = {}
    for place, row in rows:
        trial = row["trial"]
        if trial in first:
            found.add("E-DUP", place, "the trial is recorded twice", f"{trial}, also at {first[trial]}")
        elif trial not in plan:
            found.add("E-COVERAGE", place, "the trial was not planned", trial)
        first.setdefault(trial, place)
    for trial in planned:
        if trial not in first:
            found.add("E-COVERAGE", trial, "was planned, and has no record", f"planned in {PLAN}")
    recorded = [trial for trial in first if trial in plan]
    for trial, expected in zip(recorded, (trial for trial in planned if trial in first), strict=False):
        if trial != expected:
            witness = f"{trial}, expected {expected}"
            found.add("E-ORDER", first[trial], "the records are not in the order of the plan", witness)
            break


class Plan(NamedTuple):
    """What was going to be run."""

    subject: dict[str, Any]
    suites: list[str]
    trials: list[str]


def load_document(archive: Archive, place: str, shape: Shape) -> Any:
    """One .json file; a missing one is reported elsewhere."""
    if place not in archive.files:
        return None
    return record_json(archive.files[place], b"\n", place, shape, archive.found)


def load_plan(archive: Archive) -> Plan | None:
    """Read the plan and check that it agrees with itself."""
    document = load_document(archive, PLAN, PLAN_SHAPE)
    if document is None:
        return None
    plan = Plan(document["subject"], document["suites"], document["trials"])
    for before, trial in zip(plan.trials, plan.trials[1:], strict=False):
        if trial <= before:
            text = "the trials of the plan are not strictly increasing"
            archive.found.add("E-ORDER", PLAN, text, f"{trial} after {before}")
            break
    suites = sorted({trial.split("/")[0] for trial in plan.trials})
    if plan.suites != suites or not suites:
        text = "the suites are not those of the trials, or nothing was planned"
        archive.found.add("E-COVERAGE", PLAN, text, f"{brief(plan.suites)}, the trials say {brief(suites)}")
    return plan


class Blobs:
    """The blobs, and which of them something refers to."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.referred: set[str] = set()

    def get(self, reference: dict[str, Any] | None, place: str) -> bytes | None:
        if reference is None:
            return None
        path = "data/blobs/" + reference["sha256"]
        self.referred.add(path)
        data = self.archive.files.get(path)
        if data is None or len(data) != reference["bytes"]:
            there = "not there" if data is None else f"{len(data)} bytes"
            text = "refers to a blob that is not there or has another size"
            self.archive.found.add("E-BLOB-REF", place, text, f"{path}: {there}, {reference['bytes']} claimed")
            return None
        return data

    def check(self) -> None:
        for path in self.archive.below("data/blobs/"):
            digest = self.archive.digests.get(path)
            if digest is not None and not path.endswith(digest):
                text = "the content does not hash to the name"
                self.archive.found.add("E-BLOB-NAME", path, text, f"sha256 is {digest}")
            if path not in self.referred:
                self.archive.found.add("E-ORPHAN", path, "nothing refers to this blob", "0 references")


# ====================================================================================================
# The wire, the request, the claim of one trial
# ====================================================================================================

REQUEST_HEADERS = ("accept", "accept-encoding", "content-length", "content-type")
REQUEST = re.compile(
    rb"POST \{path\} HTTP/1\.1\nhost: \{host\}\n((?:(?:%s): [^\r\n]*\n)*)\n(.*)" % "|".join(REQUEST_HEADERS).encode(),
    re.DOTALL,
)
REQUEST_MEMBERS = {"model", "messages", "stream", "stream_options", "max_tokens", "n", "temperature"}
# RFC 9112 section 4 <https://www.rfc-editor.org/rfc/rfc9112#section-4>, one space and no folding
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [\t\x20-\x7e]*")
HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\t\x20-\x7e]*)")
PROMISED = {"short-length": 64, "fin": 1}  # bytes that a Content-Length promises beyond the body


class Trial(NamedTuple):
    """One record with everything it is judged by."""

    id: str
    place: str
    record: dict[str, Any]
    volatile: dict[str, Any] | None
    suite: Suite
    case: Case
    contract: Contract
    label: Label
    labels: list[Label]  # under all contracts of the suite
    derived: Derived
    aware: bool  # the subject was told the contract
    history: list[dict[str, Any]] | None  # as claimed
    preview: str | None  # as claimed


def expected_head(case: Case) -> tuple[int, dict[str, str]]:
    """Status and headers that a case makes the server send."""
    headers = {"content-type": case.content_type}
    if case.framing == "chunked":
        headers["transfer-encoding"] = "chunked"
    elif case.framing == "content-length":
        headers["content-length"] = str(len(case.body) + PROMISED.get(case.ending, 0))
    return case.status, headers


def parse_head(raw: bytes) -> tuple[int, dict[str, str]] | None:
    """Status and headers of a response head; None where it is none, or a header is there twice."""
    lines = raw.split(b"\r\n")
    status = STATUS_LINE.fullmatch(lines[0])
    if not status or lines[-2:] != [b"", b""]:
        return None
    headers: dict[str, str] = {}
    for line in lines[1:-2]:
        header = HEADER_LINE.fullmatch(line)
        if not header or header[1].lower().decode() in headers:
            return None
        headers[header[1].lower().decode()] = header[2].decode()
    headers.pop("connection", None)  # says nothing about the body
    return int(status[1]), headers


def check_wire(trial: Trial, blobs: Blobs) -> None:
    """What was served is what the case says, as far as it is archived."""
    record, case, found = trial.record, trial.case, blobs.archive.found
    asked = bool(record["requests"])
    status = case.status if asked else None
    if record["status"] != status:
        text = "the status served is not that of the case"
        found.add("E-STATUS", trial.place, text, f"{record['status']}, expected {status}")
    if [asked, asked] != [record[key] is not None for key in ("response_head", "body")]:
        text = "a response without a request, or the reverse"
        found.add("E-CASE-WIRE", trial.place, text, f"{len(record['requests'])} requests")
    check_head(record["response_head"], case, trial.place, blobs)
    body = blobs.get(record["body"], trial.place)
    if body is not None:
        check_prefix(body, case, trial.place, found)
        check_body(trial, body, found)


def check_head(reference: dict[str, Any] | None, case: Case, place: str, blobs: Blobs) -> None:
    """The response head must be that of the exchange."""
    head = blobs.get(reference, place)
    if head is not None and parse_head(head) != expected_head(case):
        witness = f"{brief(head)}, expected {expected_head(case)}"
        blobs.archive.found.add("E-CASE-WIRE", place, "the response head does not say what the case says", witness)


def check_prefix(body: bytes, case: Case, place: str, found: Findings) -> None:
    """The archived body must be a prefix of the exchange's."""
    if not case.body.startswith(body):
        witness = difference(body, case.body)
        found.add("E-CASE-WIRE", place, "the archived body is no prefix of the case's", witness)


def check_body(trial: Trial, body: bytes, found: Findings) -> None:
    """The archived body must be as much as was consumed."""
    consumed = (trial.record["claim"] or {}).get("consumed_bytes")
    sent = trial.volatile["sent_bytes"] if trial.volatile else len(body)
    expected = sent if consumed is None else min(consumed, sent)
    if len(body) != expected:
        text = "the archived body is not what the subject says it consumed of what was sent"
        found.add("E-CASE-WIRE", trial.place, text, f"{len(body)} bytes, {consumed} claimed, {sent} sent")


def check_volatile(trial: Trial, found: Findings) -> None:
    """What the server says of its own end must fit the record."""
    if trial.volatile is None:
        return
    check_server_end(trial.volatile, trial.record, trial.case, trial.place, found)
    check_delivery(trial.volatile, trial.record["delivered"], trial.record["claim"] or {}, trial.place, found)


def check_server_end(volatile: dict[str, Any], record: dict[str, Any], case: Case, place: str, found: Findings) -> None:
    """Whether the server was asked, and how much of the body it can have sent."""
    end, sent, size = volatile["server_end"], volatile["sent_bytes"], len(case.body)
    if (end == "not-asked") is bool(record["requests"]):
        witness = f"{end}, {len(record['requests'])} requests"
        found.add("E-VOLATILE", place, "server_end does not fit the requests", witness)
    if sent > size or (end == "played" and sent != size):
        witness = f"{end}, {sent} of {size} bytes"
        found.add("E-VOLATILE", place, "sent_bytes does not fit the case's body", witness)


def check_delivery(
    volatile: dict[str, Any], delivered: bool, claim: dict[str, Any], place: str, found: Findings
) -> None:
    """Whether everything the client waited for can have gone out."""
    end = volatile["server_end"]
    if delivered not in possible_delivery(claim, end, volatile["sent_bytes"]):
        witness = f"delivered is {delivered}, server_end {end}"
        found.add("E-VOLATILE", place, "delivered does not fit how the server ended", witness)


def possible_delivery(claim: dict[str, Any], end: str, sent: int) -> tuple[bool, ...]:
    """What `delivered` may be: section 3, from how the server ended and where the client stopped."""
    if end in ("not-asked", "failed"):
        return (False,)
    if (consumed := claim.get("consumed_bytes")) is None and end == "client-left":
        return (True, False)  # where the client stopped is not known
    waited = claim.get("transport_end") in TRANSPORT_ENDS.values()
    return ((consumed or 0) <= sent and (end == "played" or not waited),)


def request_problem(raw: bytes) -> str:
    """What is wrong with the form of a request blob; "" where nothing is."""
    match = REQUEST.fullmatch(raw)
    if not match:
        return f"is not the redacted form of section 3: {brief(raw)}"
    names = [line.split(b":")[0] for line in match[1].splitlines()]
    if names != sorted(set(names)):
        return f"the headers are not sorted, each once: {names}"
    try:
        body = strict_json(match[2].decode(), MAX_EVENT_DEPTH)
    except (NotStrictError, UnicodeDecodeError) as error:
        return f"the body is not strict JSON: {error}"
    if type(body) is not dict or not body.keys() <= REQUEST_MEMBERS or canonical(body) != match[2]:
        return f"the body is not a canonical object of the listed members: {brief(match[2])}"
    return ""


def asked_messages(reference: dict[str, Any], trial: str, place: str, blobs: Blobs) -> Any:
    """The messages of a request, which must be redacted; None where that is already wrong."""
    raw = blobs.get(reference, place)
    if raw is None:
        return None
    if problem := request_problem(raw):
        blob = f"data/blobs/{reference['sha256']}"
        blobs.archive.found.add("E-REQUEST", blob, f"a request of {trial} was not like this", problem)
        return None
    return json.loads(raw.partition(b"\n\n")[2]).get("messages", ())


def check_requests(trial: Trial, blobs: Blobs) -> None:
    """Every request must be redacted, and must carry the conversation of the suite."""
    expected = [*trial.suite.history, {"role": "user", "content": trial.suite.question}]
    for reference in trial.record["requests"]:
        messages = asked_messages(reference, trial.id, trial.place, blobs)
        if messages not in (None, expected):
            place = f"data/blobs/{reference['sha256']}"
            text = f"messages of a request of {trial.id} are not the history and the question"
            blobs.archive.found.add("E-REQUEST", place, text, brief(messages))


def claimed_history(record: dict[str, Any], place: str, blobs: Blobs) -> list[dict[str, Any]] | None:
    """The history that the subject claims to have afterwards."""
    reference = record["claim"] and record["claim"]["history"]
    raw = blobs.get(reference, place)
    if raw is None:
        return None
    history: list[dict[str, Any]] | None = record_json(
        raw, b"", f"data/blobs/{reference['sha256']}", HISTORY, blobs.archive.found
    )
    return history


def claimed_preview(record: dict[str, Any], place: str, blobs: Blobs) -> str | None:
    """The text that the subject claims to have shown."""
    reference = record["claim"] and record["claim"]["preview"]
    raw = blobs.get(reference, place)
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        blobs.archive.found.add("E-SCHEMA", place, "the preview is not UTF-8", str(error))
        return None


# ====================================================================================================
# Verdicts: the first that holds (sections 5, J8)
# ====================================================================================================

Verdict = tuple[str, str, str]  # the word, the plain reason, the witness


def sse_documents(body: bytes) -> Iterator[str]:
    """The data of every block of lines, also of one that was cut."""
    lines = re.sub(r"\r\n?", "\n", lossy(body)).removeprefix(BOM)
    for block in re.split(r"\n\n+", lines):
        values = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        yield "\n".join(values)


def ndjson_documents(body: bytes) -> Iterator[str]:
    """Every line, also one that was cut."""
    yield from lossy(body).split("\n")


def eventstream_documents(body: bytes) -> Iterator[str]:
    """The payload of every frame, whatever its checksums say."""
    start = 0
    while start + FRAME_BYTES <= len(body):
        size, headers_bytes = number(body, start, 4), number(body, start + 4, 4)
        if size < FRAME_BYTES:
            return
        yield lossy(body[start + PRELUDE_BYTES + headers_bytes : start + size - 4])
        start += size


DOCUMENTS = {"sse": sse_documents, "ndjson": ndjson_documents, "eventstream": eventstream_documents}


def pieces(value: Any, path: list[str]) -> Iterator[str]:
    """The strings at the end of a path.

    A step is a member, an index, `*` for every element, `NAME=TEXT` for "where that member is", and
    `-NAME` for "where that member is not true".
    """
    if not path:
        yield from [value] if type(value) is str else []
        return
    step, rest = path[0], path[1:]
    if type(value) is list:
        chosen = value if step == "*" else value[int(step) :][:1] if step.isdigit() else []
        for item in chosen:
            yield from pieces(item, rest)
    elif type(value) is dict:
        member, _, wanted = step.partition("=")
        if wanted:
            yield from pieces(value, rest) if value.get(member) == wanted else ()
        elif step.startswith("-"):
            yield from pieces(value, rest) if value.get(step[1:]) is not True else ()
        else:
            yield from pieces(value.get(step), rest)


def lenient_text(body: bytes, dialect: str, framing: str) -> str:
    """All text that any client could have made of the body: what was sent, whatever it is worth."""
    paths = [path.split(" ") for path in DIALECTS[dialect].texts]
    found: list[str] = []
    for document in DOCUMENTS[framing](body):
        try:
            value = json.loads(document)
        except (ValueError, RecursionError):
            continue
        for path in paths:
            found += pieces(value, path)
    return "".join(found)


def not_delivered(trial: Trial) -> Verdict | None:
    """A fault that never reached the wire proves nothing."""
    # Without a claim and without a request, that there is no claim says more.
    if trial.record["delivered"] or (trial.record["claim"] is None and not trial.record["requests"]):
        return None
    sent = trial.volatile["sent_bytes"] if trial.volatile else None
    return "NOT_DELIVERED", "the fault never reached the wire", f"{sent} of {len(trial.case.body)} bytes sent"


def no_claim(trial: Trial | SessionTrial) -> Verdict | None:
    """Nothing passes by absence."""
    if trial.record["claim"] is not None:
        return None
    reason = trial.record["no_claim"]
    word, text = "NO_CLAIM", "said nothing that can be judged"
    if reason == "unsupported":
        word, text = "UNSUPPORTED", "lacks a capability that the case needs"
    return word, text, f"no_claim is {reason}"


def label_conflict(trial: Trial) -> Verdict | None:
    """Two witnesses that never met contradict one another."""
    label, derived = trial.label, trial.derived
    stated: tuple[Any, ...] = (label.outcome, label.preview, label.committed)
    read: tuple[Any, ...] = (derived.outcome, derived.preview, derived.committed)
    if label.ending is not None:
        stated, read = (*stated, label.ending), (*read, derived.ending)
    if stated == read:
        return None
    text = "the label and the reading of the bytes differ: the case or the auditor is wrong"
    return "LABEL_CONFLICT", text, f"label {brief(stated)}, reading {brief(read)}"


def added_entries(trial: Trial) -> list[dict[str, Any]]:
    """What the history holds beyond the conversation of the suite."""
    return (trial.history or [])[len(trial.suite.history) :]


def altered(trial: Trial) -> Verdict | None:
    """The history holds what nobody said."""
    before, added = trial.suite.history, added_entries(trial)
    if (trial.history or [])[: len(before)] != before:
        return "ALTERED", "an earlier entry of the history changed", brief(trial.history)
    if len(added) > 2 or [entry["role"] for entry in added] != ["user", "assistant"][: len(added)]:
        return "ALTERED", "more than one question and answer was added", brief(added)
    if added and added[0] != {"role": "user", "content": trial.suite.question}:
        return "ALTERED", "another question was kept than was asked", brief(added[0])
    if len(added) == 2 and not may_be_kept(added[1], trial):
        return "ALTERED", "kept other text than was sent", brief(added[1])
    return None


def may_be_kept(answer: dict[str, Any], trial: Trial) -> bool:
    """Whether a kept answer is at least what was sent, if not all of it where it was refused."""
    derived, case = trial.derived, trial.case
    if not derived.committed:
        framing = trial.contract.dialects[case.dialect].framing
        return lenient_text(case.body, case.dialect, framing).startswith(answer["content"])
    calls = answer.get("tool_calls", [])
    return (
        answer["content"] == derived.preview
        and len(calls) == len(derived.proposals)
        and all(same_call(*pair, trial.aware) for pair in zip(calls, derived.proposals, strict=True))
    )


def same_call(kept: dict[str, Any], sent: dict[str, Any], exactly: bool) -> bool:
    """Whether a kept call is the one that was sent; a library may spell its arguments in another way."""
    if exactly or kept == sent:
        return kept == sent
    if kept["name"] != sent["name"] or (sent["id"] is not None and kept["id"] != sent["id"]):
        return False
    try:
        return kept["arguments"] == sent["arguments"] or same_value(kept["arguments"], sent["arguments"])
    except NotStrictError:
        return False


def same_value(one: str, other: str) -> bool:
    """Whether two texts are JSON of the same value; 1 and true are not the same."""
    return canonical(strict_json(one, MAX_EVENT_DEPTH)) == canonical(strict_json(other, MAX_EVENT_DEPTH))


def committed_wrongly(trial: Trial) -> Verdict | None:
    """The history holds too much, or too little."""
    judged = trial.label.authority != "judgement"
    kept = added_entries(trial)
    # Who was told no contract is held to what all of them have in common.
    commits = {label.committed for label in ([trial.label] if trial.aware else trial.labels)}
    if dispatched := (trial.record["claim"] or {}).get("dispatched"):
        return "FALSE_COMMIT", "dispatched a tool", f"dispatched {dispatched}, nothing may be"
    if False not in commits and len(kept) < 2:
        word = "FALSE_WITHHOLD" if judged else "OVER_STRICT"
        return word, "threw away a good one", f"the history has {len(trial.history or [])} entries"
    if True not in commits and kept:
        word = "FALSE_COMMIT" if judged else "NON_STRICT"
        text = "kept a broken answer" if len(kept) == 2 else "kept a question that got no answer"
        return word, text, brief(kept[-1]["content"])
    if len(commits) == 2:
        word, text = "OVER_STRICT", "threw away what a looser contract accepts"
        if kept:
            word, text = "NON_STRICT", "kept what a stricter contract withholds"
        return word, text, f"kept {len(kept)} entries"
    return None


def expected_claims(trial: Trial) -> dict[str, Any]:
    """What a subject that is told the contract should claim beside its history."""
    derived = trial.derived
    return {
        "outcome": derived.outcome,
        "preview": derived.preview,
        "status": trial.case.status,
        "reads": derived.reads,
        "consumed_bytes": derived.consumed_bytes,
        "consumed_sha256": hashlib.sha256(trial.case.body[: derived.consumed_bytes]).hexdigest(),
        "transport_end": derived.transport_end,
        "finish_reason": derived.finish_reason,
        "class": derived.ending,
    }


def misreported(trial: Trial) -> Verdict | None:
    """The history is right, another claim is not; what is not claimed is not judged."""
    if not trial.aware:
        return None
    claim = {**trial.record["claim"], "preview": trial.preview}
    for key, expected in expected_claims(trial).items():
        if claim[key] is not None and claim[key] != expected:
            witness = f"{key} claimed {brief(claim[key])}, derived {brief(expected)}"
            return "MISREPORTED", f"the history is right, {key} is not", witness
    return None


VERDICT_RULES = (not_delivered, no_claim, label_conflict, altered, committed_wrongly, misreported)


def verdict_of(trial: Trial) -> Verdict:
    """The first verdict that holds."""
    verdicts = (rule(trial) for rule in VERDICT_RULES)
    return next((verdict for verdict in verdicts if verdict), ("AGREE", trial.derived.why, ""))


# ====================================================================================================
# Sessions: the wire, the requests, the claim (sections A5, A6)
# ====================================================================================================


class SessionTrial(NamedTuple):
    """One record of a session with everything it is judged by."""

    id: str
    place: str
    record: dict[str, Any]
    volatile: dict[str, Any] | None
    suite: Suite
    session: Session
    contract: Contract
    label: SessionLabel
    owned: SessionLabel | None  # what a control is compared with
    replay: Replay
    aware: bool  # the subject was told the contract
    history: list[dict[str, Any]] | None  # as claimed
    preview: str | None  # as claimed
    journal: list[dict[str, Any]]  # as claimed
    asked: list[list[dict[str, Any]] | None]  # the messages of each request; None where they are none

    @property
    def attempts_asked(self) -> list[str]:
        """By the journal: the attempts that made a request, in this order."""
        lines = zip(self.session.moves, self.journal, strict=False)
        return [move.attempt or "" for move, line in lines if move.do in BEGINNINGS and line["result"] != DENIED]


def session_journal(record: dict[str, Any], place: str, session: Session, blobs: Blobs) -> list[dict[str, Any]]:
    """The journal as claimed: one line for each step of the case."""
    found, reference = blobs.archive.found, record["journal"]
    if (reference is None) is not (record["claim"] is None):
        found.add("E-SCHEMA", place, "there is a journal where there is no claim, or the reverse", brief(reference))
    raw = blobs.get(reference, place)
    if raw is None:
        return []
    journal = record_json(raw, b"", f"data/blobs/{reference['sha256']}", JOURNAL_SHAPE, found)
    steps, lines = [move[:2] for move in session.moves], [(line["do"], line["attempt"]) for line in journal or []]
    if journal is not None and lines != steps:
        witness = f"{brief(lines)}, the steps are {brief(steps)}"
        found.add("E-JOURNAL", place, "the journal is not one line for each step", witness)
    return journal or []


def session_requests(record: dict[str, Any], place: str, blobs: Blobs) -> list[list[dict[str, Any]] | None]:
    """The messages of every request, which must be redacted, and entries of a history."""
    asked: list[list[dict[str, Any]] | None] = []
    for reference in record["requests"]:
        messages = asked_messages(reference, record["trial"], place, blobs)
        if messages is not None and (problem := HISTORY(messages)):
            blob = f"data/blobs/{reference['sha256']}"
            text = f"messages of a request of {record['trial']} are no entries of a history"
            blobs.archive.found.add("E-REQUEST", blob, text, problem)
            messages = None
        asked.append(messages)
    return asked


def check_exchanges(trial: SessionTrial, blobs: Blobs) -> None:
    """What was served to each request is what the case says, as far as it is archived."""
    record, found = trial.record, blobs.archive.found
    requests, exchanges = record["requests"], record["exchanges"]
    if len(requests) != len(exchanges):
        witness = f"{len(requests)} requests, {len(exchanges)} exchanges"
        found.add("E-CASE-WIRE", trial.place, "there is not one exchange for each request", witness)
    for number, exchange in enumerate(exchanges):
        case, place = trial.session.exchange(number), f"{trial.place}, exchange {number + 1}"
        if exchange["status"] != case.status:
            witness = f"{exchange['status']}, expected {case.status}"
            found.add("E-STATUS", place, "the status served is not that of the case", witness)
        check_head(exchange["response_head"], case, place, blobs)
        body = blobs.get(exchange["body"], place)
        if body is not None:
            check_prefix(body, case, place, found)
            check_consumed(trial, number, len(body), found)


def check_consumed(trial: SessionTrial, number: int, size: int, found: Findings) -> None:
    """The archived body must be as much as the journal says that the attempt of the request consumed."""
    exchange, consumed = trial.record["exchanges"][number], consumed_bytes(trial, number)
    expected = size if consumed is None else consumed
    if number == len(trial.record["exchanges"]) - 1 and trial.volatile:
        sent = trial.volatile["sent_bytes"]
        expected = sent if consumed is None else min(consumed, sent)
    elif not exchange["delivered"]:
        expected = min(size, expected)  # how much was sent is known of the last play alone
    if size != expected:
        text = "the archived body is not what the journal says was consumed of what was sent"
        witness = f"{size} bytes, expected {expected}, {consumed} in the journal"
        found.add("E-CASE-WIRE", f"{trial.place}, exchange {number + 1}", text, witness)


def consumed_bytes(trial: SessionTrial, number: int) -> int | None:
    """What the attempt of a request consumed by the journal; None where no attempt made it."""
    if number >= len(trial.attempts_asked):
        return None
    name = trial.attempts_asked[number]
    lines = zip(trial.session.moves, trial.journal, strict=False)
    consumed: int = [line["consumed_bytes"] for move, line in lines if move.attempt == name][-1]
    return consumed


def check_last_play(trial: SessionTrial, found: Findings) -> None:
    """What the server says of its own end is about the last request."""
    volatile, record, last = trial.volatile, trial.record, len(trial.record["exchanges"]) - 1
    if volatile is None:
        return
    check_server_end(volatile, record, trial.session.exchange(max(last, 0)), trial.place, found)
    if record["exchanges"]:
        claim = {"consumed_bytes": consumed_bytes(trial, last)}
        check_delivery(volatile, record["exchanges"][last]["delivered"], claim, trial.place, found)


# ====================================================================================================
# Sessions: verdicts, the first that holds (section A8)
# ====================================================================================================


class Held(NamedTuple):
    """A history that the subject sent or has in the end, against the one that is right there."""

    where: str
    before: list[dict[str, Any]]  # the suite's, cleared or not
    right: Kept
    found: list[dict[str, Any]]

    @property
    def uncleared(self) -> list[dict[str, Any]]:
        """The suite's own entries, where they were cleared and are there all the same."""
        size = len(self.before)
        there = self.found[:size] == self.before and self.right.own[:size] != self.before
        return self.before if there and not self.right.base else []

    @property
    def own(self) -> list[dict[str, Any]]:
        """What it holds beyond the conversation before the session."""
        return self.found[len(self.right.base or self.uncleared) :]

    @property
    def texts(self) -> list[str]:
        """The answers of the session that it holds."""
        return [entry["content"] for entry in self.own[1::2]]

    @property
    def extra(self) -> list[str]:
        return beyond(self.texts, self.right.texts)

    @property
    def missing(self) -> list[str]:
        return beyond(self.right.texts, self.texts)


def beyond(texts: list[str], others: list[str]) -> list[str]:
    """The texts that are not among others, or more often than there."""
    left, found = list(others), []
    for text in texts:
        if text in left:
            left.remove(text)
        else:
            found.append(text)
    return found


def held_histories(trial: SessionTrial) -> list[Held]:
    """The history that each attempt's request carried, and the one in the end."""
    before, pairs = trial.suite.history, zip(trial.asked, trial.replay.sent, strict=False)
    sent = [
        Held(f"request {number}", before, right, messages[:-1])
        for number, (messages, right) in enumerate(pairs, 1)
        if messages is not None
    ]
    return [*sent, Held("the history", before, trial.replay.history, trial.history or [])]


def session_not_delivered(trial: SessionTrial) -> Verdict | None:
    """A fault that never reached the wire proves nothing."""
    exchanges, requests = trial.record["exchanges"], len(trial.record["requests"])
    for number, exchange in enumerate(exchanges, 1):
        if not exchange["delivered"]:
            return "NOT_DELIVERED", "the fault never reached the wire", f"exchange {number} of {len(exchanges)}"
    if requests < (attempts := len(trial.attempts_asked)):
        witness = f"{requests} requests, {attempts} attempts in the journal"
        return "NOT_DELIVERED", "an attempt never reached the wire", witness
    return None


def session_label_conflict(trial: SessionTrial) -> Verdict | None:
    """Two witnesses that never met contradict one another."""
    stated, read = label_session(trial.label), derived_session(trial)
    for key in ("stored", "writes", "display", "state", "attempts"):
        if stated[key] != read[key]:
            text = f"the label and the reading differ in {key}: the case or the auditor is wrong"
            return "LABEL_CONFLICT", text, f"label {brief(stated[key])}, reading {brief(read[key])}"
    if trial.label.fails is False and trial.owned and (how := departures(read, trial.owned)):
        text = "the label says that this control need not fail, and by the reading it does"
        return "LABEL_CONFLICT", text, f"it differs from the owned label in {how}"
    return None


def session_altered(trial: SessionTrial) -> Verdict | None:
    """A history holds what nobody said, or not as it was said."""
    question = {"role": "user", "content": trial.suite.question}
    for number, messages in enumerate(trial.asked, 1):
        if messages is not None and messages[-1:] != [question]:
            return "ALTERED", f"request {number} asks another question", brief(messages[-1:])
    for held in held_histories(trial):
        if held.found[: len(held.right.base)] != held.right.base:
            return "ALTERED", f"an earlier entry of {held.where} changed", brief(held.found)
        if any(entry != question for entry in held.own[::2]):
            return "ALTERED", f"{held.where} holds another question than was asked", brief(held.own)
        if any(entry["role"] != "assistant" for entry in held.own[1::2]):
            return "ALTERED", f"{held.where} holds other entries than questions and answers", brief(held.own)
        if wrong := wrong_texts(trial, held):
            return "ALTERED", f"{held.where} holds other text than was sent", brief(wrong)
        if not held.extra and not held.missing and not same_answers(trial, held):
            return "ALTERED", f"the answers of {held.where} are not those that were given", brief(held.own[1::2])
    return None


def said_texts(trial: SessionTrial) -> tuple[list[str], list[str]]:
    """All text that each exchange says, and the same of those whose attempt may not publish."""
    decisions = [attempt.decision for attempt in trial.replay.attempts.values()]
    said, foreign = [], []
    for number, case in enumerate(trial.session.exchanges):
        framing = trial.contract.dialects[case.dialect].framing
        said.append(lenient_text(case.body, case.dialect, framing))
        if decisions[number : number + 1] != ["accepted"]:
            foreign.append(said[-1])
    return said, foreign


def wrong_texts(trial: SessionTrial, held: Held) -> list[str]:
    """Answers that no exchange says, or a right one that was cut."""
    said, foreign = said_texts(trial) if held.extra else ([], [])
    # One text in the place of another is a change, unless whoever may not publish has said it.
    return not_said(held.extra, foreign if held.missing else said)


def foreign_texts(trial: SessionTrial, held: Held) -> list[str]:
    """Answers of attempts that may not publish."""
    _, foreign = said_texts(trial) if held.extra else ([], [])
    return beyond(held.extra, not_said(held.extra, foreign))


def not_said(texts: list[str], sources: list[str]) -> list[str]:
    """The texts with which no source begins."""
    return [text for text in texts if not any(source.startswith(text) for source in sources)]


def same_answers(trial: SessionTrial, held: Held) -> bool:
    """Whether the answers are the right ones, in order and with their calls."""
    pairs = zip(held.own[1::2], held.right.own[1::2], strict=True)
    return all(same_answer(kept, right, trial.aware) for kept, right in pairs)


def same_answer(kept: dict[str, Any], right: dict[str, Any], exactly: bool) -> bool:
    """Whether a kept answer is the right one, with its calls."""
    calls, sent = kept.get("tool_calls", []), right.get("tool_calls", [])
    same_calls = len(calls) == len(sent) and all(same_call(*pair, exactly) for pair in zip(calls, sent, strict=True))
    return kept["content"] == right["content"] and same_calls


def session_kept_wrongly(trial: SessionTrial) -> Verdict | None:
    """A history holds an answer too much, or one too little."""
    if dispatched := trial.record["claim"]["dispatched"]:
        return "FALSE_COMMIT", "dispatched a tool", f"dispatched {dispatched}, nothing may be"
    judged = trial.label.authority != "judgement"
    too_much, too_little = ("FALSE_COMMIT", "FALSE_WITHHOLD") if judged else ("NON_STRICT", "OVER_STRICT")
    for held in held_histories(trial):
        if held.uncleared:
            return too_much, f"{held.where} holds what was cleared", brief(held.uncleared)
        if foreign := foreign_texts(trial, held):
            return too_much, f"{held.where} holds an answer that may not be published", brief(foreign)
        if len(held.texts) > len(held.right.texts):
            return too_much, f"{held.where} holds an answer twice, or one too early", brief(held.extra)
        if len(held.texts) < len(held.right.texts):
            return too_little, f"{held.where} lacks a good answer", brief(held.missing)
        if len(held.own) % 2:
            return too_much, f"{held.where} holds a question that got no answer", brief(held.own[-1])
    return None


def session_misreported(trial: SessionTrial) -> Verdict | None:
    """The history is right, another claim is not; requests are counted, whatever was claimed."""
    requests, attempts = len(trial.record["requests"]), len(trial.replay.attempts)
    if requests > attempts:
        return "MISREPORTED", "made more requests than attempts", f"{requests} requests, {attempts} attempts"
    if not trial.aware:
        return None
    for number, (line, right) in enumerate(zip(trial.journal, trial.replay.journal, strict=False), 1):
        for key in right:
            if line[key] != right[key] and key not in ("do", "attempt"):
                text = f"the history is right, {key} after step {number} ({step_in_words(right)}) is not"
                return "MISREPORTED", text, f"claimed {brief(line[key])}, derived {brief(right[key])}"
    claim = {"outcome": trial.record["claim"]["outcome"], "preview": trial.preview}
    expected = {"outcome": trial.replay.outcome, "preview": trial.replay.display}
    for key, right_value in expected.items():
        if claim[key] is not None and claim[key] != right_value:
            witness = f"{key} claimed {brief(claim[key])}, derived {brief(right_value)}"
            return "MISREPORTED", f"the history is right, {key} is not", witness
    return None


def step_in_words(line: dict[str, Any]) -> str:
    """A step in words."""
    return str(line["do"]) if line["attempt"] is None else f"{line['do']} {line['attempt']}"


def departures(session: dict[str, Any], owned: SessionLabel) -> list[str]:
    """In what a session under a naive policy differs from what is right under an owned one."""
    right = label_session(owned)
    return [key for key in ("stored", "writes", "display") if session[key] != right[key]]


SESSION_RULES = (
    session_not_delivered,
    no_claim,
    session_label_conflict,
    session_altered,
    session_kept_wrongly,
    session_misreported,
)


def session_verdict(trial: SessionTrial) -> Verdict:
    """The first verdict that holds."""
    verdicts = (rule(trial) for rule in SESSION_RULES)
    return next((verdict for verdict in verdicts if verdict), ("AGREE", in_words(derived_session(trial)), ""))


def naive_sessions(trials: list[Trial | SessionTrial], found: Findings) -> dict[str, Any]:
    """The control of sessions: a policy that has to fail where the owned one holds."""
    controls: dict[str, Any] = {}
    for trial in trials:
        if not isinstance(trial, SessionTrial) or trial.label.fails is None or trial.record["claim"] is None:
            continue
        if trial.owned is None:  # then nothing says what it differs from
            continue
        seen = claimed_session(trial)
        how = departures(seen, trial.owned)
        controls[trial.id] = {"fails": bool(how), "how": how}
        if trial.label.fails and not how:
            text = "this control has to fail, and stores, writes and shows what the owned policy does"
            found.add("CONTROL_DID_NOT_FAIL", trial.place, text, in_words(seen))
    return controls


# ====================================================================================================
# The audit
# ====================================================================================================


class Library:
    """Suites, cases, labels and contracts of one archive, each loaded once."""

    def __init__(self, archive: Archive, plan: Plan) -> None:
        self.archive = archive
        self.suites: dict[str, Suite | None] = {}
        self.cases: dict[str, Case | Session | None] = {}
        self.labels: dict[tuple[str, str], Label | SessionLabel | None] = {}
        self.contracts: dict[str, Contract | None] = {}
        self.judged_bytes = 0
        self.copy(plan)

    def copy(self, plan: Plan) -> None:
        """Check the copies against their manifests, and load what the plan names."""
        keys = [split_trial(trial) for trial in plan.trials]
        contracts = {contract for _, _, contract in keys}
        check_pins(self.archive, plan.suites)
        for path in self.archive.below("data/suite/"):
            if path.split("/")[2] not in (*plan.suites, "contracts"):
                text = "belongs to a suite that was not planned"
                self.archive.found.add("E-COVERAGE", path, text, f"planned are {brief(plan.suites)}")
        check_copy(self.archive, "data/suite/contracts/", {contract_file(name) for name in contracts})
        known: set[str] = set()  # folders of the cases that the suites have; check_copy names the others
        for name in plan.suites:
            cases = {case for suite, case, _ in keys if suite == name}
            entries = check_copy(self.archive, f"data/suite/{name}/", cases | {"suite.toml"})
            self.suites[name] = load_suite(self.archive, name, entries)
            known |= {f"data/suite/{name}/{entry.split('/')[0]}/" for entry in entries}
        self.contracts = {name: load_contract(self.archive, name) for name in sorted(contracts)}
        for suite, case, contract in keys:
            folder = f"data/suite/{suite}/{case}/"
            if folder in known:
                self.load(suite, folder, contract)

    def load(self, name: str, folder: str, planned: str) -> None:
        """One case, and its labels under the planned contract and all others of its suite."""
        suite = self.suites.get(name)
        if folder not in self.cases:
            self.cases[folder] = load_case(self.archive, folder)
        for contract in [planned, *(suite.contracts if suite else [])]:
            if (folder, contract) not in self.labels:
                self.labels[folder, contract] = self.label(folder, contract)

    def label(self, folder: str, contract: str) -> Label | SessionLabel | None:
        """A label in the form of its case."""
        case = self.cases[folder]
        if isinstance(case, Session):
            return load_session_label(self.archive, folder, contract, case.moves, self.contracts.get(contract))
        return load_label(self.archive, folder, contract) if case else None

    def stated(self, folder: str, suite: Suite) -> list[Label]:
        """The labels of a case under all contracts of its suite; a missing one was found already."""
        labels = (self.labels.get((folder, contract)) for contract in suite.contracts)
        return [label for label in labels if isinstance(label, Label)]

    def owned(self, folder: str, suite: Suite) -> SessionLabel | None:
        """The label of a session under the first owned contract of its suite."""
        labels = (self.labels.get((folder, contract)) for contract in suite.contracts)
        return next((label for label in labels if isinstance(label, SessionLabel) and label.fails is None), None)

    def rules(self, folder: str, exchanges: list[Case], contract: str, place: str) -> Contract | None:
        """The contract by which a case can be judged; None where it cannot, which is then a finding."""
        rules = self.contracts.get(contract)
        if rules is None:
            return None
        if (dialect := exchanges[0].dialect) not in rules.dialects:
            text = "says nothing about the dialect of a case"
            self.archive.found.add("E-CONTRACT", contract, text, f"{dialect}, {folder}")
            return None
        self.judged_bytes += sum(len(case.body) for case in exchanges)
        if self.judged_bytes > MAX_JUDGED_BYTES:
            self.archive.found.add("E-SIZE", place, "too much to judge", f"> {MAX_JUDGED_BYTES} bytes")
            return None
        return rules


def split_trial(trial: str) -> tuple[str, str, str]:
    """Suite, case and contract of a trial id whose grammar was checked."""
    path, _, contract = trial.partition("@")
    suite, _, case = path.partition("/")
    return suite, case, contract


def folder_of(record: dict[str, Any]) -> str:
    """The folder of a record's case."""
    return f"data/suite/{record['suite']}/{record['case']}/"


def hear(place: str, record: dict[str, Any], library: Library, blobs: Blobs, aware: bool) -> Trial | None:
    """Gather what one record is judged by; None where a part is missing, which is then a finding."""
    folder, contract = folder_of(record), record["contract"]
    history = claimed_history(record, place, blobs)
    preview = claimed_preview(record, place, blobs)
    suite, case = library.suites.get(record["suite"]), library.cases.get(folder)
    label = rules = None
    if isinstance(case, Case):
        label, rules = library.labels.get((folder, contract)), library.rules(folder, [case], contract, place)
    if suite is None or not isinstance(case, Case) or not isinstance(label, Label) or rules is None:
        return None
    labels, derived = library.stated(folder, suite) or [label], derive(case, rules)
    return Trial(
        record["trial"], place, record, None, suite, case, rules, label, labels, derived, aware, history, preview
    )


def hear_session(
    place: str, record: dict[str, Any], library: Library, blobs: Blobs, aware: bool
) -> SessionTrial | None:
    """The same for the record of a session."""
    folder, contract = folder_of(record), record["contract"]
    history = claimed_history(record, place, blobs)
    preview = claimed_preview(record, place, blobs)
    suite, case = library.suites.get(record["suite"]), library.cases.get(folder)
    label = rules = None
    if isinstance(case, Session):
        label, rules = library.labels.get((folder, contract)), library.rules(folder, case.exchanges, contract, place)
    if suite is None or not isinstance(case, Session) or not isinstance(label, SessionLabel) or rules is None:
        return None
    owned = library.owned(folder, suite)
    if label.fails and owned is None:
        text = "says that a control has to fail, and states no owned contract that it differs from"
        library.archive.found.add("E-LABEL", folder + "label.toml", text, f"the suite states {suite.contracts}")
    return SessionTrial(
        record["trial"],
        place,
        record,
        None,
        suite,
        case,
        rules,
        label,
        owned,
        Replay(case, rules, suite),
        aware,
        history,
        preview,
        session_journal(record, place, case, blobs),
        session_requests(record, place, blobs),
    )


def check_form(place: str, record: dict[str, Any], case: Case | Session | None, found: Findings) -> None:
    """A case with steps has the record of a session, and no other has one."""
    schema = "endmark.session/1" if isinstance(case, Session) else "endmark.trial/1"
    if case is not None and record["schema"] != schema:
        found.add("E-SCHEMA", place, "the record has not the form of its case", f"{record['schema']}, {schema}")


def check_record(place: str, record: dict[str, Any], found: Findings) -> None:
    """What the shape of a record cannot say: how its values hang together."""
    expected = f"{record['suite']}/{record['case']}@{record['contract']}"
    if record["trial"] != expected:
        found.add("E-SCHEMA", place, "trial is not SUITE/CASE@CONTRACT", f"{record['trial']}, {expected}")
    if (record["claim"] is None) is (record["no_claim"] is None):
        witness = f"no_claim is {record['no_claim']!r}"
        found.add("E-SCHEMA", place, "there is either a claim or a reason why there is none", witness)


def try_records(archive: Archive, plan: Plan, library: Library) -> list[Trial | SessionTrial]:
    """Check every record and return those trials that can be judged."""
    rows = read_rows(archive, "data/records/", record_shape)
    volatile = read_volatile(archive, rows)
    check_order(archive, plan.trials, rows)
    blobs = Blobs(archive)
    trials: list[Trial | SessionTrial] = []
    for place, record in rows:
        check_record(place, record, archive.found)
        check_form(place, record, library.cases.get(folder_of(record)), archive.found)
        is_session = record["schema"] == "endmark.session/1"
        trial = (hear_session if is_session else hear)(place, record, library, blobs, plan.subject["contract_aware"])
        if trial is None:
            blobs.referred |= {f"data/blobs/{ref['sha256']}" for ref in references(record)}
            continue
        trial = trial._replace(volatile=volatile.get(record["trial"]))
        check_trial(trial, blobs)
        trials.append(trial)
    blobs.check()
    return trials


def check_trial(trial: Trial | SessionTrial, blobs: Blobs) -> None:
    """Compare what was archived of the wire with the case."""
    if isinstance(trial, SessionTrial):
        check_exchanges(trial, blobs)
        check_last_play(trial, blobs.archive.found)
        return
    check_wire(trial, blobs)
    check_requests(trial, blobs)
    check_volatile(trial, blobs.archive.found)


def references(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The blob references of a record outside its claim."""
    singles = [exchange[key] for exchange in record.get("exchanges", [record]) for key in ("response_head", "body")]
    singles.append(record.get("journal"))
    return [*record["requests"], *(reference for reference in singles if reference is not None)]


def read_volatile(archive: Archive, rows: list[Row]) -> dict[str, dict[str, Any]]:
    """The volatile records by trial; there must be one for each record, in the same order."""
    volatile = read_rows(archive, "data/volatile/", VOLATILE_SHAPE)
    recorded, noted = [row["trial"] for _, row in rows], [row["trial"] for _, row in volatile]
    if recorded != noted:
        pairs = zip([*recorded, None], [*noted, None], strict=False)
        witness = next(f"{b}, expected {a}" for a, b in pairs if a != b)
        text = "the volatile records are not one for each record, in the same order"
        archive.found.add("E-VOLATILE", "data/volatile/", text, witness)
    return {row["trial"]: row for _, row in volatile}


def check_run(archive: Archive) -> None:
    """The record of the run itself, which nothing else hangs on."""
    run = load_document(archive, RUN, RUN_SHAPE)
    if run is not None and run["finished_at"] < run["started_at"]:
        witness = f"{run['started_at']} to {run['finished_at']}"
        archive.found.add("E-VOLATILE", RUN, "the run ended before it began", witness)


def check_plan(archive: Archive, plan: Plan, library: Library) -> dict[str, Any]:
    """Coverage: the plan against the whole suites."""
    for trial in plan.trials:
        suite = library.suites.get(trial.split("/")[0])
        if suite and split_trial(trial)[2] not in suite.contracts:
            text = "is planned under a contract that the suite does not state"
            archive.found.add("E-COVERAGE", trial, text, f"the suite states {suite.contracts}")
    whole = sum(len(suite.cases) * len(suite.contracts) for suite in library.suites.values() if suite)
    coverage = {"planned": len(plan.trials), "of": whole, "partial": len(plan.trials) < whole}
    if coverage["partial"]:
        archive.found.note("N-PARTIAL", PLAN, "only a part was run", f"{len(plan.trials)} of {whole} trials")
    return coverage


# ====================================================================================================
# Sources (--source)
# ====================================================================================================

SOURCE_ROOTS = ("audit.py", "client", "harness", "plots", "run.py")
SOURCE_KINDS = (".py", ".toml", ".json")


def fingerprints(checkout: str) -> dict[str, str]:
    """Hash every source of a checkout, with line ends normalised to LF."""
    paths = [name for name in SOURCE_ROOTS if os.path.isfile(os.path.join(checkout, name))]
    for root in SOURCE_ROOTS:
        for folder, _, names in os.walk(os.path.join(checkout, root)):
            paths += [os.path.relpath(os.path.join(folder, name), checkout) for name in names]
    sources: dict[str, str] = {}
    for path in sorted(paths):
        full = os.path.join(checkout, path)
        if path.endswith(SOURCE_KINDS) and os.path.isfile(full):
            with open(full, "rb") as file:
                data = re.sub(rb"\r\n?", b"\n", file.read())
            sources[path.replace(os.sep, "/")] = hashlib.sha256(data).hexdigest()
    return sources


def check_source(recorded: dict[str, str], checkout: str, found: Findings) -> None:
    """The archive's fingerprints against those of a checkout.  OSError where it cannot be read."""
    current = fingerprints(checkout)
    for path in sorted(recorded.keys() | current.keys()):
        ours, theirs = current.get(path, "not there"), recorded.get(path, "not there")
        if ours != theirs:
            witness = f"checkout {ours}, archive {theirs}"
            found.add("E-SOURCE", path, "is not the source that made this archive", witness)


# ====================================================================================================
# The report
# ====================================================================================================

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def claim_row(trial: Trial) -> dict[str, Any]:
    """What was claimed, in the keys of what was derived."""
    claim = trial.record["claim"] or {}
    history, preview = trial.history, trial.preview
    kept = None if history is None else len(history) > len(trial.suite.history)
    return {
        "outcome": claim.get("outcome"),
        "preview": preview,
        "history_size": None if history is None else len(history),
        "committed": kept,
        "reads": claim.get("reads"),
        "consumed_bytes": claim.get("consumed_bytes"),
        "transport_end": claim.get("transport_end"),
        "finish_reason": claim.get("finish_reason"),
        "class": claim.get("class"),
        "dispatched": claim.get("dispatched"),
        "preview_code_points": None if preview is None else len(preview),
    }


def derived_row(trial: Trial) -> dict[str, Any]:
    """What is right, in the keys of what was claimed."""
    derived = trial.derived
    return {
        "outcome": derived.outcome,
        "preview": derived.preview,
        "history_size": len(trial.suite.history) + 2 * derived.committed,
        "committed": derived.committed,
        "reads": derived.reads,
        "consumed_bytes": derived.consumed_bytes,
        "transport_end": derived.transport_end,
        "finish_reason": derived.finish_reason,
        "class": derived.ending,
        "unknown_events": derived.unknown_events,
        "preview_code_points": len(derived.preview),
    }


def label_row(label: Label) -> dict[str, Any]:
    """What a person wrote, in the same keys."""
    return {
        "outcome": label.outcome,
        "preview": label.preview,
        "committed": label.committed,
        "authority": label.authority,
        "class": label.ending,
    }


def trial_row(trial: Trial) -> dict[str, Any]:
    """One trial of the report."""
    case, (word, why, witness) = trial.case, verdict_of(trial)
    waits = [amount for kind, amount in case.script if kind == "wait_ms"]
    return {
        "trial": trial.id,
        "suite": trial.record["suite"],
        "case": trial.record["case"],
        "contract": trial.record["contract"],
        "dialect": case.dialect,
        "title": case.title,
        "verdict": word,
        "why": plain(why),
        "witness": plain(witness),
        "status": case.status,
        "content_type": case.content_type,
        "read_cap": case.read_cap,
        "http_chunk_offsets": case.chunk_ends,
        "cancel_after_utf16": case.cancel_after,
        "read_timeout_ms": case.read_timeout_ms,
        "stall_ms": max(waits, default=None),
        "body_bytes": len(case.body),
        "body_sha256": hashlib.sha256(case.body).hexdigest(),
        "consumed_bytes": trial.derived.consumed_bytes,
        "requests": len(trial.record["requests"]),
        "label": label_row(trial.label),
        "derived": derived_row(trial),
        "claim": claim_row(trial),
    }


def session_row(trial: SessionTrial) -> dict[str, Any]:
    """One session of the report: the keys of a trial, null where only one exchange could have them."""
    case, (word, why, witness) = trial.session.exchanges[0], session_verdict(trial)
    names = list(trial.replay.attempts)
    return {
        "trial": trial.id,
        "suite": trial.record["suite"],
        "case": trial.record["case"],
        "contract": trial.record["contract"],
        "dialect": case.dialect,
        "title": case.title,
        "verdict": word,
        "why": plain(why),
        "witness": plain(witness),
        **dict.fromkeys(OF_ONE_EXCHANGE),
        "read_cap": case.read_cap,
        "cancel_after_utf16": None,
        "read_timeout_ms": case.read_timeout_ms,
        "requests": len(trial.record["requests"]),
        "exchanges": [
            exchange_row(exchange, trial.replay.attempts[name] if name else None)
            for exchange, name in itertools.zip_longest(trial.session.exchanges, names)
        ],
        "label": label_session(trial.label),
        "derived": derived_session(trial),
        "claim": claimed_session(trial),
    }


OF_ONE_EXCHANGE = (
    "status", "content_type", "http_chunk_offsets", "stall_ms", "body_bytes", "body_sha256", "consumed_bytes",
)  # fmt: skip


def exchange_row(case: Case, attempt: Attempt | None) -> dict[str, Any]:
    """One exchange of a session, and how much of it is right to be consumed."""
    return {
        "attempt": attempt and attempt.name,
        "status": case.status,
        "content_type": case.content_type,
        "framing": case.framing,
        "ending": case.ending,
        "body_bytes": len(case.body),
        "body_sha256": hashlib.sha256(case.body).hexdigest(),
        "consumed_bytes": attempt and attempt.consumed,
    }


def decision_rows(decisions: Decisions) -> dict[str, dict[str, str | None]]:
    """What became of each attempt."""
    return {name: {"outcome": outcome, "decision": decision} for name, (outcome, decision) in decisions.items()}


def label_session(label: SessionLabel) -> dict[str, Any]:
    """What a person wrote about a session."""
    return {
        "outcome": None,
        "stored": label.stored,
        "writes": label.writes,
        "dispatched": 0,
        "display": label.display,
        "state": label.state,
        "attempts": decision_rows(label.attempts),
        "fails": label.fails,
        "authority": label.authority,
    }


def derived_session(trial: SessionTrial) -> dict[str, Any]:
    """What is right, in the same keys."""
    replay = trial.replay
    return {
        "outcome": replay.outcome,
        "stored": replay.history.texts,
        "writes": replay.writes,
        "dispatched": 0,
        "display": replay.display,
        "state": replay.state,
        "attempts": decision_rows(replay.decisions),
    }


def claimed_session(trial: SessionTrial) -> dict[str, Any]:
    """What was claimed, by the history and the journal, in the same keys."""
    claim = trial.record["claim"]
    if claim is None:
        return dict.fromkeys(("outcome", "stored", "writes", "dispatched", "display", "state", "attempts"))
    held = held_histories(trial)[-1]
    kept = [0, *(line["stored"] for line in trial.journal)]
    rises = zip(trial.journal, kept, kept[1:], strict=False)
    return {
        "outcome": claim["outcome"],
        "stored": held.texts,
        "writes": sum(line["do"] == "commit" and after > before for line, before, after in rises),
        "dispatched": claim["dispatched"],
        "display": trial.preview,
        "state": trial.journal[-1]["state"] if trial.journal else None,
        "attempts": decision_rows(claimed_decisions(trial)),
    }


def claimed_decisions(trial: SessionTrial) -> Decisions:
    """What became of each attempt by the journal alone."""
    marks: dict[str, set[str]] = {}
    outcomes: dict[str, str | None] = {}
    for move, line in zip(trial.session.moves, trial.journal, strict=False):
        name = move.attempt or ""
        if line["result"] == DENIED:
            continue
        if move.do in BEGINNINGS:
            marks[name] = set()
        for other, decision in decided(move, line, list(marks)):
            # An owned attempt is decided once.
            if other in marks and (trial.contract.policy == "naive" or not marks[other]):
                marks[other].add(decision)
        outcomes[name] = line["outcome"]
    return {
        name: (
            outcomes.get(name),
            next(word for word in DECISIONS if word in marks.get(name, ()) or word == "open"),
        )
        for name in begun(trial.session.moves)
    }


def decided(move: Move, line: dict[str, Any], names: list[str]) -> list[tuple[str, str]]:
    """The attempts that a step decides, each with its decision."""
    name = move.attempt or ""
    if move.do == "clear":
        return [(other, "superseded") for other in names]
    if move.do == "supersede":
        return [(move.of or "", "superseded")]
    if move.do == "cancel":
        return [(name, "cancelled")]
    if move.do != "commit":
        return []
    if line["result"] == "refused":
        return [(name, "failed" if FAILURES.fullmatch(line["outcome"] or "") else "refused")]
    return [(name, {"committed": "accepted"}.get(line["result"], "superseded"))]


def in_words(session: dict[str, Any]) -> str:
    """A session in one line."""
    attempts = (
        f"{name} {attempt['decision']}" + (f" ({attempt['outcome']})" if attempt["outcome"] else "")
        for name, attempt in (session["attempts"] or {}).items()
    )
    shown = f"screen {session['state']} {brief(session['display'])}"
    return f"{', '.join(attempts)}; stored {brief(session['stored'])}, writes {session['writes']}; {shown}"


def totals(trials: list[Trial | SessionTrial], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of the report."""
    verdicts: dict[str, int] = {}
    for row in rows:
        verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
    requests = {True: 0, False: 0}
    for trial in trials:
        host = trial.volatile["host"] if trial.volatile else None
        requests[host in LOOPBACK] += len(trial.record["requests"])
    complete = sum(row["derived"]["outcome"] == "COMPLETE" for row in rows)
    return {
        "trials": len(rows),
        "complete": complete,
        "refused": len(rows) - complete,
        "loopback_requests": requests[True],
        "provider_requests": requests[False],
        "verdicts": dict(sorted(verdicts.items())),
    }


def naive_replacements(archive: Archive, trials: list[Trial | SessionTrial]) -> dict[str, int]:
    """The negative control: what a client does to text that decodes every read on its own."""
    counts: dict[str, int] = {}
    for trial in trials:
        if isinstance(trial, Trial) and trial.case.read_cap == 1 and trial.record["body"]:
            body = archive.files.get("data/blobs/" + trial.record["body"]["sha256"], b"")
            counts[trial.id] = sum(byte >= 0x80 for byte in body)
    return counts


def trace_of(trial: Trial | SessionTrial) -> dict[str, Any]:
    """How one body was read, or those of a session, for people and pictures."""
    if isinstance(trial, Trial):
        derived = trial.derived
        kind = {"left": "settled", "timeout": "timeout"}.get(derived.transport_end, "eof")
        return {"trial": trial.id} | trace_body(trial.case, trial.contract, derived, derived.consumed_bytes, kind)
    exchanges = [trace_attempt(attempt, trial.contract) for attempt in trial.replay.attempts.values()]
    return {"trial": trial.id, "exchanges": exchanges}


def trace_attempt(attempt: Attempt, contract: Contract) -> dict[str, Any]:
    """How far the body of one attempt was read."""
    kind = {"left": "settled", "timeout": "timeout"}.get(attempt.derived.transport_end, "eof")
    trace = trace_body(attempt.case, contract, attempt.derived, attempt.consumed, kind)
    if not attempt.settled:
        end = {"kind": "left", "at_byte": attempt.consumed, "outcome": None, "why": "nothing more was read"}
        trace |= {"events": trace["events"][: len(attempt.events)], "end": end}
    return {"attempt": attempt.name} | trace


def trace_body(case: Case, contract: Contract, derived: Derived, consumed: int, kind: str) -> dict[str, Any]:
    """A body with its reads and events, and what ended them."""
    textual = contract.dialects[case.dialect].framing != "eventstream"
    ends = read_ends(derived.available, case.chunk_ends, case.read_cap)
    return {
        "body": base64.b64encode(case.body).decode(),
        "read_ends": [end for end in ends if end <= consumed],
        "chunk_ends": [*case.chunk_ends, len(case.body)] if case.body else [],
        "characters": [list(match.span()) for match in wide_characters(case.body)] if textual else [],
        "events": [trace_step(step, derived.texts) for step in derived.steps],
        "end": {
            "kind": kind,
            "at_byte": derived.available if derived.settled_at is None else derived.settled_at,
            "outcome": derived.outcome,
            "why": derived.why,
        },
    }


def wide_characters(body: bytes) -> Iterator[re.Match[bytes]]:
    """Every character of more than one byte, up to the first offence."""
    well_formed = WELL_FORMED.match(body)
    return WIDE_CHARACTER.finditer(body, 0, well_formed.end() if well_formed else 0)


def trace_step(step: Step, texts: list[str]) -> dict[str, Any]:
    """One event of a trace."""
    return {
        "start": step.event.start,
        "end": step.event.end,
        "type": step.event.type,
        "data": step.event.data,
        "signals": step.signals,
        "before": step.before,
        "after": step.after,
        "preview": "".join(texts[: step.texts]),
        "note": step.note,
    }


# ====================================================================================================
# Text for a person
# ====================================================================================================


def painter(coloured: bool) -> Callable[[str, str], str]:
    """A function that colours text, or leaves it alone."""
    codes = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}
    return lambda text, colour: f"\x1b[{codes[colour]}m{text}\x1b[0m" if coloured else text


def finding_lines(findings: list[dict[str, str]]) -> Iterator[str]:
    """Findings grouped by their code, each with its witness below it."""
    for finding in sorted(findings, key=lambda finding: finding["code"]):
        yield f"{finding['code']:<12} {finding['place']}  {finding['text']}"
        yield f"{'':<12} {finding['witness']}"


def anchor_line(report: dict[str, Any]) -> str:
    """The last line: what the result is worth without trust in whoever gave us DIR."""
    if report["anchored"] == "none":
        return (
            "SELF-CONSISTENT, NOT ANCHORED: compare the stable root with one published elsewhere, or run again"
            if not report["findings"]
            else "NOT SOUND, NOT ANCHORED: see the findings above"
        )
    word = "ANCHORED" if not report["findings"] else "NOT SOUND, though ANCHORED"
    return f"{word} by --expect-{report['anchored']}"


def summary_lines(report: dict[str, Any]) -> Iterator[str]:
    """The numbers and digests of a report."""
    numbers, coverage = report["totals"], report["coverage"]
    yield f"trials        {numbers['trials']}: {numbers['complete']} complete, {numbers['refused']} refused"
    verdicts = ", ".join(f"{count} {word}" for word, count in numbers["verdicts"].items())
    yield f"verdicts      {verdicts or 'none'}"
    if coverage["partial"]:
        yield f"coverage      PARTIAL {coverage['planned']} of {coverage['of']}"
    for row in report["trials"]:
        if "exchanges" in row and row["verdict"] == "AGREE":
            yield f"session       {row['trial']}: {row['why']}"
    for trial, count in report["controls"]["naive_per_byte_replacements"].items():
        yield f"control       {trial}: {count} replacement characters when each byte is decoded alone"
    for trial, control in report["controls"]["naive_sessions"].items():
        how = f"fails in {', '.join(control['how'])}" if control["fails"] else "does what the owned policy does"
        yield f"control       {trial}: the naive policy {how}"
    yield f"findings      {len(report['findings'])}"
    yield "level         full: every file hashed, every trial derived again from its bytes"
    yield f"stable root   {report['stable_root']}"
    yield f"full root     {report['full_root']}"


def trace_lines(trace: dict[str, Any]) -> Iterator[str]:
    """A trace as text."""
    for part in trace.get("exchanges", [trace]):
        of = f", attempt {part['attempt']}" if "attempt" in part else ""
        yield f"trace of {trace['trial']}{of}: {len(part['read_ends'])} reads that returned bytes"
        for event in part["events"]:
            span = f"{event['start']}-{event['end']}"
            yield f"  {span:>13}  {event['before']} -> {event['after']}  {'+'.join(event['signals'])}"
            yield f"  {'':>13}  {plain(brief(event['data']))}"
        outcome = part["end"]["outcome"] or "not settled"
        yield f"  {part['end']['at_byte']:>13}  {outcome}: {plain(part['end']['why'])}"


def print_report(report: dict[str, Any], coloured: bool) -> None:
    """A report as text: what is wrong first, the conclusion last."""
    paint = painter(coloured)
    for line in finding_lines(report["findings"]):
        print(line if line[0] == " " else paint(line, "red"))
    for line in finding_lines(report["notes"]):
        print(paint(line, "yellow") if line[0] == "N" else line)
    for row in report["trials"]:
        if row["verdict"] != "AGREE":
            print(paint(f"{row['verdict']:<12}", "red"), f"{row['trial']}  {row['why']}")
            print(f"{'':<12} {row['witness']}")
    for line in trace_lines(report["trace"]) if "trace" in report else ():
        print(line)
    print(paint(plain(f"audit of {report['archive']}"), "bold"))
    for line in summary_lines(report):
        print(line)
    print(paint(anchor_line(report), "red" if exit_code(report) else "green"))


# ====================================================================================================
# The command
# ====================================================================================================

EPILOG = """\
example:
  python3 -I -S audit.py evidence/20261130T222900Z --expect-stable-root 0123...cdef

exit codes:
  0  the archive is sound and every verdict is AGREE
  1  findings, or another verdict
  2  called wrongly, or DIR cannot be read at all
"""


class UsageError(Exception):
    """The caller asked for what cannot be done; exit code 2."""


def digest_argument(value: str) -> str:
    """A root digest on the command line."""
    if not HEX.fullmatch(value):
        raise argparse.ArgumentTypeError(f"{value!r} is not 64 lower-case hex digits")
    return value


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Read the command line; exits with 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="audit.py",
        description="Work out every verdict of an Endmark archive again, from the raw bytes alone.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", metavar="DIR", help="the archive: a directory, not packed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--trace", metavar="CASE", help="show how one body was read (a case or a trial id)")
    parser.add_argument("--source", metavar="CHECKOUT", help="compare the source fingerprints with a checkout")
    parser.add_argument("--expect-root", metavar="HEX", type=digest_argument, help="the full root must be this")
    parser.add_argument(
        "--expect-stable-root", metavar="HEX", type=digest_argument, help="the stable root must be this"
    )
    return parser.parse_args(arguments)


def check_roots(report: dict[str, Any], options: argparse.Namespace, found: Findings) -> None:
    """The anchors: digests that the caller got by another way than this archive."""
    anchors = (
        ("stable-root", "stable_root", options.expect_stable_root),
        ("root", "full_root", options.expect_root),
    )
    for name, key, expected in anchors:
        if expected is None:
            continue
        if report[key] == expected:
            report["anchored"] = name
        else:
            witness = f"{report[key]}, expected {expected}"
            found.add("E-ROOT", key.replace("_", " "), f"differs from --expect-{name}", witness)


def find_trace(name: str, trials: list[Trial | SessionTrial]) -> dict[str, Any]:
    """The trace of the trial or case of that name."""
    for trial in trials:
        if name in (trial.id, trial.record["case"]):
            return trace_of(trial)
    raise UsageError(f"--trace {name}: no such case or trial could be judged in this archive")


def audit(options: argparse.Namespace) -> dict[str, Any]:
    """The whole audit, as the object that --json prints."""
    found = Findings()
    try:
        archive = scan(options.dir, found)
    except (OSError, ValueError) as error:
        raise UsageError(f"{options.dir}: cannot be read as a directory: {error}") from None
    check_tag_files(archive)
    check_seal(archive)
    entries = manifest(archive, "manifest-sha256.txt")
    check_files(archive, entries)
    plan = load_plan(archive) or Plan({}, [], [])
    library = Library(archive, plan)
    coverage = check_plan(archive, plan, library)
    trials = try_records(archive, plan, library) if plan.subject else []
    check_run(archive)
    provenance = load_document(archive, PROVENANCE, PROVENANCE_SHAPE)
    rows = [trial_row(trial) if isinstance(trial, Trial) else session_row(trial) for trial in trials]
    report: dict[str, Any] = {
        "schema": "endmark.audit/1",
        "archive": plain(options.dir),
        "stable_root": stable_root(archive, entries),
        "full_root": archive.digests.get(SEAL),
        "anchored": "none",
        "coverage": coverage,
        "subject": plan.subject,
        "totals": totals(trials, rows),
        "controls": {
            "naive_per_byte_replacements": naive_replacements(archive, trials),
            "naive_sessions": naive_sessions(trials, found),
        },
        "trials": rows,
    }
    check_roots(report, options, found)
    if options.source is not None:
        check_checkout(provenance, options.source, found)
    if options.trace is not None:
        report["trace"] = find_trace(options.trace, trials)
    report["findings"] = [finding._asdict() for finding in found.findings]
    report["notes"] = [note._asdict() for note in found.notes]
    return report


def check_checkout(provenance: dict[str, Any] | None, checkout: str, found: Findings) -> None:
    """Compare the source fingerprints, once the checkout is known to be there."""
    if not os.path.isdir(checkout):
        raise UsageError(f"--source {checkout}: is not a directory")
    check_source(provenance["sources"] if provenance else {}, checkout, found)


def exit_code(report: dict[str, Any]) -> int:
    """0 where all is well, else 1."""
    sound = not report["findings"] and all(row["verdict"] == "AGREE" for row in report["trials"])
    return 0 if sound else 1


def say(report: dict[str, Any], as_json: bool) -> None:
    """Print the report; where stdout was closed, the exit code alone says it."""
    if sys.stdout is None:
        return
    # Whatever the locale: text that stdout cannot carry is escaped, not a crash.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if as_json:
        print(json.dumps(report, sort_keys=True))
    else:
        print_report(report, sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    sys.stdout.flush()


def discard_output() -> None:
    """Lead stdout to nowhere: Python would complain again when it closes it."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: list[str]) -> int:
    """Run the audit and return the exit code; nothing but SystemExit of argparse leaves it."""
    options = parse_arguments(arguments)
    try:
        report = audit(options)
        say(report, options.json)
    except UsageError as error:
        print(f"audit.py: {plain(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        discard_output()  # the reader has left
        return exit_code(report)
    except OSError as error:  # a full disk, a checkout that cannot be read
        discard_output()
        print(f"audit.py: {plain(str(error))}", file=sys.stderr)
        return 2
    except Exception as error:  # the last resort: never a traceback, and never exit code 0
        print(f"audit.py: this is a bug in the auditor: {plain(repr(error))}", file=sys.stderr)
        return 2
    return exit_code(report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
