"""The court: works out every verdict of an Endmark archive again, from the raw bytes alone.

    python3 -I -S audit.py DIR [--json] [--trace CASE] [--source CHECKOUT]
                           [--expect-root HEX] [--expect-stable-root HEX]

What it is.  One file that needs the standard library and nothing else, so that it can be read in an
afternoon, copied beside an archive and run in ten years.  It shares no line with the laboratory that
wrote the archive nor with the client that was tried: three witnesses (the label a person wrote, the
reading below, the claim of the subject) are compared, and a mistake in one cannot hide in another.
docs/formats.md is the contract of all three; section numbers below are its sections.

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

    bytes -> well-formed prefix -> lines -> events -> signals -> turn -> outcome, at a body offset
    offset, HTTP chunks, cap, script -> reads, consumed bytes, how the transport ended

The outcome never depends on the read cap; only the two numbers of the last line do.

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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# ====================================================================================================
# Pinned: changed by hand only, never read from an archive
# ====================================================================================================

# sha256 of cases/<suite>/manifest-sha256.txt for every suite that is shipped.
SUITES = {"frozen": "39819d8528f447cf7710b290bfdeddee475f965a8b6e70f7af4319d71ce3eb0f"}
# sha256 of cases/contracts/manifest-sha256.txt.
CONTRACTS = "243f2f2c6d0506ee447827f38dbbaa59b497223b49c02885dc6d38524c537c0c"

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
MAX_EVENT_DEPTH = 256  # the most a contract may allow: the parser recurses, Python stops at 1,000
MAX_INTEGER = (1 << 53) - 1  # what every JSON reader holds exactly (RFC 7493 section 2.2)
MAX_INTEGER_DIGITS = 309  # an integer with more is beyond the doubles, whatever its digits
SHARD_LINES = 10_000

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
# What one entry of the history of a contract must say: section 4.6 commits an answer and nothing else,
# so a contract that says otherwise would be judged wrongly here and is refused instead.
HISTORY_RULES = {"answer": "append", "truncated": "withhold", "filtered": "withhold", "error": "withhold"}

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
CONTRACT_ID = matching(CONTRACT_NAME, "a contract (NAME/N)")
INSTANT = matching(re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"), "a UTC time")
BLOB = closed({"bytes": COUNT, "sha256": SHA256})
MESSAGES = listed(closed({"role": text, "content": text}))

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
CLAIM_SHAPE = closed({
    "history": BLOB,
    "preview": BLOB,
    "outcome": maybe(text),
    "finish_reason": maybe(text),
    "transport_end": maybe(text),
    "status": maybe(COUNT),
    "reads": maybe(COUNT),
    "consumed_bytes": maybe(COUNT),
    "consumed_sha256": maybe(text),
    "raised": maybe(closed({"type": text, "chain": listed(text)})),
})  # fmt: skip
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
    }
)
LABEL_SHAPE = closed({
    "why": text,
    "authority": one_of(*AUTHORITIES),
    "url": text,
    "date": date,
    "contract": mapping(closed({"outcome": OUTCOME, "preview": text, "committed": flag})),
})  # fmt: skip
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
    "terminal_event": text,
    "empty_completion": one_of("refuse"),
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
    "dialect": mapping(RULES_SHAPE),
    "history": closed({ending: one_of(rule) for ending, rule in HISTORY_RULES.items()}),
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


class Label(NamedTuple):
    """What a person wrote: the right result under one contract."""

    outcome: str
    preview: str
    committed: bool
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


class Rules(NamedTuple):
    """What a contract says about one dialect."""

    media_type: str
    terminal_event: str
    empty_completion: str
    reasons: dict[str, str]


class Contract(NamedTuple):
    """What counts as enough evidence."""

    limits: Limits
    dialects: dict[str, Rules]


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


def load_case(archive: Archive, folder: str) -> Case | None:
    """Read case.toml and the body it names, or find what is wrong with them."""
    place = folder + "case.toml"
    document, problem = toml(archive.files.get(place, b""), CASE_SHAPE)
    problem = problem or case_problem(document, archive, folder)
    if problem:
        archive.found.add("E-CASE", place, "is not a case (section 1)", problem)
        return None
    client, exchange = document["client"], document["exchange"][0]
    body = archive.files[folder + exchange["body"]]
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
    if len(document["exchange"]) != 1:
        return f"{len(document['exchange'])} exchanges, expected 1"
    exchange = document["exchange"][0]
    body = archive.files.get(folder + exchange["body"])
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
    patience = document["client"].get("read_timeout_ms", 1000)
    for step in steps:
        if patience < 2 * step.get("wait_ms", 0) < 4 * patience:
            return f"a wait of {step['wait_ms']} ms is too near the read time-out of {patience} ms"
    return ""


def load_label(archive: Archive, folder: str, contract: str) -> Label | None:
    """Read what label.toml states under one contract, or find what is wrong with it."""
    place = folder + "label.toml"
    document, problem = toml(archive.files.get(place, b""), LABEL_SHAPE)
    if not problem and contract not in document["contract"]:
        problem = f"says nothing about {contract}"
    if problem:
        archive.found.add("E-LABEL", place, "is not a label for this trial (section 1)", problem)
        return None
    stated = document["contract"][contract]
    return Label(stated["outcome"], stated["preview"], stated["committed"], document["authority"])


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
    dialects = {name: Rules(**rules) for name, rules in document["dialect"].items()}
    return Contract(Limits(**document["limits"]), dialects)


# ====================================================================================================
# Bytes to events (section 4.3)
# ====================================================================================================


class Stop(NamedTuple):
    """An offence of the bytes: the offset after the byte that proves it."""

    at: int
    outcome: str
    why: str


class Event(NamedTuple):
    """The fields of one block of lines, where the block stood, and where it was dispatched."""

    start: int  # where its first line begins
    dispatch: int  # after the byte that ends its blank line: a CR ends a line at once
    end: int  # after the whole blank line, with an LF that belongs to its CR
    type: str
    data: str


# RFC 3629 section 4 <https://www.rfc-editor.org/rfc/rfc3629#section-4>, written out:
#   UTF8-2 = %xC2-DF UTF8-tail
#   UTF8-3 = %xE0 %xA0-BF UTF8-tail / %xE1-EC 2( UTF8-tail ) / %xED %x80-9F UTF8-tail / %xEE-EF 2( ... )
#   UTF8-4 = %xF0 %x90-BF 2( UTF8-tail ) / %xF1-F3 3( UTF8-tail ) / %xF4 %x80-8F 2( UTF8-tail )
WELL_FORMED = re.compile(
    rb"(?:[\x00-\x7f]++|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*+"
)
# What may yet become a character: every proper prefix of the above, the empty one included.
UNFINISHED = re.compile(
    rb"(?:[\xc2-\xdf]|\xe0[\xa0-\xbf]?|[\xe1-\xec\xee\xef][\x80-\xbf]?|\xed[\x80-\x9f]?"
    rb"|\xf0(?:[\x90-\xbf][\x80-\xbf]?)?|[\xf1-\xf3][\x80-\xbf]{0,2}|\xf4(?:[\x80-\x8f][\x80-\xbf]?)?)?"
)
WIDE_CHARACTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")

# WHATWG HTML 9.2.5 <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>
#   end-of-line = ( cr lf / cr / lf )
# The last match has no end of line: it is what the end of the body cut off, mostly nothing.
LINE = re.compile(rb"([^\r\n]*+)(\r\n?|\n|\Z)")

BOM = "\ufeff"


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def excess(text: str, limit: int) -> tuple[int, int] | None:
    """The character that makes `text` exceed `limit` units, as byte offsets [start, end); or None."""
    if 2 * len(text) <= limit:
        return None  # no character has more than two units: most lines need no second look
    wide = text.encode("utf-16-le")
    if len(wide) <= 2 * limit:
        return None
    fitting = wide[: 2 * limit].decode("utf-16-le", "ignore")  # ignore: half a surrogate pair
    start = len(fitting.encode())
    return start, start + len(text[len(fitting)].encode())


def sound_prefix(body: bytes, input_utf16: int) -> tuple[bytes, Stop | None]:
    """The whole characters before the first offence of encoding or input length, and that offence."""
    well_formed = WELL_FORMED.match(body)
    end = well_formed.end() if well_formed else 0
    over = excess(body[:end].decode(), input_utf16)
    if over:
        return body[: over[0]], Stop(over[1], "LIMIT", f"more than input_utf16 = {input_utf16} units")
    unfinished = UNFINISHED.match(body, end)
    at = unfinished.end() if unfinished else end
    if at == len(body):
        return body[:end], None
    return body[:end], Stop(at + 1, "INVALID_UTF8", f"byte {body[at]:02X} at {at} cannot stand there")


class Pending:
    """The fields of an event before its blank line."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.type = ""
        self.data: list[str] = []
        self.units = -1  # of the data joined by LF: one LF fewer than there are values

    def take(self, line: str) -> None:
        """WHATWG HTML 9.2.6: a comment begins with a colon; a value loses one leading space."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self.data.append(value)
            self.units += 1 + units(value)
        elif field == "event":
            self.type = value


def frame(body: bytes, limits: Limits) -> Iterator[Event | Stop]:
    """The events of `body` in order, and last the offence that ends them, if it is one of the bytes."""
    sound, offence = sound_prefix(body, limits.input_utf16)
    pending = Pending(0)
    count = 0
    for line in LINE.finditer(sound):
        start, stop = line.span(1)
        text = line[1].decode()
        if start == 0 and text.startswith(BOM):
            text = text.removeprefix(BOM)
            start = len(BOM.encode())
        if over := excess(text, limits.line_utf16):
            yield Stop(start + over[1], "LIMIT", f"a line exceeds line_utf16 = {limits.line_utf16} units")
            return
        if not line[2]:
            break
        if text:
            pending.take(text)
            if pending.units > limits.event_utf16:
                yield Stop(stop + 1, "LIMIT", f"an event exceeds event_utf16 = {limits.event_utf16} units")
                return
            continue
        if pending.data:
            count += 1
            if count > limits.events:
                yield Stop(stop + 1, "LIMIT", f"more than events = {limits.events}")
                return
            yield Event(pending.start, stop + 1, line.end(), pending.type, "\n".join(pending.data))
        pending = Pending(line.end())
    if offence:
        yield offence


# ====================================================================================================
# Events to signals: one row a dialect (section 4.4)
# ====================================================================================================


class Offence(Exception):  # noqa: N818 - of the provider, not of a program
    """An event that its dialect does not allow."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


