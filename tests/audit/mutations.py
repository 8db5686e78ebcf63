"""The table of tampering: what an editor does to a good archive, and what the court must say to it.

A row is a name, the change, and the expected code: of a finding (`E-...`), or the verdict where an
edit is consistent and only the reading of the bytes contradicts it. `sealed` says whether the editor
rewrote both manifests afterwards. Where the court has more than one reason to refuse an archive,
the row is as gentle as it can be made: test_checks_are_needed.py asks for one row that only the one
check catches. The classes are those of section 2 of the evidence study (RFC 8493 archives under
sha256sum, bagit.py and a prototype).
"""

import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

from .forge import (
    CONTRACT,
    HOME,
    MANIFEST,
    PLAN,
    PROVENANCE,
    RECORDS,
    RUN,
    SEAL,
    VOLATILE,
    Forge,
    Row,
    ask,
    canonical,
    manifest_text,
    sha256,
)

Change = Callable[[Forge], object]


class Mutation(NamedTuple):
    """One row of the table."""

    name: str
    expected: str
    change: Change
    sealed: bool = True
    options: tuple[str, ...] = ()  # {stable}, {full}: roots of the good archive; {home}: the checkout
    limits: Callable[[Forge], dict[str, int]] | None = None  # limits of the court, lowered: asked in-process
    unprivileged: bool = False  # asked in-process, of a user whom permissions bind
    sessions: bool = False  # done to the archive of sessions


ROWS: list[Mutation] = []


def add(name: str, expected: str, change: Change, **more: object) -> None:
    """Add a row."""
    ROWS.append(Mutation(name, expected, change, **more))  # type: ignore[arg-type]


QUESTION = {"content": "question", "role": "user"}
ANSWER = {"content": "你好，Java 🌱", "role": "assistant"}
SUITE = "data/suite/frozen/"
MINE = "data/suite/mine/"
BLOB = "data/blobs/"


def steps(*changes: Change) -> Change:
    """Make one change of several."""

    def change(forge: Forge) -> None:
        for each in changes:
            each(forge)

    return change


def rename(old: str, new: str) -> Change:
    """Rename a file of the archive."""
    return lambda f: os.rename(f.path(old), f.path(new))


def unlisted(name: str) -> Change:
    """Add a file."""
    return lambda f: f.write(name, b"x")


def raw(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of a file."""
    return lambda f: f.write(name, change(f.read(name)))


def manifest(change: Callable[[bytes], bytes], seal: bool = True) -> Change:
    """Change the manifest, and seal it again."""
    return steps(raw(MANIFEST, change), Forge.seal) if seal else raw(MANIFEST, change)


# -- files -----------------------------------------------------------------------------------------

add("a bit flipped in a blob", "E-HASH", lambda f: flip(f, f.files(BLOB)[0]), sealed=False)
add("a version edited", "E-HASH", lambda f: f.change(PROVENANCE, endmark="9"), sealed=False)
add("a file cut short", "E-HASH", raw(PROVENANCE, lambda data: data[:-1]), sealed=False)
add("a file removed", "E-MISSING", lambda f: f.remove(PROVENANCE), sealed=False)
add("a required file removed, manifest rewritten", "E-MISSING", lambda f: f.remove(PROVENANCE))
add("the run's file removed, manifest rewritten", "E-MISSING", lambda f: f.remove(RUN))
add("a blob removed", "E-MISSING", lambda f: f.remove(f.files(BLOB)[0]), sealed=False)
add("the seal removed", "E-MISSING", lambda f: f.remove(SEAL), sealed=False)
add("the manifest removed", "E-MISSING", lambda f: f.remove(MANIFEST), sealed=False)
add("bagit.txt removed", "E-MISSING", lambda f: f.remove("bagit.txt"), sealed=False)
add("a file renamed", "E-EXTRA", rename(PROVENANCE, "data/origin.json"), sealed=False)
add("a file added at the top", "E-EXTRA", unlisted("notes.txt"), sealed=False)
add("a file added below data", "E-EXTRA", unlisted("data/notes.txt"), sealed=False)
add("a blob added", "E-EXTRA", lambda f: f.blob(b"x"), sealed=False)
add("a file added below data and listed", "E-EXTRA", unlisted("data/notes.txt"))
add("a file added below a case's folder and listed", "E-SUITE", unlisted(SUITE + "cancel/notes.txt"))
add("a folder added below the records and listed", "E-EXTRA", unlisted("data/records/old/trials-00000.jsonl"))
add("the suite of another run hidden beside", "E-COVERAGE", unlisted("data/suite/other/case/body.sse"))
add("a blob added and listed", "E-ORPHAN", lambda f: f.blob(b"x"))
add("an empty folder added", "E-EMPTY-DIR", lambda f: f.path("data/empty").mkdir(), sealed=False)
add("a second manifest of a weaker kind", "E-EXTRA", unlisted("manifest-md5.txt"), sealed=False)


def flip(forge: Forge, name: str, at: int = 0, xor: int = 1) -> None:
    """Flip bits of one byte."""
    data = bytearray(forge.read(name))
    data[at] ^= xor
    forge.write(name, bytes(data))


# -- kinds of files --------------------------------------------------------------------------------


def to_symlink(name: str) -> Change:
    """Put a symbolic link to the same bytes in a file's place."""

    def change(forge: Forge) -> None:
        aside = forge.folder.parent / "aside"
        shutil.move(forge.path(name), aside)
        os.symlink(aside, forge.path(name))

    return change


def replace_by(make: Callable[[Path], object], name: str) -> Change:
    """Put something that is no file in a file's place."""
    return steps(lambda f: f.remove(name), lambda f: make(f.path(name)))


def bind_socket(path: Path) -> None:
    """Leave a socket at a path, however long the path is."""
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        shutil.move(f"{short}/s", path)


def no_device(path: Path) -> None:
    """Make a device that never ends: /dev/zero."""
    os.mknod(path, 0o020644, os.makedev(1, 5))


add("a file made a symbolic link", "E-FILETYPE", to_symlink(PROVENANCE), sealed=False)
add("a folder made a symbolic link", "E-FILETYPE", to_symlink("data/blobs"), sealed=False)
add("a symbolic link added", "E-FILETYPE", lambda f: os.symlink("bagit.txt", f.path("link")), sealed=False)
add("a symbolic link to nowhere", "E-FILETYPE", lambda f: os.symlink("gone", f.path("link")), sealed=False)
add("a symbolic link in a loop", "E-FILETYPE", lambda f: os.symlink("link", f.path("link")), sealed=False)
add("a symbolic link to its own folder", "E-FILETYPE", lambda f: os.symlink("..", f.path("data/up")), sealed=False)
add("a FIFO added", "E-FILETYPE", lambda f: os.mkfifo(f.path("pipe")), sealed=False)
add("a FIFO in a file's place", "E-FILETYPE", replace_by(os.mkfifo, RECORDS), sealed=False)
add("a socket added", "E-FILETYPE", lambda f: bind_socket(f.path("socket")), sealed=False)
if os.geteuid() == 0:
    add("a device in a file's place", "E-FILETYPE", replace_by(no_device, RUN), sealed=False)
add("a hard link to a file", "E-HARDLINK", lambda f: os.link(f.path(RUN), f.folder.parent / "twin"), sealed=False)
add("a hard link between two files", "E-HARDLINK", lambda f: os.link(f.path(RUN), f.path("twin")), sealed=False)


def shut_folder(forge: Forge) -> None:
    """Add a folder that the reader may not enter; all else he may."""
    forge.write("data/shut/hidden.txt", b"x")
    for folder, _, names in os.walk(forge.folder):
        os.chmod(folder, 0o755)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o644)
    os.chmod(forge.path("data/shut"), 0)


