"""`show`: one archived exchange as a person wants to see it.

The bytes of the body line by line, with the four boundaries marked: where reads, characters,
events and HTTP chunks end; under each event what it did to the turn; at the end, why it ended as
it did. Everything shown comes from the auditor's trace.
"""

import base64
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .present import attempts, plain, visible

READ_END, CHUNK_END = "│", "║"

# A line of the body longer than this is shown by its two ends.
_LONG_BYTES = 360
_EDGE_BYTES = 150

_LEGEND = (
    f"{READ_END} a read ends   {CHUNK_END} an HTTP chunk ends   ‹ › one character of several bytes   ␊ ␍ line ends"
)


def show(found: Mapping[str, Any]) -> Iterator[str]:
    """Give the lines that show the traced trial of an audit."""
    trace = found["trace"]
    trial = next(item for item in found["trials"] if item["trial"] == trace["trial"])
    if "exchanges" in trace:
        yield from _session(trial, trace)
        return
    yield from _heading(trial)
    yield _LEGEND
    yield ""
    yield from _drawn(trace)
    yield from _end(trial, trace["end"])


def _session(trial: Mapping[str, Any], trace: Mapping[str, Any]) -> Iterator[str]:
    """Give what a session came to, and then the body of each attempt in the order of their requests."""
    claim = trial["claim"] or {}
    yield f"{trial['trial']}  {visible(trial['title'])}"
    yield f"attempts: {attempts(trial)}; verdict {trial['verdict']} ({plain(trial['verdict'])})"
    if claim:
        kept = ", ".join(f"“{visible(text)[:60]}”" for text in claim["stored"]) or "nothing"
        yield f"history: {kept}, {claim['writes']} written; screen {claim['state']} “{visible(claim['display'])[:60]}”"
    yield _LEGEND
    for exchange in trace["exchanges"]:
        yield ""
        yield f"attempt {exchange['attempt']}:"
        yield from _drawn(exchange)
        yield _ended(exchange["end"])


def _drawn(trace: Mapping[str, Any]) -> Iterator[str]:
    """Draw a body line by line, and under each line the events that it ends."""
    body = _Body(trace)
    events = iter([*trace["events"], None])
    event = next(events)
    for start, end in body.lines():
        yield f"{start:>6}  {body.text(start, end)}"
        while event and event["end"] <= end:
            yield from _event(event)
            event = next(events)
    while event:  # an event that no line of the body ends is a bug of the trace: still show it
        yield from _event(event)
        event = next(events)


def _heading(trial: Mapping[str, Any]) -> Iterator[str]:
    derived, claim = trial["derived"], trial["claim"] or {}
    yield f"{trial['trial']}  {visible(trial['title'])}"
    yield (
        f"HTTP {trial['status']} {visible(str(trial['content_type']))}, {trial['body_bytes']} body bytes; "
        f"cap {trial['read_cap']}, {derived['reads']} reads returned {derived['consumed_bytes']} bytes"
    )
    yield (
        f"subject: {visible(claim.get('outcome') or 'no outcome claimed')}, history of {claim.get('history_size', '-')}"
        f" entries; verdict {trial['verdict']} ({plain(trial['verdict'])})"
    )


def _event(event: Mapping[str, Any]) -> Iterator[str]:
    signals = ", ".join(event["signals"]) or "no signal"
    note = f" ({visible(event['note'])})" if event["note"] else ""
    yield (
        f"        └ event, bytes {event['start']} to {event['end']}: {visible(signals)}{note}; "
        f"turn {event['before']} → {event['after']}; preview “{visible(event['preview'])[:60]}”"
    )


def _end(trial: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[str]:
    derived = trial["derived"]
    kept = "question and answer appended" if derived["committed"] else "history unchanged"
    yield ""
    yield _ended(end)
    yield f"transport {derived['transport_end']}, finish reason {derived['finish_reason']!r}; {kept}"


def _ended(end: Mapping[str, Any]) -> str:
    return f"{end['outcome'] or 'no outcome'} at byte {end['at_byte']} ({end['kind']}): {visible(end['why'])}"


class _Body:
    """The body and its boundaries, drawn piece by piece."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self._bytes = base64.b64decode(trace["body"])
        self._reads: Sequence[int] = trace["read_ends"]
        self._chunks = frozenset(trace["chunk_ends"])
        self._wide: dict[int, int] = dict(trace["characters"])

    def lines(self) -> Iterator[tuple[int, int]]:
        """Cut the body behind LF, CRLF and CR."""
        start = 0
        while start < len(self._bytes):
            ends = [at for at in (self._bytes.find(mark, start) for mark in (b"\r", b"\n")) if at >= 0]
            end = min(ends, default=len(self._bytes) - 1) + 1
            if self._bytes[end - 1 : end + 1] == b"\r\n":
                end += 1
            yield start, end
            start = end

    def text(self, start: int, end: int) -> str:
        """Draw body[start:end]; a long one by its two ends."""
        if end - start <= _LONG_BYTES:
            return self._draw(start, end)
        low, high = self._whole(start + _EDGE_BYTES), self._whole(end - _EDGE_BYTES)
        reads = bisect_right(self._reads, high) - bisect_right(self._reads, low)
        hidden = f" … {high - low:,} bytes, {reads:,} reads … "
        return self._draw(start, low) + hidden + self._draw(high, end)

    def _whole(self, offset: int) -> int:
        while offset < len(self._bytes) and self._bytes[offset] & 0xC0 == 0x80:
            offset += 1
        return offset

    def _draw(self, start: int, end: int) -> str:
        drawn = []
        while start < end:
            stop = self._wide.get(start, start + 1)
            drawn.append(self._character(start, stop) + self._mark(stop))
            start = stop
        return "".join(drawn)

    def _mark(self, offset: int) -> str:
        at = bisect_left(self._reads, offset)
        is_read = at < len(self._reads) and self._reads[at] == offset
        return (READ_END if is_read else "") + (CHUNK_END if offset in self._chunks else "")

    def _character(self, start: int, stop: int) -> str:
        """Draw one character; one that a read cuts is drawn with its bytes."""
        data = self._bytes[start:stop]
        if len(data) == 1:
            return _byte(data[0])
        char = visible(data.decode("utf-8", "replace"))
        marks = [self._mark(start + i + 1) for i in range(len(data) - 1)]
        if not any(marks):
            return f"‹{char}›"
        return f"‹{char} {' '.join(f'{byte:02X}{mark}' for byte, mark in zip(data, [*marks, ''], strict=True))}›"


def _byte(byte: int) -> str:
    """Draw one byte that stands for itself: printable ASCII, a line end, or its hex digits."""
    marks = {0x0A: "␊", 0x0D: "␍"}
    return marks.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"<{byte:02X}>")
