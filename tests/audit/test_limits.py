"""The auditor's own limits: what is exactly as large as one passes, and one less finds it too large."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import audit

from .forge import RECORDS, RUN, Forge, ask, codes


def entries(archive: Forge) -> int:
    """How many files and folders there are."""
    return sum(1 for _ in archive.folder.rglob("*"))


def longest(archive: Forge, ending: str) -> int:
    """The size of the longest file with that ending."""
    return max(len(archive.read(name)) for name in archive.files() if name.endswith(ending))


def dots(archive: Forge) -> int:
    """The most dots of a TOML file."""
    return max(archive.read(name).count(b".") for name in archive.files() if name.endswith(".toml"))


def judged(archive: Forge) -> int:
    """The bytes of all bodies."""
    return sum(len(archive.read(name)) for name in archive.files("data/suite") if name.endswith("body.sse"))


# limit -> what the good archive has of it, and what is found where it has one too much
LIMITS: dict[str, tuple[Callable[[Forge], int], str]] = {
    "MAX_FILE_BYTES": (lambda f: longest(f, ""), "E-SIZE"),
    "MAX_TOTAL_BYTES": (lambda f: sum(len(f.read(name)) for name in f.files()), "E-SIZE"),
    "MAX_ENTRIES": (entries, "E-SIZE"),
    "MAX_DEPTH": (lambda f: max(len(name.split("/")) for name in f.files()), "E-SIZE"),
    "MAX_LINE_BYTES": (lambda f: max(map(len, f.read(RECORDS).splitlines())), "E-SIZE"),
    "MAX_JUDGED_BYTES": (judged, "E-SIZE"),
    "MAX_TOML_BYTES": (lambda f: longest(f, ".toml"), "E-CONTRACT"),
    "MAX_TOML_DOTS": (dots, "E-CASE"),
    "MAX_RECORD_DEPTH": (lambda _: 4, "E-JSON"),
    "SHARD_LINES": (lambda f: len(f.rows()), "E-SHARD"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_exactly_the_limit_passes(
    name: str, archive: Forge, court: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good archive is sound under limits that just hold it, and not under one less."""
    measure, code = LIMITS[name]
    monkeypatch.setattr(court, name, measure(archive))
    assert codes(ask(court, archive.folder)) == set()
    monkeypatch.setattr(court, name, measure(archive) - 1)
    assert code in codes(ask(court, archive.folder))


def test_too_many_entries_are_said_once(archive: Forge, court: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry beyond the limit is named, and the rest of them not."""
    monkeypatch.setattr(court, "MAX_ENTRIES", entries(archive) - 5)
    sizes = [each for each in ask(court, archive.folder)["findings"] if each["code"] == "E-SIZE"]
    assert [each["place"] for each in sizes] == ["data/volatile"]


def test_a_body_of_one_byte_chunks_fits() -> None:
    """The script of a body of 65,536 bytes, one HTTP chunk a byte, is not too long."""
    text = f"chunk_ends = {list(range(1, 65_536))}\n".encode()
    assert audit.toml(text, audit.closed({"chunk_ends": audit.listed(audit.POSITIVE)}))[1] == ""


def test_the_longest_line_of_the_protocol_fits() -> None:
    """A record is no longer than a line of the subject protocol may be: 1 MiB."""
    assert audit.MAX_LINE_BYTES == 1024 * 1024


@pytest.mark.parametrize("document", ["9007199254740991", "-9007199254740991", "0", "[1]"])
def test_integers_of_records(document: str) -> None:
    """Every integer below 2^53 is one of ours."""
    assert audit.record_json(document.encode(), b"", "x", lambda _: None, audit.Findings()) is not None


@pytest.mark.parametrize(
    "document",
    ["9007199254740992", "-9007199254740992", "9" * 5000, "1.0", "1e0", "NaN", "-Infinity", '{"a":1,"a":1}', "[" * 17],
)
def test_no_integers_of_records(document: str) -> None:
    """2^53 and reals are none of ours, nor is what no JSON is."""
    found = audit.Findings()
    assert audit.record_json(document.encode(), b"", "x", lambda _: None, found) is None
    assert [finding.code for finding in found.findings] == ["E-JSON"]


def test_no_descriptor_stays_open(archive: Forge, court: ModuleType) -> None:
    """Every file and folder that was opened is closed again, what could not be read as well."""
    archive.write("data/x", b"x")
    os.link(archive.path("data/x"), archive.path("data/y"))
    archive.remove(RUN)
    os.mkfifo(archive.path(RUN))
    before = sorted(os.listdir("/proc/self/fd"))
    ask(court, archive.folder)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_an_unreadable_directory_is_closed(tmp_path: Path, court: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where scanning fails half way."""
    (tmp_path / "a" / "b").mkdir(parents=True)

    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(court, "scan_entry", fails)
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(RuntimeError):
        ask(court, tmp_path)
    assert sorted(os.listdir("/proc/self/fd")) == before
