"""From what a trial left to the lines that are archived: the records, and beside them what may differ.

It writes down what the server did and what the subject says, and judges neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .archive import Archive
from .canonical import canonical
from .cases import Case, Exchange, Suite
from .redact import request_record
from .subjects.process import Answer, NoClaim

if TYPE_CHECKING:
    from .server.app import Trial
    from .server.player import Play

# The ends of the transport for which a client has waited, so that it has to have been there.
_WAITED = frozenset({"eof", "short-body", "reset", "bad-framing"})


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What one trial left: the server's plays, and the claim or why there is none; of a session its journal."""

    trial: str
    suite: Suite
    case: Case
    contract: str
    served: "Trial"
    claim: Answer
    journal: list[dict[str, Any]]
    started_ms: int
    duration_ms: int

    @property
    def claimed(self) -> dict[str, Any] | None:
        """The claim, where there is one."""
        return None if isinstance(self.claim, NoClaim) else self.claim

    @property
    def exchanges(self) -> "list[tuple[Exchange, bytes, Play]]":
        """Each request's exchange, response head and play; the last exchange answers all that came behind it."""
        last = len(self.case.exchanges) - 1
        return [
            (self.case.exchanges[min(number, last)], self.served.scripts[min(number, last)].head, play)
            for number, play in enumerate(self.served.plays)
        ]


def record(archive: Archive, item: Observed) -> dict[str, object]:
    """Give the record of a trial; its blobs are written."""
    found = item.exchanges
    return {
        "trial": item.trial,
        "suite": item.suite.name,
        "case": item.case.name,
        "contract": item.contract,
        "requests": [archive.blob(_request(play)[0]) for _, _, play in found],
        "claim": _claim(archive, item.claimed) if item.claimed else None,
        "no_claim": item.claim.reason if isinstance(item.claim, NoClaim) else None,
    } | (_session(archive, item) if item.case.steps else _turn(archive, item))


def _turn(archive: Archive, item: Observed) -> dict[str, object]:
    """Give what only the record of one attempt has."""
    claim = item.claimed or {}
    if not item.exchanges:
        return {
            "schema": "endmark.trial/1",
            "status": None,
            "response_head": None,
            "body": None,
            "delivered": False,
        }
    exchange, head, play = item.exchanges[-1]
    consumed = claim.get("consumed_bytes")
    waited = consumed is not None and claim.get("transport_end") in _WAITED
    return {
        "schema": "endmark.trial/1",
        "status": exchange.status,
        "response_head": archive.blob(head),
        "body": archive.blob(_received(exchange, play, consumed)),
        "delivered": _delivered(play, consumed) and (play.end == "played" or not waited),
    }


def _session(archive: Archive, item: Observed) -> dict[str, object]:
    """Give what only the record of a session has."""
    journal = item.journal if item.claimed else None
    consumed = _consumed(journal or [])
    exchanges = []
    for number, (exchange, head, play) in enumerate(item.exchanges):
        consumed_bytes = consumed[number] if number < len(consumed) else None
        exchanges.append(
            {
                "status": exchange.status,
                "response_head": archive.blob(head),
                "body": archive.blob(_received(exchange, play, consumed_bytes)),
                "delivered": _delivered(play, consumed_bytes),
            }
        )
    return {
        "schema": "endmark.session/1",
        "exchanges": exchanges,
        "journal": None if journal is None else archive.blob(canonical(journal)),
    }


def _consumed(journal: list[dict[str, Any]]) -> list[int]:
    """Give what each attempt consumed, in the order of their requests: what its last line says."""
    found: dict[str, int] = {}
    for line in journal:
        asks = line["do"] in ("begin", "supersede", "retry") and line["result"] != "denied"
        if asks or line["attempt"] in found:
            found[line["attempt"]] = line["consumed_bytes"]
    return list(found.values())


def _received(exchange: Exchange, play: "Play", consumed_bytes: int | None) -> bytes:
    """Give the prefix of the body that the subject says it consumed; where it does not say, what was sent."""
    size = play.sent_bytes if consumed_bytes is None else min(consumed_bytes, play.sent_bytes)
    return exchange.body[:size]


def _delivered(play: "Play", consumed_bytes: int | None) -> bool:
    """Say whether the exchange reached the wire, up to where the client stopped."""
    return play.end != "failed" and play.sent_bytes >= (consumed_bytes or 0)


def _claim(archive: Archive, claim: Mapping[str, Any]) -> dict[str, object]:
    raised = claim["raised"]
    return {
        "history": archive.blob(canonical(claim["history"])),
        "preview": archive.blob(claim["preview"].encode("utf-8", "surrogatepass")),
        "outcome": claim.get("outcome"),
        "class": claim.get("class"),
        "dispatched": claim.get("dispatched"),
        "finish_reason": claim["hints"].get("finish_reason"),
        "transport_end": claim.get("transport_end"),
        "status": claim.get("status"),
        "reads": claim.get("reads"),
        "consumed_bytes": claim.get("consumed_bytes"),
        "consumed_sha256": claim.get("consumed_sha256"),
        "raised": {"type": raised["type"], "chain": raised["chain"]} if raised else None,
    }


def volatile(item: Observed) -> dict[str, object]:
    """Give what may differ between two runs; of several plays the last."""
    raised = item.claimed["raised"] if item.claimed else None
    last = item.served.plays[-1] if item.served.plays else None
    left_out: set[str] = set()
    for play in item.served.plays:
        left_out |= _request(play)[1]
    return {
        "schema": "endmark.volatile/1",
        "trial": item.trial,
        "host": "127.0.0.1",
        "port": int(item.served.base_url.split(":")[2].split("/")[0]),
        "path": item.served.path,
        "started_ms": item.started_ms,
        "duration_ms": item.duration_ms,
        "sent_bytes": last.sent_bytes if last else 0,
        "server_end": last.end if last else "not-asked",
        "redacted": sorted(left_out),
        "message": raised["message"] if raised else None,
        "note": item.claim.note if isinstance(item.claim, NoClaim) else None,
    }


def _request(play: "Play") -> tuple[bytes, set[str]]:
    """Give the archived form of a request, and the names of what was left out of it."""
    return request_record(play.headers, play.request_body)
