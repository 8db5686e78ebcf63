"""The controls: each wrong client is caught on the frozen suite, exactly where its fault bites.

The tables are worked out from the 22 bodies and from what each control does, not copied from a run.
"""

import json
from pathlib import Path

import pytest

from .support import run_py

# Every complete case; all others must be withheld.
COMPLETE = {"bare-cr", "bom-heartbeat", "crlf", "multiline", "one-byte", "seven-byte"}

# Lines are cut at LF alone and each data line is taken for an event: JSON over two lines, and a body
# whose only line ends are CR, make json.loads raise.
BY_LINES = {"bare-cr", "multiline"}

# No control looks at the content type, or at any limit, or for events that change their mind.
CARELESS = {"wrong-mime", "oversized-output", "after-finish"}

FOUND: dict[str, dict[str, set[str]]] = {
    # Keeps whatever is there unless something raises: no status is looked at, no finish reason, no DONE.
    "naive": {
        "FALSE_COMMIT": CARELESS
        | {"http-503", "length-finish", "missing-done", "unterminated-done", "done-without-finish"}
        | {"cancel", "provider-error", "duplicate-json", "tool-delta"},
        "FALSE_WITHHOLD": BY_LINES,
    },
    # [DONE] alone: the letters are enough, with or without a blank line behind them.
    "done_only": {
        "FALSE_COMMIT": CARELESS | {"http-503", "length-finish", "unterminated-done", "done-without-finish"},
        "FALSE_WITHHOLD": BY_LINES,
    },
    # Any finish reason: `length` too, and whether [DONE] comes or not.
    "finish_only": {
        "FALSE_COMMIT": CARELESS | {"http-503", "length-finish", "unterminated-done", "missing-done"},
        "FALSE_WITHHOLD": BY_LINES,
    },
    # Keeps nothing, so it loses every good answer and no bad one gets in.
    "never": {"FALSE_WITHHOLD": COMPLETE},
    # Careful but for the decoding: whatever it keeps has U+FFFD where reads of 1 or 7 bytes cut a
    # character; str.splitlines knows CR, so bare-cr is read too. Only oversized-output is plain ASCII.
    "per_read": {
        "ALTERED": (COMPLETE - {"multiline"}) | {"wrong-mime", "after-finish", "unterminated-done"},
        "FALSE_COMMIT": {"oversized-output"},
        "FALSE_WITHHOLD": {"multiline"},
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_a_control_is_caught(tmp_path: Path, name: str) -> None:
    """A client that is wrong on purpose is found in just these cases, and exit says that there are findings."""
    done = run_py("--subject", f"_wrong/{name}", "--json", "--out", tmp_path / "run")
    assert done.returncode == 1, done.stderr
    found: dict[str, set[str]] = {}
    for row in json.loads(done.stdout)["rows"]:
        found.setdefault(row["verdict"], set()).add(row["id"])
    agreed = found.pop("AGREE")
    assert found == FOUND[name]
    assert len(agreed) == 22 - sum(map(len, FOUND[name].values()))


def test_strict_is_not_caught(tmp_path: Path) -> None:
    """The same cases find nothing in the strict client: the controls are caught for their faults."""
    done = run_py("--json", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert {row["verdict"] for row in json.loads(done.stdout)["rows"]} == {"AGREE"}
