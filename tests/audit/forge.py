"""Tools of an editor who knows the format: change an archive, then make its hashes agree again.

A Forge is one archive that may be spoilt. Records are read and written as canonical lines, blobs
are added under their hash, and `reseal` rewrites both manifests, so that a change can be made with
the hashes or behind their back. Nothing is shared with the laboratory or the court.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

HOME = Path(__file__).parents[2]
AUDIT = HOME / "audit.py"

MANIFEST = "manifest-sha256.txt"
SEAL = "tagmanifest-sha256.txt"
PLAN = "data/records/plan.json"
RUN = "data/volatile/run.json"
PROVENANCE = "data/provenance.json"
RECORDS = "data/records/trials-00000.jsonl"
VOLATILE = "data/volatile/trials-00000.jsonl"
CONTRACT = "data/suite/contracts/frozen-text-1.toml"

Row = dict[str, Any]


def canonical(value: object) -> bytes:
    """Spell a value as section 3 of docs/formats.md asks, without the LF."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def sha256(data: bytes) -> str:
    """Give the digest as hex."""
    return hashlib.sha256(data).hexdigest()


class Forge:
    """One archive that is being tampered with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # -- files

    def path(self, name: str) -> Path:
        return self.folder / name

    def read(self, name: str) -> bytes:
        return self.path(name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(data)

    def replace(self, name: str, old: bytes, new: bytes) -> None:
        """Replace bytes that must be there."""
        data = self.read(name)
        assert old in data, f"{name} has no {old!r}"
        self.write(name, data.replace(old, new))

    def remove(self, name: str) -> None:
        """Remove a file or a folder, and the folders that this leaves empty."""
        path = self.path(name)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        while not any(path.parent.iterdir()):
            path = path.parent
            path.rmdir()

    def files(self, below: str = "") -> list[str]:
        """Give every regular file, sorted by bytes."""
        found = (path for path in self.path(below).rglob("*") if path.is_file() and not path.is_symlink())
        return sorted((path.relative_to(self.folder).as_posix() for path in found), key=os.fsencode)

    # -- documents and records

    def document(self, name: str) -> Row:
        value: Row = json.loads(self.read(name))
        return value

    def save(self, name: str, value: object) -> None:
        self.write(name, canonical(value) + b"\n")

    def change(self, name: str, **members: object) -> None:
        """Change members of one JSON document."""
        self.save(name, self.document(name) | members)

    def rows(self, name: str = RECORDS) -> list[Row]:
        return [json.loads(line) for line in self.read(name).splitlines()]

    def save_rows(self, rows: list[Row], name: str = RECORDS) -> None:
        self.write(name, b"".join(canonical(row) + b"\n" for row in rows))

    def row(self, case: str) -> Row:
        """Give a copy of the record of one case, or of one trial where a case has several."""
        return next(row for row in self.rows() if case in (row["case"], row["trial"]))

    def change_row(self, case: str, /, **members: object) -> None:
        """Change members of the record of one case or trial; blobs that nothing refers to any more go."""
        self.save_rows([row | members if case in (row["case"], row["trial"]) else row for row in self.rows()])
        self.sweep()

    def change_claim(self, case: str, /, **members: object) -> None:
        """Change members of the claim of one case."""
        self.change_row(case, claim=self.row(case)["claim"] | members)

    def change_volatile(self, case: str, /, **members: object) -> None:
        """Change members of the volatile record of one case."""
        trial = self.row(case)["trial"]
        rows = [row | members if row["trial"] == trial else row for row in self.rows(VOLATILE)]
        self.save_rows(rows, VOLATILE)

    def both(self, change: Callable[[list[Row]], list[Row]]) -> None:
        """Change the list of records and the list of volatile records alike."""
        for name in (RECORDS, VOLATILE):
            self.save_rows(change(self.rows(name)), name)

    # -- blobs

    def blob(self, data: bytes) -> Row:
        """Keep bytes as a blob and give the reference to them."""
        self.write(f"data/blobs/{sha256(data)}", data)
        return {"bytes": len(data), "sha256": sha256(data)}

    def content(self, reference: Row) -> bytes:
        return self.read(f"data/blobs/{reference['sha256']}")

    def sweep(self) -> None:
        """Remove the blobs that nothing refers to any more."""
        referred = {reference["sha256"] for row in self.rows() for reference in references(row)}
        for name in self.files("data/blobs"):
            if name.rpartition("/")[2] not in referred:
                self.remove(name)

    def history(self, case: str) -> list[Row]:
        """Give the history that is claimed for one case."""
        value: list[Row] = json.loads(self.content(self.row(case)["claim"]["history"]))
        return value

    def claim_history(self, case: str, history: list[Row]) -> None:
        """Claim another history for one case."""
        self.change_claim(case, history=self.blob(canonical(history)))

    def claim_preview(self, case: str, preview: bytes) -> None:
        """Claim another preview for one case."""
        self.change_claim(case, preview=self.blob(preview))

    def serve(self, case: str, body: bytes) -> None:
        """Archive another body for one case, with every number of the claim to match."""
        self.change_row(case, body=self.blob(body))
        self.change_claim(case, consumed_bytes=len(body), consumed_sha256=sha256(body))
        self.change_volatile(case, sent_bytes=len(body))

    # -- suites

    def freeze(self, suite: str) -> None:
        """Write the hashes of a copied suite's files into its manifest; lines of other files stay."""
        folder = f"data/suite/{suite}/"
        lines = self.read(folder + MANIFEST).decode().splitlines()
        entries = {line[66:]: line[:64] for line in lines}
        for name in self.files(folder):
            if (below := name.removeprefix(folder)) != MANIFEST:
                entries[below] = sha256(self.read(name))
        self.write(folder + MANIFEST, manifest_text(entries))

    def rename_suite(self, new: str = "mine", old: str = "frozen") -> None:
        """Turn the suite into one that is not shipped: the court has no digest for it."""
        os.rename(self.path(f"data/suite/{old}"), self.path(f"data/suite/{new}"))
        self.replace(f"data/suite/{new}/suite.toml", f'name = "{old}"'.encode(), f'name = "{new}"'.encode())
        self.freeze(new)
        for name in (PLAN, RECORDS, VOLATILE):
            text = self.read(name).decode().replace(f'"{old}/', f'"{new}/').replace(f'"{old}"', f'"{new}"')
            self.write(name, text.encode())

    def keep_cases(self, *cases: str) -> None:
        """Make a run of a part: plan, records and copies of these cases alone."""
        plan = self.document(PLAN)
        trials = [trial for trial in plan["trials"] if case_of(trial) in cases]
        self.save(PLAN, plan | {"trials": trials})
        self.both(lambda rows: [row for row in rows if row["trial"] in trials])
        for folder in sorted(self.path("data/suite").glob("*/*/")):
            if folder.name not in cases:
                shutil.rmtree(folder)
        self.sweep()

    # -- the seal

    def seal(self) -> None:
        """Write the seal over the three files beside it."""
        names = ("bag-info.txt", "bagit.txt", MANIFEST)
        self.write(SEAL, b"".join(f"{sha256(self.read(name))}  {name}\n".encode() for name in names))

    def reseal(self) -> None:
        """Make both manifests agree with what is there."""
        self.write(MANIFEST, manifest_text({name: sha256(self.read(name)) for name in self.files("data")}))
        self.seal()

    def stable_root(self) -> str:
        """Work the stable root out from the manifest, as a reader of docs/formats.md would."""
        stable = ("data/suite/", "data/records/", "data/blobs/")
        lines = self.read(MANIFEST).decode().splitlines(keepends=True)
        return sha256("".join(line for line in lines if line[66:].startswith(stable)).encode())

    def full_root(self) -> str:
        """Work the full root out."""
        return sha256(self.read(SEAL))