add("a folder that cannot be entered", "E-UNREADABLE", shut_folder, sealed=False, unprivileged=True)

# -- names -----------------------------------------------------------------------------------------

ODD_NAMES = {
    "an upper-case name": "data/Notes.txt",
    "a decomposed name": "data/cafe\u0301.txt",
    "a composed name": "data/caf\u00e9.txt",
    "a name with a space": "data/a b.txt",
    "a name with a newline": "data/a\nb.txt",
    "a name with an escape sequence": "data/\x1b[2Jgone",
    "a name with a backslash": "data/a\\b.txt",
    "a name with a percent escape": "data/a%0ab.txt",
    "a name that is no UTF-8": "data/\udcff.txt",
    "a hidden file": "data/.hidden",
    "a name that looks like an option": "data/-rf",
    "a folder with an upper-case name": "data/Sub/notes.txt",
    "a name of 101 characters": "data/" + "x" * 101,
}
for name, path in ODD_NAMES.items():
    add(name, "E-NAME", unlisted(path), sealed=False)


def collide(forge: Forge) -> None:
    """Add a twin of a file whose name differs in case only."""
    forge.write("data/Provenance.json", forge.read(PROVENANCE))


add("two names that differ in case", "E-NAME", collide)

# -- sizes -----------------------------------------------------------------------------------------


def sparse(name: str, size: int) -> Change:
    """Make a file of 8 GiB that takes no room."""
    return lambda f: os.truncate(f.path(name), size)


def entries(forge: Forge) -> int:
    """Count the files and folders of an archive."""
    return sum(1 for _ in forge.folder.rglob("*"))


add("a constant file of 8 GiB", "E-SIZE", sparse("bagit.txt", 8 << 30), sealed=False)
add("a blob of 8 GiB", "E-SIZE", lambda f: sparse(f.files(BLOB)[0], 8 << 30)(f), sealed=False)
add("records of 8 GiB", "E-SIZE", sparse(RECORDS, 8 << 30), sealed=False)
add("a record line of more than 1 MiB", "E-SIZE", raw(RECORDS, lambda data: data + b"x" * (2 << 20) + b"\n"))
add("folders nested without end", "E-SIZE", unlisted("a/" * 40 + "notes.txt"), sealed=False)
add(
    "too many files",
    "E-SIZE",
    unlisted("zzz.txt"),
    sealed=False,
    limits=lambda f: {"MAX_ENTRIES": entries(f) - 1},
)
add(
    "files too long together",
    "E-SIZE",
    lambda _: None,
    limits=lambda f: {"MAX_TOTAL_BYTES": sum(len(f.read(name)) for name in f.files()) - 1},
)
add("too much to judge", "E-SIZE", lambda _: None, limits=lambda _: {"MAX_JUDGED_BYTES": 100})

# -- manifests and seal ----------------------------------------------------------------------------


def list_path(path: str) -> Change:
    """List a path in the manifest, where it belongs by its bytes."""

    def change(forge: Forge) -> None:
        listed = {line[66:]: line[:64] for line in forge.read(MANIFEST).decode().splitlines()}
        forge.write(MANIFEST, manifest_text(listed | {path: sha256(b"x")}))
        forge.seal()

    return change


def swap_first_lines(data: bytes) -> bytes:
    """Put the second line first."""
    lines = data.splitlines(keepends=True)
    return b"".join([lines[1], lines[0], *lines[2:]])


def md5_lines(data: bytes) -> bytes:
    """Cut every digest to the length of an MD5."""
    return b"".join(line[:32] + line[64:] for line in data.splitlines(keepends=True))


