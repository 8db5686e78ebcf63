"""Good archives, made once: the frozen suite, really run, and sessions by hand; and the court as a module."""

from pathlib import Path
from types import ModuleType

import pytest

from .forge import Bench, Forge, load_court, make_good
from .talks import make_talks


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a real run. Copy it before you spoil it."""
    return make_good(tmp_path_factory.mktemp("good") / "archive")


@pytest.fixture(scope="session")
def bench(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The place where archives are spoilt."""
    return Bench(good, tmp_path_factory.mktemp("bench"))


@pytest.fixture
def archive(bench: Bench) -> Forge:
    """A good archive that may be spoilt."""
    return bench.fresh()


@pytest.fixture(scope="session")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of sessions. Copy it before you spoil it."""
    return make_talks(tmp_path_factory.mktemp("talks") / "archive")


@pytest.fixture(scope="session")
def talks_bench(talks: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The place where archives of sessions are spoilt."""
    return Bench(talks, tmp_path_factory.mktemp("talks-bench"))


@pytest.fixture(scope="session")
def court() -> ModuleType:
    """The court, loaded once."""
    return load_court()