def references(row: Row) -> list[Row]:
    """Give every blob reference of a record."""
    claim = row["claim"] or {}
    served = [exchange[key] for exchange in row.get("exchanges", [row]) for key in ("response_head", "body")]
    singles = (*served, row.get("journal"), claim.get("history"), claim.get("preview"))
    return [*row["requests"], *(reference for reference in singles if reference)]


def manifest_text(entries: dict[str, str]) -> bytes:
    """Spell a manifest of path to digest."""
    return b"".join(f"{entries[path]}  {path}\n".encode() for path in sorted(entries, key=str.encode))


def case_of(trial: str) -> str:
    """Give the case of a trial id."""
    return trial.partition("/")[2].partition("@")[0]


def make_good(folder: Path) -> Path:
    """Run the frozen suite for real and give its archive."""
    command = [sys.executable, "run.py", "--suite", "frozen", "--out", str(folder)]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def copy(good: Path, target: Path) -> Forge:
    """Copy an archive, so that it can be spoilt."""
    shutil.copytree(good, target, symlinks=True)
    return Forge(target)


class Bench:
    """A place where one archive after another is spoilt: each time only what was touched is made good."""

    def __init__(self, good: Path, place: Path) -> None:
        self.good = good
        self.place = place
        self.folder = copy(good, place / "archive").folder
        self.state = snapshot(self.folder)

    def fresh(self) -> Forge:
        """Give the good archive again."""
        for path in self.place.iterdir():
            if path != self.folder:
                remove(path)
        now = snapshot(self.folder)
        for name in sorted(now, reverse=True):
            if now[name] != self.state.get(name):
                remove(self.folder / name)
        for name in sorted(self.state):
            self.mend(name)
        self.state = snapshot(self.folder)
        return Forge(self.folder)

    def mend(self, name: str) -> None:
        path, source = self.folder / name, self.good / name
        if path.exists():
            return
        if source.is_dir():
            path.mkdir()
            shutil.copystat(source, path)
        else:
            shutil.copy2(source, path)


def snapshot(folder: Path) -> dict[str, tuple[int, ...]]:
    """Give every entry below a folder with what changes when it is touched; the times of folders do not count."""
    found: dict[str, tuple[int, ...]] = {}
    for path in folder.rglob("*"):
        s = path.lstat()
        same = () if path.is_dir() else (s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_nlink)
        found[os.fsdecode(path.relative_to(folder))] = (s.st_mode, *same)
    return found


def remove(path: Path) -> None:
    """Remove whatever is at a path, if it is there."""
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


# -- the court, as a command and as a module

PYTHON = (sys.executable, "-I", "-S")
TIMEOUT_S = 60


def court(folder: Path | str, *options: str, **keywords: Any) -> "subprocess.CompletedProcess[str]":
    """Call the court as its users do; it has a minute."""
    command = [*PYTHON, str(AUDIT), str(folder), "--json", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **{"cwd": HOME} | keywords
    )


def load_court() -> ModuleType:
    """Load audit.py as a module, for tests that ask it a thousand times."""
    spec = importlib.util.spec_from_file_location("court_under_test", AUDIT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(module: ModuleType, folder: Path, *options: str) -> Row:
    """Ask a loaded court; give its report."""
    report: Row = module.audit(module.parse_arguments([str(folder), *options]))
    return report


def codes(report: Row) -> set[str]:
    """Give the codes of the findings and the verdicts that are not AGREE."""
    found = {finding["code"] for finding in report["findings"]}
    return found | {row["verdict"] for row in report["trials"]} - {"AGREE"}
