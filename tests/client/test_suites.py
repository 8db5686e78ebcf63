"""Every case of every suite, without HTTP: the client gives what the label says, under each contract."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client import CANCEL, Contract, History, Reader, Settled, load
from client.reader import Control
from client.units import utf16_units

CASES = Path(__file__).parents[2] / "cases"
CONTRACTS: dict[str, Contract] = {}

# How a transport ends for a client that waits for it (docs/formats.md, section 1).
ENDS = {
    "complete": "eof",
    "fin": "short-body",
    "reset": "reset",
    "short-length": "short-body",
    "bad-chunk": "bad-framing",
}


def trials() -> Iterator[tuple[Path, str]]:
    """Give every case of one attempt with every contract that its label states, but those that a clock decides."""
    for path in sorted(CASES.glob("*/*/label.toml")):
        for contract, stated in tomllib.loads(path.read_text("utf-8"))["contract"].items():
            if "outcome" in stated and stated["outcome"] not in ("READ_TIMEOUT", "DEADLINE"):
                yield path.parent, contract


def named(value: Path | str) -> str:
    """Name a case by suite and folder."""
    return f"{value.parent.name}/{value.name}" if isinstance(value, Path) else value


def read(case: dict[str, Any], body: bytes, contract: Contract) -> Settled:
    """Read a case as its conditions say, in portions of its cap."""
    exchange, client = case["exchange"][0], case["client"]
    left_utf16 = client.get("cancel_after_utf16")
    shown = 0

    def show(piece: str) -> Control | None:
        nonlocal shown
        shown += utf16_units(piece)
        return CANCEL if left_utf16 is not None and shown >= left_utf16 else None

    reader = Reader(contract, case["dialect"], show)
    settled = reader.head(exchange.get("status", 200), exchange.get("content_type", "text/event-stream"))
    cap = max(client["read_cap_bytes"], len(body) // 5000, 1)
    for start in range(0, len(body), cap):
        settled = settled or reader.feed(body[start : start + cap])
    closes = exchange.get("framing", "chunked") == "close"
    ending = exchange.get("ending", "complete")
    end = "eof" if closes and ending == "fin" else ENDS.get(ending, "eof")
    return settled or reader.end(end, is_framed=not closes)


@pytest.mark.parametrize(("folder", "contract"), list(trials()), ids=named)
def test_label(folder: Path, contract: str) -> None:
    """Outcome, preview, class and commit are those of the label, and no tool is run."""
    case = tomllib.loads((folder / "case.toml").read_text("utf-8"))
    label = tomllib.loads((folder / "label.toml").read_text("utf-8"))["contract"][contract]
    rules = CONTRACTS.setdefault(contract, CONTRACTS.get(contract) or load(contract))
    settled = read(case, (folder / case["exchange"][0]["body"]).read_bytes(), rules)
    assert (settled.outcome, settled.preview) == (label["outcome"], label["preview"])
    assert History().accept("question", settled) is label["committed"]
    assert settled.reason_class == label.get("class", settled.reason_class)


def test_the_wild_reports_are_all_here() -> None:
    """The 95 public failure reports are cases, each with its link."""
    folders = sorted((CASES / "wild").glob("*/case.toml"))
    assert len(folders) == 95
    assert all("report: <http" in path.read_text("utf-8") for path in folders)


def test_missing_usage_is_recorded_apart() -> None:
    """An answer without usage is COMPLETE all the same, and says that no usage came."""
    body = (CASES / "frozen" / "seven-byte" / "body.sse").read_bytes()
    reader = Reader(load("strict/1"), "openai-chat")
    settled = reader.feed(body)
    assert settled
    assert (settled.outcome, settled.saw_usage) == ("COMPLETE", False)