Signal = tuple[str, str]  # its kind, and the text or the raw reason it carries
Dialect = Callable[[Event, Rules, int], "list[Signal]"]


def require(holds: bool, why: str) -> None:
    """PROTOCOL, unless the rule holds."""
    if not holds:
        raise Offence("PROTOCOL", why)


def openai_chat(event: Event, rules: Rules, json_depth: int) -> list[Signal]:
    """Chat completion chunks <https://github.com/openai/openai-openapi>; the event's type is not used."""
    if event.data == rules.terminal_event:
        return [("done", "")]
    try:
        chunk = strict_json(event.data, json_depth)
    except NotStrictError as error:
        raise Offence("INVALID_JSON", str(error)) from None
    require(type(chunk) is dict, "the event is not a JSON object")
    if chunk.get("error") is not None:
        return [("error", "")]
    choices = chunk.get("choices")
    require(type(choices) is list and len(choices) <= 1, "choices is not a list of at most one")
    return openai_choice(choices[0]) if choices else [("meta", "")]


def openai_choice(choice: Any) -> list[Signal]:
    """The signals of the one choice of a chunk, by rules 4 to 7 of section 4.4."""
    require(type(choice) is dict, "the choice is not an object")
    index, delta, reason = choice.get("index"), choice.get("delta"), choice.get("finish_reason")
    require(type(index) is int and index == 0, "the index of the choice is not the integer 0")
    require(type(delta) is dict, "the delta is not an object")
    require(reason is None or type(reason) is str, "finish_reason is neither null nor a string")
    require(delta.get("role") in (None, "assistant"), "the role is not assistant")
    content = delta.get("content")
    require(content is None or type(content) is str, "the content is neither null nor a string")
    if delta.get("tool_calls") is not None or delta.get("function_call") is not None:
        return [("tool", "")]
    if delta.get("refusal") not in (None, ""):
        return [("refusal", "")]
    signals = [("text", content)] if content else []
    if reason is not None:
        signals.append(("finish", reason))
    return signals or [("meta", "")]


