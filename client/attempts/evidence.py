"""What an attempt saw, in one value: the ground on which an answer is accepted, and what records keep of it.

    seen = evidence(turn, wire, contract, "openai-chat")

It is put together from the settled turn, from what the transport said and from the contract's rules; it
judges nothing that the turn has judged, and knows neither tasks nor stores. `framing_complete` is worked
out here a second time, from the transport, so that the store's own checks do not rest on the turn alone.
"""

from dataclasses import dataclass

from ..contract import Contract, DialectRules
from ..outcomes import (
    CANCELLED,
    COMPLETE,
    DEADLINE,
    INCOMPLETE_FINISH,
    INCOMPLETE_STREAM,
    PROVIDER_ERROR,
    READ_TIMEOUT,
    REJECTED,
)
from ..reader import Settled
from ..strict_json import parse

# Of the rules in this file; raised whenever the same turn would give another value.
RULE_VERSION = "evidence/1"

# What `Evidence.terminal_class` can be.
TERMINAL_CLASSES = frozenset(
    {"complete", "length", "filtered", "refused", "paused", "error", "truncated", "cancelled", "unknown"}
)

_BY_OUTCOME = {
    COMPLETE: "complete",
    REJECTED: "complete",  # the response was whole; the task did not want it
    INCOMPLETE_STREAM: "truncated",
    READ_TIMEOUT: "truncated",
    DEADLINE: "truncated",
    PROVIDER_ERROR: "error",
    CANCELLED: "cancelled",
}
_BY_REASON_CLASS = {"truncated": "length", "filtered": "filtered", "paused": "paused"}


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What the transport said about one response, beside its bytes.

    `transport_end` is `left` where the turn was settled first, `timeout`, or what `Reader.end` was told
    (`eof`, `reset`, ...); `wire_sha256` is of the body bytes that were fed.
    """

    http_status: int | None
    transport_end: str
    is_framed: bool
    wire_bytes: int
    wire_sha256: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence of one attempt, as its record keeps it.

    `terminal_event` is the terminal event's literal name in the contract, None unless a completion saw it;
    `finish_reason` the raw terminal reason, as the provider wrote it; `terminal_reason_source` `provider`
    or `none`; `framing_complete` whether the terminal event came or the framing closed as the contract asks;
    `tool_args_complete` None where no call was proposed. `needs_terminal` and `needs_reason` say whether
    the contract accepts nothing without them. `terminal_class` is one of TERMINAL_CLASSES, by `rule_version`.
    """

    contract: str
    dialect: str
    rule_version: str
    http_status: int | None
    transport_end: str
    framing_complete: bool
    terminal_event: str | None
    needs_terminal: bool
    finish_reason: str | None
    terminal_reason_source: str
    needs_reason: bool
    reason_class: str | None
    terminal_class: str
    tool_args_complete: bool | None
    unknown_events: int
    saw_usage: bool
    wire_bytes: int
    wire_sha256: str


def evidence(turn: Settled, wire: Wire, contract: Contract, dialect: str) -> Evidence:
    """Put the evidence of a settled turn together; raise KeyError for a dialect that the contract lacks."""
    rules = contract.dialects[dialect]
    terminal_event = _terminal_event(turn, wire, contract, rules)
    return Evidence(
        contract=contract.name,
        dialect=dialect,
        rule_version=RULE_VERSION,
        http_status=wire.http_status,
        transport_end=wire.transport_end,
        framing_complete=terminal_event is not None or _is_closed(wire, contract, rules),
        terminal_event=terminal_event,
        needs_terminal=_has_terminal(rules) and contract.switches["finish_without_terminal"] == "incomplete",
        finish_reason=turn.finish_reason,
        terminal_reason_source="none" if turn.finish_reason is None else "provider",
        needs_reason=contract.switches["terminal_without_finish"] == "protocol",
        reason_class=turn.reason_class,
        terminal_class=_terminal_class(turn, rules),
        tool_args_complete=_tool_args_complete(turn, contract.limits.json_depth),
        unknown_events=turn.unknown_events,
        saw_usage=turn.saw_usage,
        wire_bytes=wire.wire_bytes,
        wire_sha256=wire.wire_sha256,
    )


def _has_terminal(rules: DialectRules) -> bool:
    return rules.terminal != "closed-framing"


def _terminal_event(turn: Settled, wire: Wire, contract: Contract, rules: DialectRules) -> str | None:
    """Name the terminal event where a completion must have seen it.

    A turn that completes while bytes are read completes at its terminal event. One that completes at the
    end does so without, unless the contract has no such completion: then the end dispatched the last event.
    """
    if turn.outcome not in (COMPLETE, REJECTED) or not _has_terminal(rules):
        return None
    met_end = wire.transport_end != "left"
    return None if met_end and contract.switches["finish_without_terminal"] == "complete" else rules.terminal


def _is_closed(wire: Wire, contract: Contract, rules: DialectRules) -> bool:
    """Say whether the end of the body closed the framing as far as the contract asks for it."""
    switch = "finish_without_terminal" if _has_terminal(rules) else "close_delimited"
    return wire.transport_end == "eof" and (wire.is_framed or contract.switches[switch] == "complete")


def _terminal_class(turn: Settled, rules: DialectRules) -> str:
    if turn.outcome == INCOMPLETE_FINISH:
        is_refusal = turn.reason_class == "filtered" and rules.reasons.get(turn.finish_reason or "") != "filtered"
        return "refused" if is_refusal else _BY_REASON_CLASS.get(turn.reason_class or "", "unknown")
    return "error" if turn.outcome.startswith("HTTP_") else _BY_OUTCOME.get(turn.outcome, "unknown")


def _tool_args_complete(turn: Settled, max_depth: int) -> bool | None:
    if not turn.calls:
        return None
    return all(call.free or isinstance(parse(call.arguments.encode(), max_depth), dict) for call in turn.calls)
