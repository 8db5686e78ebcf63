"""`archive.py`: one sealed directory, which tools that know nothing of us can check."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import bagit
import pytest

from harness.archive import SEAL, Archive, stable_root
from harness.canonical import canonical, line
from harness.cases import load_suite
from harness.names import CASES, UsageError

from .support import tree, untouched


def a_sealed_archive(folder: Path) -> tuple[str, str]:
    """Write and seal a small archive; give its roots."""
    archive = Archive(folder)
    archive.write("data/records/plan.json", b"{}\n")
    archive.write("data/volatile/run.json", b"{}\n")
    archive.blob(b"\x00\xff")
    archive.copy_suite(CASES / "frozen", "frozen", ["crlf"])
    return archive.seal()


def test_layout(tmp_path: Path) -> None:
    """A sealed archive holds the tag files, the manifest, the seal and the data, and nothing else."""
    a_sealed_archive(tmp_path / "run")
    blob = hashlib.sha256(b"\x00\xff").hexdigest()
    assert set(tree(tmp_path / "run")) == {
        "bag-info.txt",
        "bagit.txt",
        "manifest-sha256.txt",
        "tagmanifest-sha256.txt",
        f"data/blobs/{blob}",
        "data/records/plan.json",
        "data/volatile/run.json",
        "data/suite/frozen/manifest-sha256.txt",
        "data/suite/frozen/suite.toml",
        "data/suite/frozen/crlf/body.sse",
        "data/suite/frozen/crlf/case.toml",
        "data/suite/frozen/crlf/label.toml",
    }


def test_the_coreutils_agree(tmp_path: Path) -> None:
    """`sha256sum -c --strict` checks manifest and seal of a sealed archive."""
    a_sealed_archive(tmp_path / "run")
    for name in ("manifest-sha256.txt", SEAL):
        done = subprocess.run(["sha256sum", "-c", "--strict", "--quiet", name], cwd=tmp_path / "run", check=False)
        assert done.returncode == 0


def test_bagit_agrees(tmp_path: Path) -> None:
    """The Library of Congress' bagit takes a sealed archive for a valid bag."""
    a_sealed_archive(tmp_path / "run")
    assert bagit.Bag(str(tmp_path / "run")).validate()


def test_bagit_sees_a_flipped_bit(tmp_path: Path) -> None:
    """A changed byte is what bagit refuses, so its agreement means something."""
    a_sealed_archive(tmp_path / "run")
    path = tmp_path / "run/data/records/plan.json"
    path.write_bytes(b"{}\r")
    with pytest.raises(bagit.BagValidationError):
        bagit.Bag(str(tmp_path / "run")).validate()


def test_manifest_order_and_grammar(tmp_path: Path) -> None:
    """Manifest lines are digest, two spaces, path, LF; paths rise strictly by bytes."""
    a_sealed_archive(tmp_path / "run")
    for name in ("manifest-sha256.txt", SEAL):
        data = (tmp_path / "run" / name).read_bytes()
        assert re.fullmatch(rb"(?:[0-9a-f]{64}  [a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*\n)+", data)
        paths = [entry[66:] for entry in data.splitlines()]
        assert paths == sorted(set(paths))


def test_roots(tmp_path: Path) -> None:
    """The full root hashes the seal; the stable root the manifest's lines for suite, records and blobs."""
    stable, full = a_sealed_archive(tmp_path / "run")
    assert full == hashlib.sha256((tmp_path / "run" / SEAL).read_bytes()).hexdigest()
    text = (tmp_path / "run/manifest-sha256.txt").read_text("ascii")
    kept = [entry for entry in text.splitlines(keepends=True) if "  data/volatile/" not in entry]
    assert stable == stable_root(text) == hashlib.sha256("".join(kept).encode()).hexdigest()


@pytest.mark.parametrize(
    ("path", "is_stable"),
    [
        ("data/suite/x", True),
        ("data/records/x", True),
        ("data/blobs/x", True),
        ("data/volatile/x", False),
        ("data/provenance.json", False),
        ("data/suite-x/x", False),
    ],
)
def test_what_is_stable(path: str, is_stable: bool) -> None:
    """Only suite, records and blobs enter the stable root."""
    other = f"{'0' * 64}  data/blobs/a\n"
    assert (stable_root(other + f"{'1' * 64}  {path}\n") != stable_root(other)) == is_stable


def test_a_blob_is_stored_once(tmp_path: Path) -> None:
    """Equal bytes give equal references and one file."""
    archive = Archive(tmp_path / "run")
    references = [archive.blob(b"same") for _ in range(3)]
    assert references == [{"bytes": 4, "sha256": hashlib.sha256(b"same").hexdigest()}] * 3
    assert len(tree(archive.folder)) == 1