add("the manifest edited alone", "E-SEAL", manifest(swap_first_lines, seal=False), sealed=False)
add("a bit flipped in the seal", "E-SEAL", lambda f: flip(f, SEAL), sealed=False)
add("the seal without its final newline", "E-SEAL", raw(SEAL, lambda data: data[:-1]), sealed=False)
add("the seal with a line more", "E-SEAL", raw(SEAL, lambda data: data + data[:-1] + b"x\n"), sealed=False)
add("the seal empty", "E-SEAL", raw(SEAL, lambda _: b""), sealed=False)
add(
    "a line twice in the manifest",
    "E-MANIFEST",
    manifest(lambda data: data[: data.index(b"\n") + 1] + data),
    sealed=False,
)
add("a manifest that is not sorted", "E-MANIFEST", manifest(swap_first_lines), sealed=False)
add("a manifest without its final newline", "E-MANIFEST", manifest(lambda data: data[:-1]), sealed=False)
add("a manifest with CRLF", "E-MANIFEST", manifest(lambda data: data.replace(b"\n", b"\r\n")), sealed=False)
add("a comment in the manifest", "E-MANIFEST", manifest(lambda data: b"# all is well\n" + data), sealed=False)
add("an empty line in the manifest", "E-MANIFEST", manifest(lambda data: data + b"\n"), sealed=False)
add("an upper-case digest", "E-MANIFEST", manifest(lambda data: data[:64].upper() + data[64:]), sealed=False)
add("binary mode in the manifest", "E-MANIFEST", manifest(lambda data: data.replace(b"  ", b" *", 1)), sealed=False)
add("a BOM before the manifest", "E-MANIFEST", manifest(lambda data: b"\xef\xbb\xbf" + data), sealed=False)
add("a manifest of shorter digests", "E-MANIFEST", manifest(md5_lines), sealed=False)
add("a path with ../", "E-MANIFEST", list_path("../outside.txt"), sealed=False)
add("an absolute path", "E-MANIFEST", list_path("/etc/passwd"), sealed=False)
add("a path with ./", "E-MANIFEST", list_path("./data/provenance.json"), sealed=False)
add("a path that is listed and not there", "E-MISSING", list_path("data/blobs/" + "0" * 64), sealed=False)
add("a tag file listed as payload", "E-EXTRA", list_path("bagit.txt"), sealed=False)
add("bagit.txt changed", "E-TAGFILE", lambda f: f.replace("bagit.txt", b"1.0", b"0.97"))
add("bag-info.txt with another agent", "E-TAGFILE", lambda f: f.write("bag-info.txt", b"Bag-Software-Agent: x\n"))

# -- JSON ------------------------------------------------------------------------------------------


def respell(old: bytes, new: bytes, name: str = RUN) -> Change:
    """Spell something in a document differently."""
    return lambda f: f.replace(name, old, new)


def jobs(new: bytes) -> Change:
    """Spell the number of jobs in the run's file differently."""
    return steps(lambda f: f.change(RUN, jobs=1), respell(JOBS, new))


def without_jobs(forge: Forge) -> None:
    """Leave a field out."""
    document = forge.document(RUN)
    del document["jobs"]
    forge.save(RUN, document)


JOBS = b'"jobs":1'
add("a key twice", "E-JSON", jobs(b'"jobs":9,"jobs":1'))
add("a key twice in a record", "E-JSON", respell(b'"delivered":true', b'"delivered":true,"delivered":true', RECORDS))
add("NaN", "E-JSON", jobs(b'"jobs":NaN'))
add("a float", "E-JSON", jobs(b'"jobs":1.0'))
add("an exponent", "E-JSON", jobs(b'"jobs":1e0'))
add("an integer of 2^53", "E-JSON", jobs(b'"jobs":9007199254740992'))
add("an integer of 5,000 digits", "E-JSON", jobs(b'"jobs":' + b"9" * 5000))
add("containers nested 100,000 deep", "E-JSON", lambda f: f.write(RUN, b"[" * 100_000 + b"]" * 100_000 + b"\n"))
add("a lone surrogate", "E-JSON", respell(b'"host":"', b'"host":"\\ud800'))
add("a document that is no UTF-8", "E-JSON", respell(b'"host":"', b'"host":"\xff'))
add("a BOM before a document", "E-JSON", raw(RUN, lambda data: b"\xef\xbb\xbf" + data))
add("two documents in one file", "E-JSON", raw(RUN, lambda data: data + data))
add("a line that is no JSON after the records", "E-JSON", raw(RECORDS, lambda data: data + b"end\n"))
add("an empty line among the records", "E-JSON", raw(RECORDS, lambda data: data.replace(b"\n", b"\n\n", 1)))
add("true for 1", "E-SCHEMA", jobs(b'"jobs":true'))
add("1 for true", "E-SCHEMA", respell(b'"delivered":true', b'"delivered":1', RECORDS))
add("text for a number", "E-SCHEMA", jobs(b'"jobs":"1"'))
add("a negative number", "E-SCHEMA", jobs(b'"jobs":-1'))
add("an unknown field", "E-SCHEMA", lambda f: f.change(RUN, comment="all is well"))
add("an unknown field in a claim", "E-SCHEMA", lambda f: f.change_claim("cancel", comment="all is well"))
add("a missing field", "E-SCHEMA", without_jobs)
add("another schema version", "E-SCHEMA", lambda f: f.change(RUN, schema="endmark.run/2"))
add("a local time", "E-SCHEMA", lambda f: f.change(RUN, started_at="2026-11-30T22:45:51+01:00"))
add(
    "an upper-case digest in a record",
    "E-SCHEMA",
    lambda f: f.change_row("cancel", body=upper(f.row("cancel")["body"])),
)
add("a space between tokens", "E-CANON", respell(b'":', b'": '))
add("keys in another order", "E-CANON", lambda f: f.write(RUN, reversed_keys(f.document(RUN))))
add("an escape where none is needed", "E-CANON", respell(b'"endmark.run/1"', b'"endmark\\u002erun/1"'))
add("raw UTF-8 where an escape is needed", "E-CANON", respell(b'"host":"', '"host":"é'.encode()))
add("CRLF after the records", "E-CANON", raw(RECORDS, lambda data: data.replace(b"\n", b"\r\n")))
add("-0 for 0", "E-CANON", lambda f: minus_nought(f))
add("a document without its final newline", "E-CANON", raw(RUN, lambda data: data[:-1]))
add("the records without their final newline", "E-TRUNC", raw(RECORDS, lambda data: data[:-1]))
add("the volatile records without their final newline", "E-TRUNC", raw(VOLATILE, lambda data: data[:-1]))
add("the records cut in the last line", "E-TRUNC", raw(RECORDS, lambda data: data[:-100]))
add("the records empty", "E-TRUNC", lambda f: f.write(RECORDS, b""))


