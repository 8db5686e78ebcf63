"""The target `archive`: one file of a small sealed archive changed, with or without its hashes.

An input is one byte of what is asked, one for the file, and up to four edits; see `Edits`. Whatever they make of
the archive, the auditor ends with a report that can be printed; a change behind the hashes' back is a finding; and
a change of what the stable root covers is one where that root is expected, however well the hashes were mended.
"""

import argparse
import atexit
import contextlib
import io
import json
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.audit import forge
from tests.witnesses import AUDIT

from .choices import Choices

# Two trials: one is read to its end, one is cancelled.
_GOOD = Path(__file__).resolve().parents[1] / "evidence" / "reference-frozen"
_CASES = ("cancel", "crlf")
_SUITE = "mine"
_STABLE = ("data/suite/", "data/records/", "data/blobs/")

_MOST_EDITS = 4
# What TOML and JSON hold between marks, so that an edit can hit one value and leave the rest well-formed.
_VALUE = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*|\b(?:null|true|false)\b')
VALUES = (
    b"null", b"true", b"false", b"0", b"-1", b"1", b"1.5", b"1e400", b"9007199254740992", b'""', b"[]", b"{}",
    b'"\\ud800"', b'"\\u0000"', b'"../x"', b"[[1]]", b'{"a":1,"a":2}', b"1979-05-27", b'"COMPLETE"', b'"frozen"',
)  # fmt: skip

MENDS, TRACES = 1, 2  # bits of the first byte


class Small:
    """The small archive as it should be, in memory and below a folder, where one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        made = forge.copy(_GOOD, folder / "archive")
        made.rename_suite(_SUITE)
        made.keep_cases(*_CASES)
        made.change(forge.PROVENANCE, sources=dict(list(made.document(forge.PROVENANCE)["sources"].items())[:3]))
        made.reseal()
        self.folder = made.folder
        self.names = made.files()
        self.files = {name: made.read(name) for name in self.names}
        self.stable_root = made.stable_root()

    def show(self, files: dict[str, bytes]) -> None:
        """Make the folder hold these files."""
        for name in self.files.keys() | files.keys():
            if files.get(name) != self.files.get(name):
                self._write(name, files.get(name))

    def restore(self, files: dict[str, bytes]) -> None:
        """Make the folder good again after `show`."""
        for name in self.files.keys() | files.keys():
            if files.get(name) != self.files.get(name):
                self._write(name, self.files.get(name))

    def _write(self, name: str, data: bytes | None) -> None:
        if data is None:
            (self.folder / name).unlink()
        else:
            (self.folder / name).write_bytes(data)


@cache
def small() -> Small:
    """Make the small archive, once a process."""
    place = tempfile.TemporaryDirectory(prefix="endmark-fuzz-")
    atexit.register(place.cleanup)
    return Small(Path(place.name))


def edit(data: bytes, choices: Choices) -> bytes:
    """Apply the edits that an input holds: one byte each of kind and length, two of place, then its bytes."""
    for _ in range(_MOST_EDITS):
        kind, place, size = choices.byte() % 4, choices.byte() << 8 | choices.byte(), choices.byte()
        at = place % (len(data) + 1)
        if size == 0:
            break
        if kind == 0:
            data = data[:at] + choices.take(size) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + size :]
        elif kind == 2:
            data = data[:at] + bytes([(data[at] ^ size) if at < len(data) else size]) + data[at + 1 :]
        else:
            data = _put_value(data, place, size)
    return data


def _put_value(data: bytes, place: int, number: int) -> bytes:
    found = list(_VALUE.finditer(data))
    if not found:
        return data
    at = found[place % len(found)]
    return data[: at.start()] + VALUES[number % len(VALUES)] + data[at.end() :]


def mend(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    """Make every hash agree with one changed file, from the inside out: blob, suite, manifest, seal."""
    files = dict(files)
    if name == forge.SEAL:
        return files
    if name.startswith("data/blobs/"):
        _mend_blob(files, name)
    elif name.startswith("data/suite/") and not name.endswith(forge.MANIFEST):
        folder = "/".join(name.split("/")[:3]) + "/"
        _mend_line(files, folder + forge.MANIFEST, name.removeprefix(folder), files[name])
    if name not in (forge.MANIFEST, *AUDIT.SEALED):
        digests = {path: forge.sha256(data) for path, data in files.items() if path.startswith("data/")}
        files[forge.MANIFEST] = forge.manifest_text(digests)
    sealed = [f"{forge.sha256(files[path])}  {path}\n".encode() for path in AUDIT.SEALED]
    files[forge.SEAL] = b"".join(sealed)
    return files


def _mend_blob(files: dict[str, bytes], name: str) -> None:
    """Move a blob below its new hash, and every reference with it."""
    data = files.pop(name)
    old, new = name.rpartition("/")[2], forge.sha256(data)
    files[f"data/blobs/{new}"] = data
    reference = re.compile(rb'"bytes":[0-9]+,"sha256":"%s"' % old.encode())
    records = reference.sub(b'"bytes":%d,"sha256":"%s"' % (len(data), new.encode()), files[forge.RECORDS])
    files[forge.RECORDS] = records.replace(old.encode(), new.encode())


def _mend_line(files: dict[str, bytes], manifest: str, path: str, data: bytes) -> None:
    line = re.compile(rb"^[0-9a-f]{64}(?=  %s$)" % re.escape(path.encode()), re.MULTILINE)
    files[manifest] = line.sub(forge.sha256(data).encode(), files[manifest])


def deviation(data: bytes) -> str | None:
    """Say what the auditor did that it must not; None where it did its work."""
    good = small()
    choices = Choices(data)
    asked = choices.byte()
    name = good.names[choices.byte() % len(good.names)]
    files = good.files | {name: edit(good.files[name], choices)}
    changed = files != good.files
    mended = bool(asked & MENDS)
    if mended and changed:
        files = mend(files, name)
    good.show(files)
    try:
        return _judge(name, asked, changed, mended)
    finally:
        good.restore(files)


def _judge(name: str, asked: int, changed: bool, mended: bool) -> str | None:
    try:
        report: dict[str, Any] = AUDIT.audit(_command(bool(asked & TRACES)))
    except AUDIT.UsageError as error:
        # Nothing to trace is no fault of the auditor's, where the case could not be judged.
        return None if changed and asked & TRACES and str(error).startswith("--trace") else f"called wrongly: {error}"
    codes = {finding["code"] for finding in report["findings"]}
    if not changed:
        return f"a good archive has findings: {sorted(codes)}" if AUDIT.exit_code(report) else None
    if not mended and not codes:
        return f"{name} was changed behind the back of the hashes, and nothing was found"
    if mended and name.startswith(_STABLE) and "E-ROOT" not in codes:
        return f"{name} is below the stable root and was changed, and the root still holds"
    return _unprintable(report)


@cache
def _command(traces: bool) -> argparse.Namespace:
    """Give the command line of an audit that expects the good archive's stable root."""
    words = [str(small().folder), "--expect-stable-root", small().stable_root]
    options: argparse.Namespace = AUDIT.parse_arguments([*words, "--trace", _CASES[0]] if traces else words)
    return options


def _unprintable(report: dict[str, Any]) -> str | None:
    """Print the report as the command does; say which line could drive a terminal."""
    json.dumps(report, sort_keys=True).encode()
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        AUDIT.print_report(report, False)
    for line in shown.getvalue().splitlines():
        if not line.isprintable():
            return f"the auditor prints {line!r}"
    return None
