"""The evidence of an attempt: what was seen, under which contract, and what the contract asks for."""

import hashlib
from dataclasses import dataclass

import pytest

from client import load
from client.attempts import Attempt, Coordinator, Evidence, MemoryStore, evidence
from client.attempts.evidence import TERMINAL_CLASSES
from client.outcomes import CANCELLED, DEADLINE, READ_TIMEOUT
from client.reader import Settled

from .bodies import ERROR, HEAD, call, event, pieces, whole

GEMINI = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}\n\n'
UNFINISHED = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n'


@dataclass(frozen=True, kw_only=True)
class End:
    """How a body ended."""

    transport: str = "eof"
    is_framed: bool = True


def seen(
    body: bytes, contract: str = "strict/1", dialect: str = "openai-chat", end: End | None = None
) -> tuple[Settled, Evidence]:
    """Read a body; give the turn and its evidence."""
    end = end or End()
    attempt = Coordinator(MemoryStore(), load(contract), dialect).begin("t", "q")
    if attempt.head(*HEAD) is None and attempt.feed(body) is None:
        attempt.end(end.transport, is_framed=end.is_framed)
    return settled(attempt)


def settled(attempt: Attempt) -> tuple[Settled, Evidence]:
    """Give an attempt's turn and its evidence."""
    turn = attempt.settled
    assert turn is not None
    return turn, evidence(turn, attempt.wire, attempt.contract, attempt.dialect)


def test_a_complete_answer() -> None:
    """The evidence of a whole answer names the terminal event, the raw reason and the bytes."""
    _, found = seen(whole("a"))
    assert found == Evidence(
        contract="strict/1",
        dialect="openai-chat",
        rule_version="evidence/1",
        http_status=200,
        transport_end="left",
        framing_complete=True,
        terminal_event="[DONE]",
        needs_terminal=True,
        finish_reason="stop",
        terminal_reason_source="provider",
        needs_reason=True,
        reason_class="answer",
        terminal_class="complete",
        tool_args_complete=None,
        unknown_events=0,
        saw_usage=False,
        wire_bytes=len(whole("a")),
        wire_sha256=hashlib.sha256(whole("a")).hexdigest(),
    )


REFUSAL = event({"refusal": "I cannot"}) + event({}, "stop")
CLASSES = {
    "complete": (whole("a"), "complete"),
    "cut": (pieces("a")[0], "truncated"),
    "its limit": (whole("a", "length"), "length"),
    "its filter": (whole("a", "content_filter"), "filtered"),
    "a refusal": (REFUSAL, "refused"),
    "an error": (pieces("a")[0] + ERROR, "error"),
    "a reason that is an error": (whole("a", "error"), "error"),
    "an unlisted reason": (whole("a", "bored"), "unknown"),
    "no protocol": (b"data: []\n\n", "unknown"),
}


@pytest.mark.parametrize(("body", "terminal_class"), CLASSES.values(), ids=list(CLASSES))
def test_the_terminal_class(body: bytes, terminal_class: str) -> None:
    """Each ending has one class, and it is one of the closed set."""
    _, found = seen(body)
    assert found.terminal_class == terminal_class
    assert terminal_class in TERMINAL_CLASSES


def test_a_paused_turn_has_a_class_of_its_own() -> None:
    """A turn that the provider paused is neither truncated nor complete."""
    body = (
        b'data: {"type":"message_start","message":{}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"pause_turn"}}\n\n'
    )
    assert seen(body, dialect="anthropic")[1].terminal_class == "paused"


@pytest.mark.parametrize(
    ("outcome", "terminal_class", "end"),
    [(CANCELLED, "cancelled", "left"), (READ_TIMEOUT, "truncated", "timeout"), (DEADLINE, "truncated", "timeout")],
)
def test_what_the_client_ends(outcome: str, terminal_class: str, end: str) -> None:
    """A cancel and the two time-outs have their class, and the transport's end says who waited in vain."""
    attempt = Coordinator(MemoryStore(), load("strict/1"), "openai-chat").begin("t", "q")
    attempt.head(*HEAD)
    attempt.stop({str(known): known for known in (CANCELLED, READ_TIMEOUT, DEADLINE)}[outcome], "said so")
    found = settled(attempt)[1]
    assert (found.terminal_class, found.transport_end, found.framing_complete) == (terminal_class, end, False)