def upper(reference: Row) -> Row:
    """Spell a digest in upper case."""
    return reference | {"sha256": reference["sha256"].upper()}


def reversed_keys(value: Row) -> bytes:
    """Spell a document with its keys backwards."""
    pairs = (canonical(key) + b":" + canonical(value[key]) for key in sorted(value, reverse=True))
    return b"{" + b",".join(pairs) + b"}\n"


def minus_nought(forge: Forge) -> None:
    """Spell a zero with a sign."""
    forge.change_volatile("cancel", started_ms=0)
    forge.write(VOLATILE, forge.read(VOLATILE).replace(b'"started_ms":0,', b'"started_ms":-0,'))


# -- plan, records, order --------------------------------------------------------------------------

LAST = "wrong-mime"


def without(case: str) -> Change:
    """Remove the record of one case, and what only it referred to."""
    trial = f"frozen/{case}@frozen-text/1"
    return steps(lambda f: f.both(lambda rows: [row for row in rows if row["trial"] != trial]), Forge.sweep)


def unplan(case: str) -> Change:
    """Drop a trial from the plan."""
    trial = f"frozen/{case}@frozen-text/1"
    return lambda f: f.change(PLAN, trials=[name for name in f.document(PLAN)["trials"] if name != trial])


def replan(change: Callable[[list[str]], list[str]]) -> Change:
    """Change the list of planned trials."""
    return lambda f: f.change(PLAN, trials=change(f.document(PLAN)["trials"]))


def swap_first(items: list[object]) -> list[object]:
    """Put the second item first."""
    return [items[1], items[0], *items[2:]]


def swap_first_rows(rows: list[Row]) -> list[Row]:
    """Put the second row first."""
    return [rows[1], rows[0], *rows[2:]]


def shard(*sizes: int, numbers: tuple[int, ...] = ()) -> Change:
    """Split the records into files of so many lines."""

    def change(forge: Forge) -> None:
        for name in (RECORDS, VOLATILE):
            rows = forge.rows(name)
            forge.remove(name)
            for number, size in zip(numbers or range(len(sizes)), sizes, strict=True):
                forge.save_rows(rows[:size], name.replace("00000", f"{number:05d}"))
                rows = rows[size:]

    return change


def invent_case(forge: Forge) -> None:
    """Plan and record a case that the suite does not have."""
    trial = "frozen/zz-invented@frozen-text/1"
    replan(lambda trials: [*trials, trial])(forge)
    for name in (RECORDS, VOLATILE):
        rows = forge.rows(name)
        row = rows[-1] | {"trial": trial} | ({"case": "zz-invented"} if name == RECORDS else {})
        forge.save_rows([*rows, row], name)


def empty_suite(forge: Forge) -> None:
    """Name a second suite in the plan of which nothing was run."""
    text = forge.read(SUITE + "suite.toml").replace(b'"frozen"', b'"another"')
    forge.write("data/suite/another/suite.toml", text)
    forge.write("data/suite/another/" + MANIFEST, manifest_text({"suite.toml": sha256(text)}))
    forge.change(PLAN, suites=["another", "frozen"])


def pass_off(forge: Forge) -> None:
    """Pass one trial's good record off as that of another."""
    trial = forge.row("crlf")["trial"]
    forge.change_row("crlf", **forge.row("bare-cr") | {"trial": trial})
    forge.save_rows(
        [row | {"sent_bytes": 253} if row["trial"] == trial else row for row in forge.rows(VOLATILE)], VOLATILE
    )


add("the last record removed", "E-COVERAGE", without(LAST))
add("a record in the middle removed", "E-COVERAGE", without("multiline"))
add("a trial dropped from plan and records, its case kept", "E-COVERAGE", steps(without(LAST), unplan(LAST)))
add(
    "a record that was not planned",
    "E-COVERAGE",
    steps(unplan(LAST), lambda f: f.remove(SUITE + LAST)),
)
add("a planned case that the suite does not have", "E-COVERAGE", invent_case)
add("a planned suite without a trial", "E-COVERAGE", empty_suite)
add("a plan without its suite", "E-COVERAGE", lambda f: f.change(PLAN, suites=[]))
add("a record twice", "E-DUP", lambda f: f.both(lambda rows: [*rows, rows[-1]]))
add("two records swapped", "E-ORDER", lambda f: f.both(swap_first_rows))
add(
    "plan and records in another order",
    "E-ORDER",
    steps(lambda f: f.both(swap_first_rows), replan(lambda t: [t[1], t[0], *t[2:]])),
)
add("a trial planned twice", "E-ORDER", replan(lambda trials: [trials[0], *trials]))
add("records split too early", "E-SHARD", shard(21, 1))
add(
    "a gap in the numbers of the files",
    "E-SHARD",
    shard(11, 11, numbers=(0, 2)),
    limits=lambda _: {"SHARD_LINES": 11},
)
add("a trial under another name", "E-SCHEMA", lambda f: f.change_row("crlf", case="bare-cr"))
add("a trial's record put under the name of another", "E-SCHEMA", pass_off)
add("a claim and a reason why there is none", "E-SCHEMA", lambda f: f.change_row("cancel", no_claim="timeout"))
add("neither a claim nor a reason", "E-SCHEMA", lambda f: f.change_row("cancel", claim=None))
add("a traversal in the plan", "E-SCHEMA", replan(lambda trials: ["../x/y@frozen-text/1", *trials]))

# -- suites, labels, contracts ---------------------------------------------------------------------

LABEL = "cancel/label.toml"
CASE = "cancel/case.toml"


def mine(*changes: Change) -> Change:
    """Change a suite that is not shipped, and freeze it."""
    return steps(Forge.rename_suite, *changes, lambda f: f.freeze("mine"), freeze_contracts)


def freeze_contracts(forge: Forge) -> None:
    """Write the hashes of the contracts."""
    forge.freeze("contracts")


