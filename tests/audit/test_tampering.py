"""The court refuses every archive that was tampered with, says why, and lets harmless changes pass.

The table is in mutations.py. It is asked as a black box, by the command line; the few rows that lower
a limit of the court, or take a right away from its user, are asked in-process.
"""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import forge as tools
from .forge import MANIFEST, PLAN, SEAL, Forge, ask, codes, copy
from .mutations import LAST, ROWS, Mutation, apply, ask_about, flip, options, unplan, without

COMMANDED = [row for row in ROWS if not row.limits and not row.unprivileged]
INSIDE = [row for row in ROWS if row.limits or row.unprivileged]


def named(row: Mutation) -> str:
    """Give a row's name as the name of a test."""
    return row.name.replace(" ", "-")


def test_the_good_archive_is_sound(good: Path) -> None:
    """The archive that all of this starts from: exit code 0, no finding, 22 times AGREE."""
    done = tools.court(good)
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"], report["totals"]["verdicts"]) == (0, [], {"AGREE": 22})


def test_the_table_is_long_and_its_names_differ() -> None:
    """There are more than 200 ways to tamper, each with a name of its own."""
    assert len({row.name for row in ROWS}) == len(ROWS) > 200


@pytest.mark.parametrize("row", COMMANDED, ids=named)
def test_tampering_is_found(row: Mutation, good: Path, archive: Forge) -> None:
    """The command exits with 1 and names the expected code among its findings and verdicts."""
    apply(row, archive)
    done = tools.court(archive.folder, *options(row, Forge(good)))
    assert (done.returncode, done.stderr) == (1, "")
    assert row.expected in codes(json.loads(done.stdout))


@pytest.mark.parametrize("row", INSIDE, ids=named)
def test_tampering_is_found_inside(row: Mutation, good: Path, archive: Forge, court: ModuleType) -> None:
    """The same, where a limit of the court was lowered or its user may read less."""
    apply(row, archive)
    report = ask_about(row, court, archive, good)
    assert court.exit_code(report) == 1
    assert row.expected in codes(report)


def test_every_finding_has_a_place_and_a_witness(archive: Forge) -> None:
    """A finding says where it is and what stands there, not only that something is wrong."""
    archive.change_claim("cancel", reads=True)
    report = json.loads(tools.court(archive.folder).stdout)
    assert report["findings"]
    assert all(finding["place"] and finding["text"] and finding["witness"] for finding in report["findings"])


# -- any byte --------------------------------------------------------------------------------------


def survives(court: ModuleType, forge: Forge, name: str, at: int, xor: int) -> bool:
    """Say whether the court notices nothing of one flipped byte; the byte is put back."""
    flip(forge, name, at, xor)
    try:
        return bool(court.exit_code(ask(court, forge.folder)) == 0)
    finally:
        flip(forge, name, at, xor)