DIALECTS: dict[str, Dialect] = {"openai-chat": openai_chat}

# ====================================================================================================
# Signals to an outcome: the turn is a table (section 4.4)
# ====================================================================================================

BY_CLASS = "by the class of the reason"
# (state, signal) -> state or outcome.  A missing entry is PROTOCOL.
TURN = {
    ("open", "text"): "open",
    ("open", "meta"): "open",
    ("open", "finish"): BY_CLASS,
    ("open", "error"): "PROVIDER_ERROR",
    ("finished", "meta"): "finished",
    ("finished", "done"): "COMPLETE",
    ("finished", "error"): "PROVIDER_ERROR",
}
STATES = ("open", "finished")
# class of the raw reason -> state or outcome.  A reason the contract does not list has no class.
CLASSES = {
    "answer": "finished",
    "truncated": "INCOMPLETE_FINISH",
    "filtered": "INCOMPLETE_FINISH",
    "error": "PROVIDER_ERROR",
    None: "UNSUPPORTED_OUTCOME",
}


class Turn:
    """Where a turn stands: one of STATES, or the outcome it was settled with."""

    def __init__(self, rules: Rules, output_utf16: int, cancel_after: int | None) -> None:
        self.rules = rules
        self.output_utf16 = output_utf16
        self.cancel_after = cancel_after
        self.state = "open"
        self.why = ""
        self.texts: list[str] = []
        self.units = 0
        self.reason: str | None = None

    def take(self, signal: Signal) -> None:
        kind, value = signal
        entered = TURN.get((self.state, kind), "PROTOCOL")
        self.why = f"the signal {kind} in the state {self.state}"
        if kind == "finish":
            self.reason = value
            self.why = f"finish_reason {value!r} in the state {self.state}"
        if entered == BY_CLASS:
            entered = CLASSES[self.rules.reasons.get(value)]
        self.state = entered
        if kind == "text" and entered == "open":
            self.add(value)
        if entered == "COMPLETE" and self.units == 0 and self.rules.empty_completion == "refuse":
            self.settle("UNSUPPORTED_OUTCOME", "a completion without text")

    def add(self, text: str) -> None:
        grown = self.units + units(text)
        if grown > self.output_utf16:
            self.settle("LIMIT", f"the text exceeds output_utf16 = {self.output_utf16} units")
            return
        self.units = grown
        self.texts.append(text)
        if self.cancel_after is not None and grown >= self.cancel_after:
            self.settle("CANCELLED", f"the preview holds {grown} units, cancelled from {self.cancel_after}")

    def settle(self, outcome: str, why: str) -> None:
        self.state, self.why = outcome, why


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

    settled_at: int | None  # the offset after the byte that proves the outcome; None at the end
    outcome: str
    why: str
    texts: list[str]
    reason: str | None
    steps: list[Step]


