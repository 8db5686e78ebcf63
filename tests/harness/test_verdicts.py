"""The auditor as a process: what becomes of it is said, and never taken for something else."""

from pathlib import Path

import pytest

from harness.names import UsageError
from harness.verdicts import Auditor


def test_an_auditor_that_has_ended(tmp_path: Path) -> None:
    """An auditor that died before it was let go is a mistake with a name, not a closed terminal."""
    with Auditor(tmp_path) as auditor:
        auditor._process.kill()
        auditor._process.wait()
        auditor.begin()
        with pytest.raises(UsageError, match="the auditor ended with -9, in silence"):
            auditor.report()