def edit(name: str, old: str, new: str) -> Change:
    """Edit text."""
    return lambda f: f.replace(name, old.encode(), new.encode())


def label_lies(forge: Forge) -> None:
    """Say that the cancelled turn was complete."""
    forge.replace(MINE + LABEL, b'"CANCELLED"', b'"COMPLETE"')


def bodies_forged(forge: Forge) -> None:
    """Make another case of wire, suite and records, all consistent: a cut body becomes a whole one."""
    whole = forge.read(SUITE + "seven-byte/body.sse")
    forge.write(SUITE + "missing-done/body.sse", whole)
    forge.write(SUITE + "missing-done/label.toml", forge.read(SUITE + "seven-byte/label.toml"))
    forge.freeze("frozen")
    good = forge.row("seven-byte")
    forge.change_row("missing-done", body=good["body"], claim=good["claim"])
    forge.change_volatile("missing-done", sent_bytes=len(whole))


def refreeze(name: str, old: str, new: str) -> Change:
    """Edit a file of the shipped suite and freeze it again."""
    return steps(edit(name, old, new), lambda f: f.freeze(name.split("/")[2]))


def promise_file(forge: Forge) -> None:
    """List a file in the suite's manifest that the copy does not have."""
    forge.write(MINE + "cancel/notes.txt", b"x")
    forge.freeze("mine")
    forge.remove(MINE + "cancel/notes.txt")


WHY = "The reader stopped by its own will"
add("a label swapped, manifest rewritten", "E-SUITE", edit(SUITE + LABEL, '"CANCELLED"', '"COMPLETE"'))
add("a label swapped, suite rewritten too", "E-SUITE", refreeze(SUITE + LABEL, '"CANCELLED"', '"COMPLETE"'))
add("a reason reworded", "E-SUITE", edit(SUITE + LABEL, WHY, "It stopped"))
add("a reason reworded, suite rewritten too", "E-SUITE", refreeze(SUITE + LABEL, WHY, "It stopped"))
add("an authority weakened", "E-SUITE", refreeze(SUITE + LABEL, '"spec"', '"judgement"'))
add("a case's condition edited", "E-SUITE", refreeze(SUITE + CASE, "cancel_after_utf16 = 3", "cancel_after_utf16 = 2"))
add("wire, suite and records forged, all consistent", "E-SUITE", bodies_forged)
add("a case removed from the suite's copy", "E-SUITE", lambda f: f.remove(SUITE + CASE))
add("a file of a case that was not copied", "E-SUITE", steps(Forge.rename_suite, promise_file))
add("a suite's manifest removed", "E-SUITE", lambda f: f.remove(SUITE + MANIFEST))
add("a limit of the contract raised", "E-SUITE", edit(CONTRACT, "8192", "9000"))
add("a limit of the contract raised, its manifest rewritten", "E-SUITE", refreeze(CONTRACT, "4096", "5000"))
add("the contract's title edited, its manifest rewritten", "E-SUITE", refreeze(CONTRACT, "non-empty", "any"))
add("a contract that was not planned", "E-COVERAGE", lambda f: other_contract(f))
add("a suite with an unknown key", "E-SUITE", mine(edit(MINE + "suite.toml", "licence", 'by = "x"\nlicence')))
add("a suite under another name", "E-SUITE", mine(edit(MINE + "suite.toml", '"mine"', '"yours"')))
add("a suite that is no TOML", "E-SUITE", mine(edit(MINE + "suite.toml", "licence", "licence licence")))
add("a suite that states other contracts", "E-COVERAGE", mine(edit(MINE + "suite.toml", '["frozen-text/1"]', "[]")))
add("a case with an unknown key", "E-CASE", mine(edit(MINE + CASE, "title", 'by = "x"\ntitle')))
add("a label with an unknown key", "E-LABEL", mine(edit(MINE + LABEL, "why", 'by = "x"\nwhy')))
add("a label under another contract", "E-LABEL", mine(edit(MINE + LABEL, "frozen-text/1", "frozen-text/2")))
add("a label with an unknown outcome", "E-LABEL", mine(edit(MINE + LABEL, "CANCELLED", "FINE")))
add("a contract with an unknown key", "E-CONTRACT", mine(edit(CONTRACT, "events = 256", "events = 256\nsoft = 1")))
add("a contract under another name", "E-CONTRACT", mine(edit(CONTRACT, '"frozen-text/1"', '"frozen-text/2"')))
add("a contract with an unknown rule", "E-CONTRACT", mine(edit(CONTRACT, 'paused = "caller"', 'paused = "keep"')))
add("a contract without the dialect", "E-CONTRACT", mine(edit(CONTRACT, "dialect.openai-chat", "dialect.other")))
add("a label that claims another outcome", "LABEL_CONFLICT", mine(label_lies))
add("a label that claims another preview", "LABEL_CONFLICT", mine(edit(MINE + LABEL, 'preview = "', 'preview = "x')))
add(
    "a case that is read differently",
    "LABEL_CONFLICT",
    mine(edit(MINE + "length-finish/label.toml", "INCOMPLETE_FINISH", "COMPLETE")),
)


def other_contract(forge: Forge) -> None:
    """Copy a contract by which nothing was judged."""
    forge.rename_suite()
    forge.write("data/suite/contracts/other-1.toml", forge.read(CONTRACT))
    forge.freeze("contracts")


def allow_dialect(forge: Forge) -> None:
    """Give the contract the same rules for another dialect."""
    text = forge.read(CONTRACT)
    rules = text[text.index(b"[dialect") :]
    forge.write(CONTRACT, text + b"\n" + rules.replace(b"openai-chat", b"other"))