def judge(body: bytes, dialect: str, contract: Contract, cancel_after: int | None) -> Reading:
    """Judge a body up to its end; the outcome is "" where the end alone decides."""
    rules, limits = contract.dialects[dialect], contract.limits
    turn = Turn(rules, limits.output_utf16, cancel_after)
    steps: list[Step] = []
    for item in frame(body, limits):
        if isinstance(item, Stop):
            return Reading(item.at, item.outcome, item.why, turn.texts, turn.reason, steps)
        before = turn.state
        signals = take_event(turn, item, DIALECTS[dialect], limits.json_depth)
        settled = turn.state not in STATES
        note = turn.why if settled else ""
        steps.append(Step(item, signals, before, turn.state, len(turn.texts), note))
        if settled:
            return Reading(item.dispatch, turn.state, turn.why, turn.texts, turn.reason, steps)
    return Reading(None, "", "", turn.texts, turn.reason, steps)


def take_event(turn: Turn, event: Event, dialect: Dialect, json_depth: int) -> list[str]:
    """An event is judged whole before it takes effect; then its signals, until one settles the turn."""
    try:
        signals = dialect(event, turn.rules, json_depth)
    except Offence as offence:
        turn.settle(offence.outcome, offence.why)
        return []
    for signal in signals:
        if turn.state in STATES:
            turn.take(signal)
    return [kind for kind, _ in signals]


