"""`runner.py`: a run is the same whoever runs it and however often, and leaves nothing out."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import bagit
import pytest

from harness.archive import Archive
from harness.canonical import line
from harness.cases import MANIFEST, load_suite, manifest_text
from harness.names import CASES
from harness.runner import Plan, run
from harness.subjects import registry

from .runs import ASKS, a_run, blob, records, volatile
from .support import a_subject, copy_cases, lines_of, run_async, tree


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, str]]:
    """The frozen suite with the strict client, one trial at a time."""
    return a_run(tmp_path_factory.mktemp("whole") / "run", registry.find("strict"))


def test_any_number_of_jobs(tmp_path: Path, whole: tuple[Path, tuple[str, str]]) -> None:
    """Four processes at once give the stable root of one, and a root of their own."""
    _, roots = a_run(tmp_path / "run", registry.find("strict"), jobs=4)
    assert roots[0] == whole[1][0]
    assert roots[1] != whole[1][1]


def test_other_tools_agree(whole: tuple[Path, tuple[str, str]]) -> None:
    """A real run is a valid bag, to bagit and to sha256sum."""
    assert bagit.Bag(str(whole[0])).validate()
    for name in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        subprocess.run(["sha256sum", "-c", "--strict", "--quiet", name], cwd=whole[0], check=True)


def test_records_are_canonical(whole: tuple[Path, tuple[str, str]]) -> None:
    """Every JSON file and line of an archive is spelt canonically, without floats."""

    def no_floats(text: str) -> None:
        pytest.fail(f"a float: {text}")

    paths = [path for path in whole[0].rglob("*.json*") if "suite" not in path.parts]
    assert len(paths) == 5
    for path in paths:
        for text in path.read_bytes().splitlines(keepends=True):
            assert line(json.loads(text, parse_float=no_floats)) == text


def test_one_row_a_planned_trial(whole: tuple[Path, tuple[str, str]]) -> None:
    """Plan, records and volatile lines have the same trials, sorted by bytes."""
    plan = json.loads((whole[0] / "data/records/plan.json").read_text("ascii"))
    assert len(plan["trials"]) == 22
    assert plan["trials"] == sorted(plan["trials"], key=str.encode)
    for name in ("records", "volatile"):
        assert [row["trial"] for row in lines_of(whole[0] / f"data/{name}/trials-00000.jsonl")] == plan["trials"]


def test_every_blob_is_referred_to(whole: tuple[Path, tuple[str, str]]) -> None:
    """No reference leads nowhere, and no blob is an orphan."""
    found: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict) and value.keys() == {"bytes", "sha256"}:
            assert blob(whole[0], value) is not None
            found.add(value["sha256"])
        for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(member)

    collect(list(records(whole[0]).values()))
    assert found == {path.name for path in (whole[0] / "data/blobs").iterdir()}


def test_nothing_of_this_machine_is_stable(whole: tuple[Path, tuple[str, str]]) -> None:
    """Ports, tokens, times and paths are nowhere in what the stable root covers."""
    lines = volatile(whole[0]).values()
    words = {str(row["path"]).split("/")[1] for row in lines} | {f":{row['port']}" for row in lines}
    words |= {str(whole[0].parent), json.loads((whole[0] / "data/volatile/run.json").read_text("ascii"))["run_id"]}
    for name, data in tree(whole[0] / "data").items():
        if name.startswith(("records/", "blobs/", "suite/")):
            assert not [word for word in words if word.encode() in data], name


def test_every_trial_is_told(tmp_path: Path) -> None:
    """Progress names every trial once; the plan is there before the first, and no seal is."""
    seen: list[str] = []
    plans: list[bool] = []

    def watch(trial: str) -> None:
        seen.append(trial)
        plans.append((tmp_path / "run/data/records/plan.json").is_file() and not list(tmp_path.glob("run/*.txt")))

    a_run(tmp_path / "run", registry.find("strict"), "[ab]*", on_trial=watch)
    assert seen == [f"frozen/{name}@frozen-text/1" for name in ("after-finish", "bare-cr", "bom-heartbeat")]
    assert all(plans)


def test_labels_are_never_opened(tmp_path: Path) -> None:
    """A run works with labels that hold nonsense: it copies them and looks into none."""
    cases = copy_cases(tmp_path)
    (cases / "frozen/crlf/label.toml").write_bytes(b"\xff not TOML")
    (cases / "frozen" / MANIFEST).write_text(manifest_text(cases / "frozen"), "ascii")
    archive, _ = a_run(tmp_path / "run", registry.find("strict"), "crlf", cases=cases)
    assert (archive / "data/suite/frozen/crlf/label.toml").read_bytes() == b"\xff not TOML"
    assert records(archive)["crlf"]["claim"]["outcome"] == "COMPLETE"


def test_what_made_the_run(whole: tuple[Path, tuple[str, str]]) -> None:
    """Provenance has the fingerprint of every source file, and the subject's own words."""
    made = json.loads((whole[0] / "data/provenance.json").read_text("ascii"))
    assert made["subject"]["name"] == "strict"
    assert {"run.py", "harness/runner.py", "harness/schemas/case.json", "client/http.py"} <= made["sources"].keys()
    assert not [name for name in made["sources"] if name.startswith(("tests/", "cases/")) or "__pycache__" in name]


def test_a_cancelled_run_ends_its_subjects(tmp_path: Path) -> None:
    """A run that is cancelled leaves no task and no process behind."""
    body = f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n    claim(turn)\n"
    subject = a_subject(tmp_path, ASKS + body)
    plan = Plan(subject=subject, suites=(load_suite(CASES, "frozen", "seven-byte"),))

    archive = Archive(tmp_path / "run")

    async def scene() -> int:
        def interrupt(_: str) -> None:
            task.cancel()

        task = asyncio.create_task(run(plan, archive, 1, interrupt))
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    assert run_async(scene()) == 1
    archive.discard()
    assert not (tmp_path / "run").exists()
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