# How the values of a case hang together: each edit is well-formed TOML of the right shape.
CASE_EDITS = {
    "a case without its body": ('body = "body.sse"', 'body = "gone.sse"'),
    "a case of two exchanges": ("[[exchange]]", '[[exchange]]\nbody = "body.sse"\n[[exchange]]'),
    "a case with an ending that its framing cannot have": ('"complete"', '"short-length"'),
    "a case whose chunks end beyond the body": ('"chunked"', '"chunked"\nchunk_ends = [900000]'),
    "a case whose chunks go backwards": ('"chunked"', '"chunked"\nchunk_ends = [9, 8]'),
    "a case that waits about as long as the client": ('"chunked"', '"chunked"\nscript = [{ wait_ms = 900 }]'),
}
for name, (old, new) in CASE_EDITS.items():
    add(name, "E-CASE", mine(edit(MINE + CASE, old, new)))

add(
    "a case of an unknown dialect that the contract allows",
    "E-CASE",
    mine(edit(MINE + "http-503/case.toml", '"openai-chat"', '"other"'), lambda f: allow_dialect(f)),
)
add(
    "a case whose script sends too little",
    "E-CASE",
    mine(edit(MINE + "http-503/case.toml", '"chunked"', '"chunked"\nscript = [{ send_bytes = 1 }]')),
)

# -- blobs, wire, requests -------------------------------------------------------------------------


def swap_blobs(forge: Forge) -> None:
    """Swap the content of two bodies of the same size."""
    one, two = ("seven-byte", "length-finish")
    first, second = (BLOB + forge.row(case)["body"]["sha256"] for case in (one, two))
    a, b = forge.read(first), forge.read(second)
    forge.write(first, b)
    forge.write(second, a)


def rename_blob(forge: Forge) -> None:
    """Give a blob the name of no hash, and refer to it by that name."""
    old, new = forge.row("cancel")["body"]["sha256"], "0" * 64
    forge.write(BLOB + new, forge.read(BLOB + old))
    forge.change_row("cancel", body={"bytes": 91, "sha256": new})


def head(old: bytes, new: bytes) -> Change:
    """Serve another response head to one case."""

    def change(forge: Forge) -> None:
        data = forge.content(forge.row("cancel")["response_head"])
        assert old in data
        forge.change_row("cancel", response_head=forge.blob(data.replace(old, new)))

    return change


def request(old: bytes, new: bytes) -> Change:
    """Record another request of one case."""

    def change(forge: Forge) -> None:
        data = forge.content(forge.row("cancel")["requests"][0])
        assert old in data
        forge.change_row("cancel", requests=[forge.blob(data.replace(old, new, 1))])

    return change


def shorter_body(forge: Forge) -> None:
    """Archive fewer bytes than the subject says it consumed."""
    forge.change_row("cancel", body=forge.blob(forge.content(forge.row("cancel")["body"])[:-1]))


def other_body(forge: Forge) -> None:
    """Archive other bytes of the same number."""
    body = forge.content(forge.row("cancel")["body"])
    forge.change_row("cancel", body=forge.blob(body[:-1] + b"x"))


def nothing_asked(forge: Forge) -> None:
    """Say that no request came, and that the whole body was played all the same."""
    forge.change_row("cancel", requests=[], status=None, response_head=None, body=None)
    forge.change_volatile("cancel", server_end="played", sent_bytes=len(forge.read(SUITE + "cancel/body.sse")))


def longer_silence(forge: Forge) -> None:
    """Serve a whole body where the case has a cut one."""
    forge.serve("missing-done", forge.read(SUITE + "seven-byte/body.sse"))


def absent_blob(key: str) -> Change:
    """Refer to a blob that is not there."""
    return lambda f: f.change_row("cancel", **{key: {"bytes": 1, "sha256": "0" * 64}})