# ====================================================================================================
# Time and reads (sections 4.1, 4.2, 4.5)
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
    settled_at: int | None
    available: int
    steps: list[Step]
    texts: list[str]


def refusal(case: Case, rules: Rules) -> tuple[str, str] | None:
    """Outcome and reason of a refusal before the first read."""
    if case.status != 200:
        return f"HTTP_{case.status}", f"the status is {case.status}"
    essence = case.content_type.split(";")[0].strip(" \t").lower()
    if essence != rules.media_type:
        return "CONTENT_TYPE", f"the content type is {case.content_type!r}, not {rules.media_type!r}"
    return None


def derive(case: Case, contract: Contract) -> Derived:
    """The whole of section 4 for one case under one contract."""
    if refused := refusal(case, contract.dialects[case.dialect]):
        outcome, why = refused
        return Derived(outcome, why, "", False, 0, 0, "left", None, 0, len(case.body), [], [])
    available, end = supply(case, contract.limits.deadline_ms)
    reading = judge(case.body[:available], case.dialect, contract, case.cancel_after)
    outcome, why, transport_end, extra = reading.outcome, reading.why, "left", 0
    if reading.settled_at is None:
        outcome = end if end in TIMEOUTS else "INCOMPLETE_STREAM"
        transport_end = "timeout" if end in TIMEOUTS else end
        why = f"the end came first ({transport_end})"
        extra = 1  # the read that met the end
    until = available if reading.settled_at is None else reading.settled_at
    reads, consumed = count_reads(until, available, case.chunk_ends, case.read_cap)
    return Derived(
        outcome,
        why,
        "".join(reading.texts),
        outcome == "COMPLETE",
        reads + extra,
        consumed,
        transport_end,
        reading.reason,
        reading.settled_at,
        available,
        reading.steps,
        reading.texts,
    )


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
    derived: Derived
    aware: bool  # the subject was told the contract
    history: list[dict[str, str]] | None  # as claimed
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
    head = blobs.get(record["response_head"], trial.place)
    if head is not None and parse_head(head) != expected_head(case):
        witness = f"{brief(head)}, expected {expected_head(case)}"
        found.add("E-CASE-WIRE", trial.place, "the response head does not say what the case says", witness)
    body = blobs.get(record["body"], trial.place)
    if body is not None:
        check_body(trial, body, found)


def check_body(trial: Trial, body: bytes, found: Findings) -> None:
    """The archived body must be the prefix of the case's body that was consumed."""
    whole = trial.case.body
    if not whole.startswith(body):
        text = "the archived body is no prefix of the case's"
        found.add("E-CASE-WIRE", trial.place, text, difference(body, whole))
    consumed = (trial.record["claim"] or {}).get("consumed_bytes")
    sent = trial.volatile["sent_bytes"] if trial.volatile else len(body)
    expected = sent if consumed is None else min(consumed, sent)
    if len(body) != expected:
        text = "the archived body is not what the subject says it consumed of what was sent"
        found.add("E-CASE-WIRE", trial.place, text, f"{len(body)} bytes, {consumed} claimed, {sent} sent")


def check_volatile(trial: Trial, found: Findings) -> None:
    """What the server says of its own end must fit the record."""
    volatile, record = trial.volatile, trial.record
    if volatile is None:
        return
    end, sent, size = volatile["server_end"], volatile["sent_bytes"], len(trial.case.body)
    if (end == "not-asked") is bool(record["requests"]):
        witness = f"{end}, {len(record['requests'])} requests"
        found.add("E-VOLATILE", trial.place, "server_end does not fit the requests", witness)
    if sent > size or (end == "played" and sent != size):
        witness = f"{end}, {sent} of {size} bytes"
        found.add("E-VOLATILE", trial.place, "sent_bytes does not fit the case's body", witness)
    if record["delivered"] not in possible_delivery(record["claim"] or {}, end, sent):
        witness = f"delivered is {record['delivered']}, server_end {end}"
        found.add("E-VOLATILE", trial.place, "delivered does not fit how the server ended", witness)


