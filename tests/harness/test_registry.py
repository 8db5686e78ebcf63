"""`subjects/registry.py`: a subject is a folder with a subject.toml, here or anywhere."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.names import SUBJECTS, UsageError
from harness.subjects.registry import find, names

from .support import edit, write_subject


def test_names() -> None:
    """The strict client and the five controls are found by their folders."""
    controls = ["done_only", "finish_only", "naive", "never", "per_read"]
    assert names() == [*(f"_wrong/{name}" for name in controls), "strict"]


def test_strict() -> None:
    """The strict client is a process like any other, told its contract."""
    subject = find("strict")
    assert subject.command == (sys.executable, "-m", "client")
    assert (subject.contract_aware, subject.history_owner) == (True, "library")


@pytest.mark.parametrize("spell", [str, lambda path: f"{path}/", lambda path: f"{path}/../{path.name}"])
def test_a_folder_anywhere(tmp_path: Path, spell: Callable[[Path], str]) -> None:
    """A folder is named by its own name, however its path is spelt; {here} is that folder."""
    folder = write_subject(tmp_path, "")
    subject = find(spell(folder))
    assert subject.name == "throw-away"
    assert subject.command == (sys.executable, f"{folder}/program.py")


@pytest.mark.parametrize("name", ["strict", "_wrong/naive"])
def test_a_path_to_one_of_ours(name: str) -> None:
    """The path of a subject of the checkout leaves no path of this machine in its name."""
    assert not find(str(SUBJECTS / name)).name.startswith("/")


@pytest.mark.parametrize("name", ["nobody", "", "..", "/", "_wrong", "strict/subject.toml", "\0"])
def test_no_such_subject(name: str) -> None:
    """A name that is none is refused with those that there are."""
    with pytest.raises(UsageError, match=r"no subject .* \(there are: _wrong/done_only, .*strict; or name a folder"):
        find(name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "throw-away"', "title = 1", "title: 1 is not of type 'string'"),
        ('title = "throw-away"', "", "'title' is a required property"),
        ('title = "throw-away"', 'title = "x"\ncolour = "red"', "'colour' was unexpected"),
        ('["{python}", "{here}/program.py"]', '"python"', "command: 'python' is not of type 'array'"),
        ('["{python}", "{here}/program.py"]', "[]", r"command: \[\] "),
        ('["{python}", "{here}/program.py"]', "[1]", r"command\[0\]: 1 is not of type 'string'"),
        ('"library"', '"nobody"', "history_owner: 'nobody' is not one of"),
        ("contract_aware = false", 'contract_aware = "no"', "contract_aware: 'no' is not of type 'boolean'"),
        ('["openai-chat"]', '"openai-chat"', "dialects: 'openai-chat' is not of type 'array'"),
        ('["cancel", "read-cap", "read-timeout"]', '["fly"]', r"capabilities\[0\]: 'fly' is not one of"),
        ('title = "throw-away"', "title =", "line 1"),
    ],
)
def test_a_description_that_is_none(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A subject.toml that is not as its schema asks is refused with the file and the key."""
    folder = write_subject(tmp_path, "")
    edit(folder / "subject.toml", old, new)
    with pytest.raises(UsageError, match=message) as caught:
        find(str(folder))
    assert str(folder / "subject.toml") in str(caught.value)