@pytest.mark.parametrize(
    ("count", "shards"), [(0, []), (1, [1]), (10_000, [10_000]), (10_001, [10_000, 1]), (20_000, [10_000, 10_000])]
)
def test_shards(tmp_path: Path, count: int, shards: list[int]) -> None:
    """Records are cut every 10,000 lines, in order, and a file is never empty."""
    archive = Archive(tmp_path / "run")
    archive.records("data/records", ({"n": n} for n in range(count)))
    files = sorted((archive.folder / "data/records").glob("*")) if count else []
    assert [path.name for path in files] == [f"trials-{n:05d}.jsonl" for n in range(len(shards))]
    lines = [path.read_bytes().splitlines() for path in files]
    assert [len(shard) for shard in lines] == shards
    assert [json.loads(text)["n"] for shard in lines for text in shard] == list(range(count))


def directory(path: Path) -> None:
    """A directory that holds something."""
    path.mkdir()
    (path / "mine").write_text("mine")


def link_to_directory(path: Path) -> None:
    """A link to such a directory."""
    directory(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


THERE: dict[str, Callable[[Path], object]] = {
    "an empty directory": Path.mkdir,
    "a directory": directory,
    "a file": lambda path: path.write_text("mine"),
    "a dangling link": lambda path: path.symlink_to(path.parent / "nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to a directory": link_to_directory,
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("what", THERE)
def test_what_is_there_stays(tmp_path: Path, what: str) -> None:
    """Whatever is at the place of an archive is refused and left as it was."""
    THERE[what](tmp_path / "run")
    before = untouched(tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        Archive(tmp_path / "run")
    assert untouched(tmp_path) == before


@pytest.mark.parametrize("parent", ["file", "file/deeper", "/proc/nowhere"])
def test_a_parent_that_can_hold_nothing(tmp_path: Path, parent: str) -> None:
    """Below a file, or in a read-only file system, no archive is made, and the message names the place."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="cannot be made"):
        Archive(tmp_path / parent / "run")
    assert tree(tmp_path) == {"file": b"mine"}


def test_parents_are_made(tmp_path: Path) -> None:
    """The directories above an archive are made where they are not there."""
    assert Archive(tmp_path / "a" / "b" / "run").folder.is_dir()


def test_no_file_is_written_twice(tmp_path: Path) -> None:
    """A second write to a path is refused by the file system."""
    archive = Archive(tmp_path / "run")
    archive.write("data/x", b"1")
    with pytest.raises(FileExistsError):
        archive.write("data/x", b"2")
    assert tree(archive.folder) == {"data/x": b"1"}


@pytest.mark.parametrize("fails", ["bag-info.txt", "bagit.txt", "manifest-sha256.txt", "rename"])
def test_the_seal_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """Whatever write of the sealing fails, there is no seal."""
    archive = Archive(tmp_path / "run")
    archive.write("data/x", b"1")
    if fails == "rename":
        monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    else:
        (archive.folder / fails).mkdir()
    with pytest.raises(OSError, match=r"full|exists"):
        archive.seal()
    assert not (archive.folder / SEAL).exists()


def test_discard(tmp_path: Path) -> None:
    """A discarded archive is gone, and nothing beside it."""
    (tmp_path / "other").write_text("mine")
    archive = Archive(tmp_path / "run")
    archive.write("data/x", b"1")
    archive.discard()
    assert tree(tmp_path) == {"other": b"mine"}
    assert not archive.folder.exists()


def test_only_the_cases_used_are_copied(tmp_path: Path) -> None:
    """A case whose name begins with that of another is not copied along with it."""
    archive = Archive(tmp_path / "run")
    archive.copy_suite(CASES / "frozen", "frozen", ["cancel", "missing-don"])
    folders = {name.split("/")[3] for name in tree(archive.folder) if name.count("/") == 4}
    assert folders == {"cancel"}
    assert load_suite(archive.folder / "data/suite", "frozen", "cancel").cases[0].name == "cancel"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [None, True]}, b'{"a":[null,true],"b":1}'),
        ({"\u4f60": "\U0001f331\n"}, b'{"\\u4f60":"\\ud83c\\udf31\\n"}'),
        ("\x7f/", b'"\\u007f/"'),
    ],
)
def test_canonical(value: object, text: bytes) -> None:
    """Canonical JSON is sorted, without white space, and ASCII."""
    assert canonical(value) == text
    assert line(value) == text + b"\n"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_canonical_refuses(value: object) -> None:
    """What JSON cannot spell is refused."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(value)