def possible_delivery(claim: dict[str, Any], end: str, sent: int) -> tuple[bool, ...]:
    """What `delivered` may be: section 3, from how the server ended and where the client stopped."""
    if end in ("not-asked", "failed"):
        return (False,)
    if (consumed := claim.get("consumed_bytes")) is None and end == "client-left":
        return (True, False)  # where the client stopped is not known
    waited = claim.get("transport_end") in TRANSPORT_ENDS.values()
    return ((consumed or 0) <= sent and (end == "played" or not waited),)


def request_problem(raw: bytes, suite: Suite) -> str:
    """What is wrong with a request blob; "" where nothing is."""
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
    messages = [*suite.history, {"role": "user", "content": suite.question}]
    if body.get("messages") != messages:
        return f"messages are not the history and the question: {brief(body.get('messages'))}"
    return ""


def check_requests(trial: Trial, blobs: Blobs) -> None:
    """Every request must be redacted, and must carry the conversation of the suite."""
    for reference in trial.record["requests"]:
        raw = blobs.get(reference, trial.place)
        if raw is not None and (problem := request_problem(raw, trial.suite)):
            place = f"data/blobs/{reference['sha256']}"
            blobs.archive.found.add("E-REQUEST", place, f"a request of {trial.id} was not like this", problem)