def test_a_status_that_is_no_answer() -> None:
    """A response that is refused by its head has its status, and the class of an error."""
    attempt = Coordinator(MemoryStore(), load("strict/1"), "openai-chat").begin("t", "q")
    attempt.head(503, "text/plain")
    found = settled(attempt)[1]
    assert (found.http_status, found.terminal_class, found.wire_bytes) == (503, "error", 0)


FRAMING = {
    "the terminal event is enough": (whole("a"), "strict/1", "openai-chat", End(), True, "[DONE]"),
    "no terminal event and closed framing": (b"".join(pieces("a")[:2]), "strict/1", "openai-chat", End(), True, None),
    "a reset": (b"".join(pieces("a")[:2]), "strict/1", "openai-chat", End(transport="reset"), False, None),
    "compat, without the terminal event": (
        b"".join(pieces("a")[:2]),
        "compat/1",
        "openai-chat",
        End(is_framed=False),
        True,
        None,
    ),
    "framing is the evidence": (GEMINI, "strict/1", "gemini", End(), True, None),
    "and has to be closed": (GEMINI, "strict/1", "gemini", End(is_framed=False), False, None),
    "unless the contract takes a close for it": (GEMINI, "compat/1", "gemini", End(is_framed=False), True, None),
    "a short body is not closed": (GEMINI, "compat/1", "gemini", End(transport="short-body"), False, None),
    "closed framing alone completes nothing": (UNFINISHED, "strict/1", "gemini", End(), True, None),
}


@pytest.mark.parametrize(
    ("body", "contract", "dialect", "end", "is_complete", "terminal"), FRAMING.values(), ids=list(FRAMING)
)
def test_framing(body: bytes, contract: str, dialect: str, end: End, is_complete: bool, terminal: str | None) -> None:
    """Framing is complete by the terminal event, or by an end that the contract takes for closed."""
    _, found = seen(body, contract, dialect, end)
    assert (found.framing_complete, found.terminal_event) == (is_complete, terminal)


@pytest.mark.parametrize("contract", ["strict/1", "compat/1", "frozen-text/1"])
@pytest.mark.parametrize("body", [whole("a"), b"".join(pieces("a")[:2]), pieces("a")[0], b"data: [DONE]\n\n"])
def test_complete_turns_have_what_the_store_asks_for(contract: str, body: bytes) -> None:
    """Whatever a contract calls COMPLETE has complete framing, its terminal event and its reason, where it asks."""
    for is_framed in (True, False):
        turn, found = seen(body, contract, end=End(is_framed=is_framed))
        if turn.outcome == "COMPLETE":
            assert found.framing_complete
            assert found.terminal_event or not found.needs_terminal
            assert found.terminal_reason_source == "provider" or not found.needs_reason


CALLS = {
    "whole": (call('{"id": 1}'), True),
    "cut": (call('{"id": ')[:-60], False),
    "whole, and no more came": (call('{"id": 1}')[:-60], True),
    "no object": (call("1"), False),
}


@pytest.mark.parametrize(("body", "is_complete"), CALLS.values(), ids=list(CALLS))
def test_tool_arguments(body: bytes, is_complete: bool) -> None:
    """Whether all arguments parse is recorded, and is no evidence that the proposal is complete."""
    turn, found = seen(body)
    assert found.tool_args_complete is is_complete
    assert (turn.outcome == "COMPLETE") is (body == call('{"id": 1}'))


def test_what_is_counted() -> None:
    """Unknown events and usage are kept beside the rest."""
    extra = b'data: {"object":"x"}\n\ndata: {"choices":[],"usage":{}}\n\n'
    _, found = seen(extra + whole("a"))
    assert (found.unknown_events, found.saw_usage) == (1, True)