@pytest.fixture(scope="session")
def scratch(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Forge:
    """A copy for flips that are taken back."""
    return copy(good, tmp_path_factory.mktemp("scratch") / "archive")


@functools.cache
def sizes(forge: Forge) -> list[tuple[str, int]]:
    """Give every file that has a byte, with its size."""
    found = ((name, len(forge.read(name))) for name in forge.files())
    return [(name, size) for name, size in found if size]


@pytest.mark.parametrize("part", range(8))
def test_a_flip_in_any_file_is_found(part: int, court: ModuleType, scratch: Forge) -> None:
    """Each file's first, middle and last byte count: one bit of any of them, and the audit fails."""
    for name, size in sizes(scratch)[part::8]:
        for at in {0, size // 2, size - 1}:
            assert not survives(court, scratch, name, at, 1), f"{name}, byte {at}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flip_of_any_byte_is_found(data: st.DataObject, court: ModuleType, scratch: Forge) -> None:
    """Whatever file, byte and bits: the audit fails."""
    name, size = data.draw(st.sampled_from(sizes(scratch)))
    at = data.draw(st.integers(0, size - 1))
    assert not survives(court, scratch, name, at, data.draw(st.integers(1, 255)))


def test_a_flip_is_found_by_the_command(archive: Forge) -> None:
    """The same by the command line, for one byte of the records."""
    flip(archive, tools.RECORDS, 1000)
    assert tools.court(archive.folder).returncode == 1


@pytest.mark.parametrize("name", [MANIFEST, SEAL])
def test_sha256sum_agrees(name: str, good: Path) -> None:
    """The sha256sum of coreutils passes both manifests of a good archive, strictly."""
    if not shutil.which("sha256sum"):
        pytest.skip("no sha256sum here")
    command = ["sha256sum", "-c", "--strict", "--quiet", name]
    done = subprocess.run(command, cwd=good, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- harmless --------------------------------------------------------------------------------------


def old_times(archive: Path) -> Path:
    """Set every time back to 1970."""
    for path in archive.rglob("*"):
        os.utime(path, (0, 0))
    return archive


def mode(bits: int) -> Callable[[Path], Path]:
    """Give every file these permissions."""

    def change(archive: Path) -> Path:
        for path in archive.rglob("*"):
            if path.is_file():
                path.chmod(bits)
        return archive

    return change


def through_tar(archive: Path) -> Path:
    """Pack and unpack."""
    packed, unpacked = archive.parent / "a.tar", archive.parent / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-C", archive.parent, "-cf", packed, archive.name], check=True, timeout=60)
    subprocess.run(["tar", "-C", unpacked, "-xf", packed], check=True, timeout=60)
    return unpacked / archive.name


def through_git(archive: Path) -> Path:
    """Commit, and check out a clone, as a user with automatic line ends would."""
    home = archive.parent / "repository"
    home.mkdir()
    shutil.copytree(archive, home / "archive")
    (home / ".gitattributes").write_text("* -text\n")
    settled = ["-c", "core.autocrlf=true", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["clone", "-q", ".", "../clone"]):
        subprocess.run(["git", *settled, *words], cwd=home, check=True, timeout=60, capture_output=True)
    return archive.parent / "clone" / "archive"


def odd_path(archive: Path) -> Path:
    """Move to a path with a space and a character that is not ASCII."""
    (archive.parent / "a b é 证").mkdir()
    return archive.rename(archive.parent / "a b é 证" / "archive")


def trailing_slash(archive: Path) -> Path:
    """Reach it by a path with a link in it: how DIR was found is the caller's affair."""
    link = archive.parent / "link"
    link.symlink_to(archive)
    return link


HARMLESS = [old_times, mode(0o600), mode(0o644), mode(0o755), through_tar, through_git, odd_path, trailing_slash]


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.__qualname__.split(".")[0])
def test_a_harmless_change_does_not_alarm(change: Callable[[Path], Path], good: Path, tmp_path: Path) -> None:
    """What does not touch bytes or names changes neither verdict nor roots."""
    expected = json.loads(tools.court(good).stdout)
    done = tools.court(change(copy(good, tmp_path / "archive").folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) | {"archive": ""} == expected | {"archive": ""}


ENVIRONMENTS = [
    {"LC_ALL": "C"},
    {"LC_ALL": "C.UTF-8", "TZ": "Pacific/Auckland"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONHASHSEED": "1"},
    {"PYTHONHASHSEED": "2", "PYTHONINTMAXSTRDIGITS": "640"},
]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=str)
def test_the_surroundings_do_not_matter(environment: dict[str, str], good: Path) -> None:
    """Locale, zone and hash seed change no byte of the report."""
    expected = tools.court(good)
    done = tools.court(good, env=os.environ | environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_the_roots_are_those_of_the_format(good: Path) -> None:
    """Both roots are what docs/formats.md says, and each can be expected."""
    roots = Forge(good)
    done = tools.court(good, "--expect-root", roots.full_root())
    report = json.loads(done.stdout)
    assert (report["stable_root"], report["full_root"]) == (roots.stable_root(), roots.full_root())
    assert (done.returncode, report["anchored"]) == (0, "root")
    done = tools.court(good, "--expect-stable-root", roots.stable_root())
    assert (done.returncode, json.loads(done.stdout)["anchored"]) == (0, "stable-root")


def test_the_source_is_that_of_the_checkout(good: Path) -> None:
    """An archive made by this checkout has its fingerprints."""
    assert tools.court(good, "--source", str(tools.HOME)).returncode == 0


# -- what is no finding, and still said ------------------------------------------------------------


def test_a_part_says_that_it_is_one(archive: Forge) -> None:
    """A trial dropped everywhere is no contradiction: coverage says 21 of 22, PARTIAL."""
    for change in (without(LAST), unplan(LAST)):
        change(archive)
    archive.remove(f"data/suite/frozen/{LAST}")
    archive.reseal()
    done = tools.court(archive.folder)
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"]) == (0, [])
    assert report["coverage"] == {"planned": 21, "of": 22, "partial": True}
    assert [note["code"] for note in report["notes"]] == ["N-PARTIAL"]


def test_a_suite_that_is_not_shipped_is_said_to_be(archive: Forge) -> None:
    """A suite without a pinned digest is judged by its own labels, and a note says so."""
    archive.rename_suite()
    archive.replace(tools.CONTRACT, b"non-empty", b"any")
    archive.freeze("contracts")
    archive.reseal()
    done = tools.court(archive.folder)
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"]) == (0, [])
    assert [note["code"] for note in report["notes"]] == ["N-UNPINNED", "N-UNPINNED"]


def test_without_an_anchor_the_last_line_says_so(good: Path) -> None:
    """A run that was made up as a whole is beyond any reading, and the person is told."""
    command = [*tools.PYTHON, str(tools.AUDIT), str(good)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "NOT ANCHORED" in done.stdout.splitlines()[-1]


def test_the_plan_is_what_was_run(good: Path) -> None:
    """The tools of this test read the archive as it is: 22 trials, in plan and records."""
    planned = Forge(good).document(PLAN)["trials"]
    assert planned == [row["trial"] for row in Forge(good).rows()]