def claimed_history(record: dict[str, Any], place: str, blobs: Blobs) -> list[dict[str, str]] | None:
    """The history that the subject claims to have afterwards."""
    reference = record["claim"] and record["claim"]["history"]
    raw = blobs.get(reference, place)
    if raw is None:
        return None
    history: list[dict[str, str]] | None = record_json(
        raw, b"", f"data/blobs/{reference['sha256']}", MESSAGES, blobs.archive.found
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
# Verdicts: the first that holds (section 5)
# ====================================================================================================

Verdict = tuple[str, str, str]  # the word, the plain reason, the witness


def lenient_text(body: bytes) -> str:
    """All text that any client could have made of the body: what was sent, whatever it is worth."""
    pieces: list[str] = []
    lines = re.sub(r"\r\n?", "\n", body.decode("utf-8", "replace")).removeprefix(BOM)
    for block in re.split(r"\n\n+", lines):
        values = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        try:
            chunk = json.loads("\n".join(values))
            content = chunk["choices"][0]["delta"]["content"]
        except (ValueError, RecursionError, TypeError, LookupError):
            continue
        if type(content) is str:
            pieces.append(content)
    return "".join(pieces)


def not_delivered(trial: Trial) -> Verdict | None:
    """A fault that never reached the wire proves nothing."""
    # Without a claim and without a request, that there is no claim says more.
    if trial.record["delivered"] or (trial.record["claim"] is None and not trial.record["requests"]):
        return None
    sent = trial.volatile["sent_bytes"] if trial.volatile else None
    return "NOT_DELIVERED", "the fault never reached the wire", f"{sent} of {len(trial.case.body)} bytes sent"


def no_claim(trial: Trial) -> Verdict | None:
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
    stated = (label.outcome, label.preview, label.committed)
    read = (derived.outcome, derived.preview, derived.committed)
    if stated == read:
        return None
    text = "the label and the reading of the bytes differ: the case or the auditor is wrong"
    return "LABEL_CONFLICT", text, f"label {brief(stated)}, reading {brief(read)}"


def added_entries(trial: Trial) -> list[dict[str, str]]:
    """What the history holds beyond the conversation of the suite."""
    return (trial.history or [])[len(trial.suite.history) :]


def altered(trial: Trial) -> Verdict | None:
    """The history holds what nobody said."""
    before, added = trial.suite.history, added_entries(trial)
    if (trial.history or [])[: len(before)] != before:
        return "ALTERED", "an earlier entry of the history changed", brief(trial.history)
    if len(added) > 2 or [entry["role"] for entry in added] != ["user", "assistant"][: len(added)]:
        return "ALTERED", "more than one question and answer was added", brief(added)
    if added and added[0]["content"] != trial.suite.question:
        return "ALTERED", "another question was kept than was asked", brief(added[0]["content"])
    if len(added) == 2 and not may_be_kept(added[1]["content"], trial):
        return "ALTERED", "kept other text than was sent", brief(added[1]["content"])
    return None


def may_be_kept(answer: str, trial: Trial) -> bool:
    """Whether a kept answer is at least the text that was sent, if not all of it where it was refused."""
    if trial.derived.committed:
        return answer == trial.derived.preview
    return lenient_text(trial.case.body).startswith(answer)


def committed_wrongly(trial: Trial) -> Verdict | None:
    """The history holds too much, or too little."""
    judged = trial.label.authority != "judgement"
    kept = added_entries(trial)
    if trial.label.committed and len(kept) < 2:
        word = "FALSE_WITHHOLD" if judged else "OVER_STRICT"
        return word, "threw away a good one", f"the history has {len(trial.history or [])} entries"
    if not trial.label.committed and kept:
        word = "FALSE_COMMIT" if judged else "NON_STRICT"
        text = "kept a broken answer" if len(kept) == 2 else "kept a question that got no answer"
        return word, text, brief(kept[-1]["content"])
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
# The audit
# ====================================================================================================


class Library:
    """Suites, cases, labels and contracts of one archive, each loaded once."""

    def __init__(self, archive: Archive, plan: Plan) -> None:
        self.archive = archive
        self.suites: dict[str, Suite | None] = {}
        self.cases: dict[str, Case | None] = {}
        self.labels: dict[tuple[str, str], Label | None] = {}
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
            if folder not in known:
                continue
            if folder not in self.cases:
                self.cases[folder] = load_case(self.archive, folder)
            self.labels[folder, contract] = load_label(self.archive, folder, contract)

    def derive(self, folder: str, contract: str, place: str) -> Derived | None:
        case, rules = self.cases.get(folder), self.contracts.get(contract)
        if case is None or rules is None:
            return None
        if case.dialect not in rules.dialects:
            text = "says nothing about the dialect of a case"
            self.archive.found.add("E-CONTRACT", contract, text, f"{case.dialect}, {folder}")
            return None
        self.judged_bytes += len(case.body)
        if self.judged_bytes > MAX_JUDGED_BYTES:
            self.archive.found.add("E-SIZE", place, "too much to judge", f"> {MAX_JUDGED_BYTES} bytes")
            return None
        return derive(case, rules)


def split_trial(trial: str) -> tuple[str, str, str]:
    """Suite, case and contract of a trial id whose grammar was checked."""
    path, _, contract = trial.partition("@")
    suite, _, case = path.partition("/")
    return suite, case, contract


def hear(place: str, record: dict[str, Any], library: Library, blobs: Blobs, aware: bool) -> Trial | None:
    """Gather what one record is judged by; None where a part is missing, which is then a finding."""
    folder, contract = f"data/suite/{record['suite']}/{record['case']}/", record["contract"]
    history = claimed_history(record, place, blobs)
    preview = claimed_preview(record, place, blobs)
    suite, case = library.suites.get(record["suite"]), library.cases.get(folder)
    label, rules = library.labels.get((folder, contract)), library.contracts.get(contract)
    derived = library.derive(folder, contract, place)
    if suite is None or case is None or label is None or rules is None or derived is None:
        return None
    return Trial(record["trial"], place, record, None, suite, case, rules, label, derived, aware, history, preview)


def check_record(place: str, record: dict[str, Any], found: Findings) -> None:
    """What the shape of a record cannot say: how its values hang together."""
    expected = f"{record['suite']}/{record['case']}@{record['contract']}"
    if record["trial"] != expected:
        found.add("E-SCHEMA", place, "trial is not SUITE/CASE@CONTRACT", f"{record['trial']}, {expected}")
    if (record["claim"] is None) is (record["no_claim"] is None):
        witness = f"no_claim is {record['no_claim']!r}"
        found.add("E-SCHEMA", place, "there is either a claim or a reason why there is none", witness)


def try_records(archive: Archive, plan: Plan, library: Library) -> list[Trial]:
    """Check every record and return those trials that can be judged."""
    rows = read_rows(archive, "data/records/", TRIAL_SHAPE)
    volatile = read_volatile(archive, rows)
    check_order(archive, plan.trials, rows)
    blobs = Blobs(archive)
    trials: list[Trial] = []
    for place, record in rows:
        check_record(place, record, archive.found)
        trial = hear(place, record, library, blobs, plan.subject["contract_aware"])
        if trial is None:
            blobs.referred |= {f"data/blobs/{ref['sha256']}" for ref in references(record)}
            continue
        trial = trial._replace(volatile=volatile.get(record["trial"]))
        check_wire(trial, blobs)
        check_requests(trial, blobs)
        check_volatile(trial, archive.found)
        trials.append(trial)
    blobs.check()
    return trials


def references(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The blob references of a record outside its claim."""
    singles = (record["response_head"], record["body"])
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
        "preview_code_points": len(derived.preview),
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
        "label": trial.label._asdict(),
        "derived": derived_row(trial),
        "claim": claim_row(trial),
    }


def totals(trials: list[Trial], rows: list[dict[str, Any]]) -> dict[str, Any]:
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


def naive_replacements(archive: Archive, trials: list[Trial]) -> dict[str, int]:
    """The negative control: what a client does to text that decodes every read on its own."""
    counts: dict[str, int] = {}
    for trial in trials:
        if trial.case.read_cap == 1 and trial.record["body"]:
            body = archive.files.get("data/blobs/" + trial.record["body"]["sha256"], b"")
            counts[trial.id] = sum(byte >= 0x80 for byte in body)
    return counts


def trace_of(trial: Trial) -> dict[str, Any]:
    """How one body was read, for people and pictures."""
    case, derived = trial.case, trial.derived
    ends = read_ends(derived.available, case.chunk_ends, case.read_cap)
    kind = {"left": "settled", "timeout": "timeout"}.get(derived.transport_end, "eof")
    return {
        "trial": trial.id,
        "body": base64.b64encode(case.body).decode(),
        "read_ends": [end for end in ends if end <= derived.consumed_bytes],
        "chunk_ends": [*case.chunk_ends, len(case.body)] if case.body else [],
        "characters": [list(match.span()) for match in wide_characters(case.body)],
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
    for trial, count in report["controls"]["naive_per_byte_replacements"].items():
        yield f"control       {trial}: {count} replacement characters when each byte is decoded alone"
    yield f"findings      {len(report['findings'])}"
    yield "level         full: every file hashed, every trial derived again from its bytes"
    yield f"stable root   {report['stable_root']}"
    yield f"full root     {report['full_root']}"


def trace_lines(trace: dict[str, Any]) -> Iterator[str]:
    """A trace as text."""
    yield f"trace of {trace['trial']}: {len(trace['read_ends'])} reads that returned bytes"
    for event in trace["events"]:
        span = f"{event['start']}-{event['end']}"
        yield f"  {span:>13}  {event['before']} -> {event['after']}  {'+'.join(event['signals'])}"
        yield f"  {'':>13}  {plain(brief(event['data']))}"
    yield f"  {trace['end']['at_byte']:>13}  {trace['end']['outcome']}: {plain(trace['end']['why'])}"


def print_report(report: dict[str, Any], coloured: bool) -> None:
    """A report as text: what is wrong first, the conclusion last."""
    paint = painter(coloured)
    for line in finding_lines(report["findings"]):
        print(paint(line, "red") if line[0] == "E" else line)
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


def find_trace(name: str, trials: list[Trial]) -> dict[str, Any]:
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
    rows = [trial_row(trial) for trial in trials]
    report: dict[str, Any] = {
        "schema": "endmark.audit/1",
        "archive": plain(options.dir),
        "stable_root": stable_root(archive, entries),
        "full_root": archive.digests.get(SEAL),
        "anchored": "none",
        "coverage": coverage,
        "subject": plan.subject,
        "totals": totals(trials, rows),
        "controls": {"naive_per_byte_replacements": naive_replacements(archive, trials)},
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
