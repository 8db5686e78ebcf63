"""Every file of nst/JSONTestSuite through both strict readers of JSON: bytes in, one decision out."""

import io
import json
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from client.characters import Characters
from client.contract import load as load_contract
from client.outcomes import Fault
from client.strict_json import Json, parse
from tests.auditor import load as load_auditor

from . import json_suite
from .json_suite import CorpusError

AUDIT = load_auditor()
CONTRACT = load_contract("strict/1")
LIMITS = AUDIT.Limits(**{name: getattr(CONTRACT.limits, name) for name in AUDIT.Limits._fields})
SWITCH = AUDIT.Switch(**CONTRACT.switches)

DATA = tomllib.loads((Path(__file__).parents[1] / "vectors" / "json-decisions.toml").read_text("utf-8"))
DECISIONS: list[dict[str, str]] = DATA["decision"]
AGAINST_THE_NAME: list[dict[str, str]] = DATA["against_the_name"]


class Found(NamedTuple):
    """What a reader makes of a file: what refused it, or its value, types and order of names included."""

    refused: str | None
    value: str | None = None


def parsed(text: bytes) -> Json | Fault:
    """Call the client's parser, the one place that knows what it takes."""
    return parse(text, CONTRACT.limits.json_depth)


def by_client(data: bytes) -> Found:
    """Read a file as the client reads what comes: characters are checked first, and a line end follows the text."""
    whole, fault = Characters(CONTRACT.limits.input_utf16, "strict").feed(data + b"\n")
    value = fault or parsed(whole[:-1])
    return Found(value.outcome) if isinstance(value, Fault) else Found(None, repr(value))


def by_auditor(data: bytes) -> Found:
    """Read a file as the auditor reads a whole body."""
    sound = AUDIT.sound_prefix(data + b"\n", LIMITS, SWITCH, False)
    if sound.offence:
        return Found(sound.offence.outcome)
    try:
        return Found(None, repr(AUDIT.strict_json(sound.body[:-1].decode(), LIMITS.json_depth)))
    except AUDIT.NotStrictError:
        return Found("INVALID_JSON")


def by_standard_library(data: bytes) -> Found:
    """Read a file as an application does that trusts its language: the control."""
    try:
        return Found(None, repr(json.loads(data.decode())))
    except (ValueError, RecursionError):
        return Found("INVALID_JSON")


Reader = Callable[[bytes], Found]
READERS: dict[str, Reader] = {"client": by_client, "auditor": by_auditor}


def accepted(files: dict[str, bytes], start: str, read: Reader) -> set[str]:
    """Name the files of one kind that a reader accepts."""
    return {name for name, data in files.items() if name.startswith(start) and read(data).refused is None}


def named(files: dict[str, bytes], start: str) -> set[str]:
    """Name the files of one kind."""
    return {name for name in files if name.startswith(start)}


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """Give the whole corpus; without it the tests fail, and say what to type."""
    return json_suite.load()


def test_the_corpus_is_whole(files: dict[str, bytes]) -> None:
    """188 files are to be refused, 95 to be accepted and 35 to be decided, and there are no others."""
    assert [len(named(files, start)) for start in ("n_", "y_", "i_")] == [188, 95, 35]
    assert len(files) == json_suite.FILES


@pytest.mark.parametrize("reader", READERS)
def test_every_n_file_is_refused(reader: str, files: dict[str, bytes]) -> None:
    """Nothing that is no JSON is accepted."""
    assert accepted(files, "n_", READERS[reader]) == set()


@pytest.mark.parametrize("reader", READERS)
def test_every_y_file_is_accepted_but_two(reader: str, files: dict[str, bytes]) -> None:
    """Whatever is JSON is accepted, but for the two objects with a name twice."""
    two = {decision["file"] for decision in AGAINST_THE_NAME}
    assert named(files, "y_") - accepted(files, "y_", READERS[reader]) == two
    assert len(two) == 2


def test_every_i_file_has_one_decision(files: dict[str, bytes]) -> None:
    """What the corpus leaves open is decided once, file by file, with a reason that names its RFC."""
    assert sorted(decision["file"] for decision in DECISIONS) == sorted(named(files, "i_"))
    for decision in DECISIONS + AGAINST_THE_NAME:
        assert "RFC" in decision["why"]
        assert "section" in decision["why"]


@pytest.mark.parametrize("decision", DECISIONS + AGAINST_THE_NAME, ids=lambda decision: decision["file"])
@pytest.mark.parametrize("reader", READERS)
def test_decision_holds(reader: str, decision: dict[str, str], files: dict[str, bytes]) -> None:
    """Each decision is what client and auditor do, down to the outcome or the value."""
    found = READERS[reader](files[decision["file"]])
    wanted: dict[str, Found] = {
        "accept": Found(None, repr(json.loads(decision.get("reads", "null")))),
        "refuse": Found(decision.get("outcome")),
    }
    assert found == wanted[decision["decision"]]


def test_client_and_auditor_agree(files: dict[str, bytes]) -> None:
    """The two readers refuse the same files for the same reason, and read the same values from the rest."""
    differ = {name: (by_client(data), by_auditor(data)) for name, data in files.items()}
    assert {name: pair for name, pair in differ.items() if pair[0] != pair[1]} == {}


def test_values_are_those_of_the_standard_library(files: dict[str, bytes]) -> None:
    """Where the client accepts, it reads what the standard library reads."""
    found = {name: by_client(data) for name, data in files.items()}
    wrong = {name for name, read in found.items() if not read.refused and read != by_standard_library(files[name])}
    assert wrong == set()


def test_control(files: dict[str, bytes]) -> None:
    """The corpus shows a lax reader: the standard library alone accepts three `n_` files and both double names."""
    constants = {"n_number_NaN.json", "n_number_infinity.json", "n_number_minus_infinity.json"}
    assert accepted(files, "n_", by_standard_library) == constants
    assert {decision["file"] for decision in AGAINST_THE_NAME} <= accepted(files, "y_", by_standard_library)


def test_without_the_corpus(tmp_path: Path) -> None:
    """An empty folder is an error that says what to type, and no corpus of no files."""
    with pytest.raises(CorpusError, match="type `make corpora`"):
        json_suite.load(tmp_path)


def test_a_changed_corpus(tmp_path: Path, files: dict[str, bytes]) -> None:
    """One file missing, or one byte changed, is another corpus."""
    name, data = min(files.items())
    assert json_suite.digest(files) == json_suite.DIGEST
    assert json_suite.digest({**files, name: data + b" "}) != json_suite.DIGEST
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CorpusError, match="1 files of digest"):
        json_suite.load(tmp_path)


def test_unpack(tmp_path: Path) -> None:
    """Only the corpus's own folder is read out of the archive, and only files."""
    inside = "pyjson5-1/third-party/JSONTestSuite/test_parsing"
    members: dict[str, Any] = {
        f"{inside}/y_a.json": b"[]",
        f"{inside}/deeper/y_b.json": b"[]",
        f"{inside}/../../../../y_c.json": b"[]",
        "pyjson5-1/README": b"",
    }
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        folder = tarfile.TarInfo(f"{inside}/folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    assert json_suite.unpack(tmp_path / "a.tar.gz") == {"y_a.json": b"[]"}