HEADER = b"content-type: application/json\n"
add("two blobs swapped", "E-BLOB-NAME", swap_blobs)
add("a blob under the name of no hash", "E-BLOB-NAME", rename_blob)
add("a body that is not there", "E-BLOB-REF", absent_blob("body"))
add("a response head that is not there", "E-BLOB-REF", absent_blob("response_head"))
add(
    "a blob of another size",
    "E-BLOB-REF",
    lambda f: f.change_row("cancel", body=f.row("cancel")["body"] | {"bytes": 90}),
)
add(
    "a record that points at another case's bytes",
    "E-CASE-WIRE",
    lambda f: f.change_row("crlf", body=f.row("bare-cr")["body"]),
)
add("a body with other bytes", "E-CASE-WIRE", other_body)
add("a body shorter than what was consumed", "E-CASE-WIRE", shorter_body)
add("a whole body for a cut one", "E-CASE-WIRE", longer_silence)
add("a body that was not served", "E-CASE-WIRE", lambda f: f.change_row("cancel", response_head=None))
add("a claim without a body", "E-CASE-WIRE", lambda f: f.change_row("cancel", body=None))
add("a response head of another status", "E-CASE-WIRE", head(b"200 OK", b"503 Service Unavailable"))
add("a response head of another type", "E-CASE-WIRE", head(b"event-stream", b"plain"))
add("a response head with a header more", "E-CASE-WIRE", head(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
add("a response head cut short", "E-CASE-WIRE", head(b"\r\n\r\n", b"\r\n"))
add("another status served", "E-STATUS", lambda f: f.change_row("cancel", status=201))
add("a status that hides an error", "E-STATUS", lambda f: f.change_row("http-503", status=200))
add("a port in a request", "E-REQUEST", request(b"host: {host}", b"host: 127.0.0.1:46811"))
add("a token in a request's path", "E-REQUEST", request(b"{path}", b"/3UwU5noJvG862b/v1"))
add("an API key in a request's headers", "E-REQUEST", request(HEADER, HEADER + b"x-api-key: secret\n"))
add("an authorization in a request's headers", "E-REQUEST", request(b"accept:", b"authorization: Bearer x\naccept:"))
add("headers of a request in another order", "E-REQUEST", request(HEADER, HEADER + b"accept: */*\n"))
add("a request whose body is no JSON", "E-REQUEST", request(b'{"', b"{'"))
add("a request with a member more", "E-REQUEST", request(b'{"', b'{"api_key":"secret","'))
add("a request that is not canonical", "E-REQUEST", request(b'":', b'": '))
add("a request of another question", "E-REQUEST", request(b'"question"', b'"an easier question"'))
add("a request of another history", "E-REQUEST", request(b'"earlier"', b'"never"'))
add(
    "a request without a body",
    "E-REQUEST",
    lambda f: request(f.content(f.row("cancel")["requests"][0]).split(b"\n\n")[1], b"")(f),
)

# -- volatile records ------------------------------------------------------------------------------

VOLATILE_ROWS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "a volatile record missing": lambda rows: rows[:-1],
    "a volatile record twice": lambda rows: [*rows, rows[-1]],
    "volatile records in another order": swap_first_rows,
    "no volatile record of the first trial": lambda rows: rows[1:],
}
for name, rows in VOLATILE_ROWS.items():
    add(name, "E-VOLATILE", lambda f, rows=rows: f.save_rows(rows(f.rows(VOLATILE)), VOLATILE))  # type: ignore[misc]


def flags(case: str, delivered: bool, **members: object) -> Change:
    """Change what the server says of its end."""
    return steps(lambda f: f.change_row(case, delivered=delivered), lambda f: f.change_volatile(case, **members))


add("a failed server that delivered", "E-VOLATILE", flags("cancel", True, server_end="failed"))
add("a played body that was not delivered", "E-VOLATILE", flags("bare-cr", False, server_end="played"))
add("a claim of bytes that were not sent", "E-VOLATILE", flags("cancel", True, server_end="client-left", sent_bytes=90))
add("a delivery that is denied", "E-VOLATILE", flags("cancel", False, server_end="client-left"))
add("a body that ends nobody says why", "E-CASE-WIRE", lambda f: f.change_claim("cancel", consumed_bytes=None))
add("more sent than there is", "E-VOLATILE", flags("cancel", True, server_end="played", sent_bytes=9999))
add("less played than there is", "E-VOLATILE", flags("cancel", True, server_end="played", sent_bytes=200))
add("an end that was waited for and not played", "E-VOLATILE", flags("missing-done", True, server_end="client-left"))
add("a body that was played to nobody", "E-VOLATILE", nothing_asked)
add("a run that ended before it began", "E-VOLATILE", lambda f: f.change(RUN, finished_at="2001-01-01T00:00:00Z"))

# -- anchors and sources ---------------------------------------------------------------------------


def edit_source(forge: Forge) -> None:
    """Claim that another client was run."""
    sources = forge.document(PROVENANCE)["sources"]
    forge.change(PROVENANCE, sources=sources | {"client/turn.py": sha256(b"")})


def another_run(forge: Forge) -> None:
    """Claim another exception: nothing in the archive contradicts it."""
    forge.change_claim("cancel", raised={"chain": [], "type": "Other"})


def forget_source(forge: Forge) -> None:
    """Leave a source out."""
    sources = forge.document(PROVENANCE)["sources"]
    forge.change(PROVENANCE, sources={path: sources[path] for path in sources if path != "client/turn.py"})


STABLE_ANCHOR = ("--expect-stable-root", "{stable}")
add("another run under a published stable root", "E-ROOT", another_run, options=STABLE_ANCHOR)
add(
    "another time under a published root",
    "E-ROOT",
    lambda f: f.change(RUN, started_at="2001-01-01T00:00:00Z"),
    options=("--expect-root", "{full}"),
)
add(
    "provenance edited under a published root",
    "E-ROOT",
    lambda f: f.change(PROVENANCE, python="2.7"),
    options=("--expect-root", "{full}"),
)
add("a source that is not the checkout's", "E-SOURCE", edit_source, options=("--source", "{home}"))
add("a source left out", "E-SOURCE", forget_source, options=("--source", "{home}"))

# -- claims: what is wrong here is the subject's word, and the verdict says so --------------------


def keeps(case: str, *added: Row) -> Change:
    """Claim a history to which these entries were added."""
    return lambda f: f.claim_history(case, [*EARLIER, *added])


EARLIER = [{"content": "earlier", "role": "user"}, {"content": "earlier", "role": "assistant"}]
PARTIAL = {"content": "你好，", "role": "assistant"}
NORMAL = {"content": "你好,Java 🌱", "role": "assistant"}  # NFKC of the answer

add("an answer withdrawn", "FALSE_WITHHOLD", keeps("crlf"))
add("half an answer kept", "FALSE_COMMIT", keeps("missing-done", QUESTION, PARTIAL))
add("a question kept without an answer", "FALSE_COMMIT", keeps("missing-done", QUESTION))
add("a question kept, its answer lost", "FALSE_WITHHOLD", keeps("crlf", QUESTION))
add("an answer reworded", "ALTERED", keeps("crlf", QUESTION, ANSWER | {"content": "Hello, Java"}))
add("an answer cut", "ALTERED", keeps("crlf", QUESTION, PARTIAL))
add("an answer normalised", "ALTERED", keeps("crlf", QUESTION, NORMAL))
add("an answer kept twice", "ALTERED", keeps("crlf", QUESTION, ANSWER, QUESTION, ANSWER))
add("another question kept", "ALTERED", keeps("crlf", QUESTION | {"content": "other"}, ANSWER))
add("the roles swapped", "ALTERED", keeps("crlf", QUESTION | {"role": "assistant"}, ANSWER | {"role": "user"}))
add("an earlier entry changed", "ALTERED", lambda f: f.claim_history("cancel", [EARLIER[0], PARTIAL]))
add("the earlier entries lost", "ALTERED", lambda f: f.claim_history("cancel", []))
add("a history with a member more", "E-SCHEMA", lambda f: f.claim_history("cancel", [EARLIER[0] | {"note": "x"}]))
add("a history that is not canonical", "E-CANON", lambda f: spaced_history(f))
add("a preview that is no UTF-8", "E-SCHEMA", lambda f: f.claim_preview("cancel", b"\xff"))
add("a preview shortened", "MISREPORTED", lambda f: f.claim_preview("crlf", "你好，".encode()))
add("a preview normalised", "MISREPORTED", lambda f: f.claim_preview("crlf", NORMAL["content"].encode()))

CLAIMS: dict[str, object] = {
    "outcome": "COMPLETE",
    "reads": 14,
    "status": 201,
    "finish_reason": "stop",
    "transport_end": "eof",
    "consumed_sha256": "0" * 64,
}
for key, value in CLAIMS.items():
    add(f"{key} edited", "MISREPORTED", lambda f, key=key, value=value: f.change_claim("cancel", **{key: value}))  # type: ignore[misc]


def consumed_less(forge: Forge) -> None:
    """Claim one byte less, with the archived body to match."""
    body = forge.content(forge.row("cancel")["body"])[:-1]
    forge.change_claim("cancel", consumed_bytes=len(body), consumed_sha256=sha256(body))
    forge.change_row("cancel", body=forge.blob(body))


def outcome_and_history(forge: Forge) -> None:
    """Make a refused turn a complete one: outcome, preview, history and reason, all consistent."""
    whole = forge.row("seven-byte")["claim"]
    wanted = {key: whole[key] for key in ("outcome", "preview", "history", "raised")}
    forge.change_claim("length-finish", **wanted)


def spaced_history(forge: Forge) -> None:
    """Claim the right history, with a space more."""
    forge.change_claim("cancel", history=forge.blob(canonical(EARLIER).replace(b",", b", ")))


def silent(reason: str, **members: object) -> Change:
    """Say that a subject that is told no contract and has no earlier history made no claim."""

    def change(forge: Forge) -> None:
        forge.rename_suite()
        forge.keep_cases("invalid-utf8")
        empty = forge.read(MINE + "suite.toml").partition(b"history = [")
        forge.write(MINE + "suite.toml", empty[0] + b"history = []" + empty[2].partition(b"]")[2])
        forge.freeze("mine")
        plan = forge.document(PLAN)
        forge.change(PLAN, subject=plan["subject"] | {"contract_aware": False})
        data = forge.content(forge.row("invalid-utf8")["requests"][0])
        asked = data.partition(b'"messages":[')
        lonely = asked[0] + asked[1] + canonical(QUESTION) + b"]" + asked[2].rpartition(b"]")[2]
        forge.change_row("invalid-utf8", claim=None, no_claim=reason, requests=[forge.blob(lonely)])
        if members:
            forge.change_row("invalid-utf8", **members)
            forge.change_volatile("invalid-utf8", server_end="not-asked", sent_bytes=0)

    return change


NOTHING: Row = {"requests": [], "status": None, "response_head": None, "body": None, "delivered": False}
add("consumed bytes edited", "MISREPORTED", consumed_less)
add("outcome, preview and history edited together", "FALSE_COMMIT", outcome_and_history)
add("a fault that never reached the wire", "NOT_DELIVERED", flags("missing-done", False, server_end="client-left"))
add("no claim", "NO_CLAIM", silent("timeout"))
add("no claim for want of a capability", "UNSUPPORTED", silent("unsupported", **NOTHING))
add(
    "half an answer kept, by a judgement alone",
    "NON_STRICT",
    mine(
        edit(MINE + "missing-done/label.toml", '"provider-doc"', '"judgement"'),
        keeps("missing-done", QUESTION, PARTIAL),
    ),
)
add(
    "an answer withdrawn, by a judgement alone",
    "OVER_STRICT",
    mine(edit(MINE + "crlf/label.toml", '"spec"', '"judgement"'), keeps("crlf")),
)


def two_contracts(case: str, old: str, new: str) -> Change:
    """Let a suite state a second contract, under which one case is labelled otherwise, for a subject told none."""

    def change(forge: Forge) -> None:
        forge.replace(MINE + "suite.toml", b'["frozen-text/1"]', b'["frozen-text/1", "loose/1"]')
        for path in sorted(forge.folder.glob(MINE + "*/label.toml")):
            name = path.relative_to(forge.folder).as_posix()
            text = forge.read(name)
            stated = text[text.index(b"[contract") :].replace(b"frozen-text/1", b"loose/1")
            if f"/{case}/" in name:
                stated = stated.replace(old.encode(), new.encode())
            forge.write(name, text + b"\n" + stated)
        plan = forge.document(PLAN)
        forge.change(PLAN, subject=plan["subject"] | {"contract_aware": False})

    return change


add(
    "an answer kept that only a looser contract accepts",
    "NON_STRICT",
    mine(two_contracts("crlf", "committed = true", "committed = false")),
)
add(
    "nothing kept where a looser contract accepts",
    "OVER_STRICT",
    mine(two_contracts("cancel", "committed = false", "committed = true")),
)
add("a tool dispatched", "FALSE_COMMIT", lambda f: f.change_claim("cancel", dispatched=1))


def apply(row: Mutation, forge: Forge) -> None:
    """Spoil an archive as a row says."""
    row.change(forge)
    if row.sealed:
        forge.reseal()


def refuse_shut(path: str, flags: int, *, dir_fd: int | None = None) -> int:
    """Open a file as the kernel would for a user who may not enter the folder `shut`."""
    if path == "shut":
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return os.open(path, flags, dir_fd=dir_fd)


def options(row: Mutation, good: Forge) -> list[str]:
    """Give a row's options, with the roots of the good archive."""
    values = {"stable": good.stable_root(), "full": good.full_root(), "home": str(HOME)}
    return [option.format(**values) for option in row.options]


def ask_about(row: Mutation, court: ModuleType, forge: Forge, good: Path) -> Row:
    """Ask a loaded court about a spoilt archive, under the row's conditions; give the report."""
    lowered = row.limits(forge) if row.limits else {}
    words = options(row, Forge(good))
    with ExitStack() as stack:
        for name, value in lowered.items():
            stack.callback(setattr, court, name, getattr(court, name))
            setattr(court, name, value)
        if row.unprivileged and os.geteuid() == 0:
            # Permissions do not bind root: the refusal is played.
            stack.callback(setattr, court, "os", court.os)
            court.os = SimpleNamespace(**vars(os) | {"open": refuse_shut})  # type: ignore[attr-defined]
        return ask(court, forge.folder, *words)
