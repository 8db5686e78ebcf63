"""Draws one exchange on lanes over the bytes of its body, so that four boundaries can be compared.

What a read returned, where a character is whole, where a blank line ends an event, and what the
turn makes of it: four questions with four answers, and they seldom coincide. HTTP chunks are a
fifth lane where there are several, and the bytes stand below where there is room. It shows a window
of the body and says which. This file may not know how any of the boundaries was found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise

from .body import HEAD, SIZE, SMALL, sign, write_body
from .evidence import Event, Trace
from .fonts import Fonts
from .sheet import AMBER, BLUE, FAINT, GREY, INK, RED, Picture, Sheet, plain_settings
from .window import LEFT, WIDTH, Window, choose_window

TOP, LANE, SPACE, FOOT = 92, 46, 18, 148  # pixels
TINTS = ("#cfe0ee", "#a9c8e0")
OPEN, FINISHED, WHOLE_CHARACTER, CUT_CHARACTER = "#e4e4e4", "#bdbdbd", "#dddddd", "#fbe3b0"


def draw(trace: Trace, fonts: Fonts, first: int | None = None, last: int | None = None) -> Picture:
    """The picture of a trace; `first` and `last` choose the window, in bytes."""
    window = choose_window(trace, first, last)
    lanes = _lanes(trace)
    bottom = TOP + len(lanes) * (LANE + SPACE)
    with plain_settings():
        sheet = Sheet(WIDTH, bottom + FOOT, fonts)
        title = f"{trace.trial} · {trace.end_kind} at byte {trace.end_byte:,}: {trace.outcome}"
        sheet.text(24, 36, title, 22, room=WIDTH - 48)
        preview = judged(trace)[-1].preview if judged(trace) else ""
        shown = f"preview: {preview}" if preview else "no preview"
        sheet.text(24, 64, f"{trace.why} · {shown}", 15, ink=GREY, room=WIDTH - 48)
        for index, (name, question, lane) in enumerate(lanes):
            top = TOP + index * (LANE + SPACE)
            sheet.text(24, top + 19, name, HEAD, bold=True)
            sheet.text(24, top + 37, question, SMALL, ink=GREY)
            lane(sheet, window, trace, top)
        _end(sheet, window, trace, bottom)
        _axis(sheet, window, bottom)
        write_body(sheet, window, trace, bottom + 54)
        _foot(sheet, window, trace, bottom + FOOT - 18)
        return sheet.finish(title)


# ---------------------------------------------------------------------------------------------
# The lanes


Lane = Callable[[Sheet, Window, Trace, float], None]


def _lanes(trace: Trace) -> list[tuple[str, str, Lane]]:
    """Name, question and drawing of each lane, from the wire to the turn."""
    several = bool(set(trace.chunk_ends) - {len(trace.body)})
    chunks: list[tuple[str, str, Lane]] = [("HTTP chunks", "where framing ends", _chunks)]
    return (chunks if several else []) + [
        ("reads", "what read() returned", _reads),
        ("characters", "of 2 bytes or more", _characters),
        ("events", "up to the blank line", _events),
        ("turn", "state, and the preview", _turn),
    ]


def _spans(ends: tuple[int, ...], size: int) -> list[tuple[int, int]]:
    """The spans between ends, the last one up to `size`, in bytes."""
    return list(pairwise(sorted({0, size, *ends})))


def _chunks(sheet: Sheet, window: Window, trace: Trace, top: float) -> None:
    """HTTP chunks, numbered from 1."""
    spans = _spans(trace.chunk_ends, len(trace.body))
    if _crowded(sheet, window, top, spans, "chunks"):
        return
    for number, (start, end) in enumerate(spans, 1):
        words = [f"chunk {number:,}", f"{end - start:,} bytes"]
        _block(sheet, window, top, start, end, TINTS[number % 2], words)


def _reads(sheet: Sheet, window: Window, trace: Trace, top: float) -> None:
    """What each read returned, numbered from 1, and what was never read."""
    consumed = max(trace.read_ends, default=0)
    if not consumed:
        _remark(sheet, top, "no read returned a byte" if not trace.body else "")
    spans = _spans(trace.read_ends, consumed)
    if not _crowded(sheet, window, top, spans, "reads"):
        for number, (start, end) in enumerate(spans, 1):
            _block(sheet, window, top, start, end, TINTS[number % 2], [f"{number:,}"])
    if window.shows(consumed, len(trace.body)):
        x, right = window.x(consumed), window.x(len(trace.body))
        sheet.box(x, top, right - x, LANE, "white", edge=FAINT, hatch="////")
        needs = sheet.measure("never read", SIZE) + 12
        if needs < right - x:
            middle = (x + right) / 2
            sheet.box(middle - needs / 2, top + 12, needs, LANE - 24, "white")
            sheet.text(middle, top + 28, "never read", SIZE, side="center")


def _characters(sheet: Sheet, window: Window, trace: Trace, top: float) -> None:
    """Characters longer than one byte; a red line where a read ended inside one."""
    shown = [span for span in trace.characters if window.shows(*span)]
    if not shown:
        _remark(sheet, top, "no such character here" if trace.body else "none")
    if _crowded(sheet, window, top, shown, "characters of 2 bytes or more"):
        return
    for start, end in shown:
        cuts = _cuts(trace, start, end)
        x, width = window.x(start), window.x(end) - window.x(start)
        sheet.box(x, top, width, LANE, CUT_CHARACTER if cuts else WHOLE_CHARACTER, edge="white")
        size = min(15.0, width * 0.87)
        words = _character(trace.body[start:end])
        if size >= 9 and sheet.measure(words, size) <= width:
            sheet.text(x + width / 2, top + 29, words, size, side="center")
        for offset in cuts:
            if window.first < offset < window.last:
                at = window.x(offset)
                sheet.line((at, top - SPACE + 2), (at, top + LANE), RED, 1.5, dashed=True)


def _cuts(trace: Trace, start: int, end: int) -> list[int]:
    """The offsets inside the character at which a read ended."""
    ends = trace.read_ends
    return list(ends[bisect_right(ends, start) : bisect_left(ends, end)])


def _events(sheet: Sheet, window: Window, trace: Trace, top: float) -> None:
    """Dispatched events with their signals; a thick edge where the blank line ends them."""
    if not any(window.shows(event.start, event.end) for event in trace.events):
        _remark(sheet, top, "no event here" if trace.body else "none")
    if _crowded(sheet, window, top, [(event.start, event.end) for event in trace.events], "events"):
        return
    for number, event in enumerate(trace.events, 1):
        narrow = window.x(event.end) - window.x(event.start) < 54
        words = [f"{number:,}" if narrow else f"event {number:,}", _signals(event)]
        _block(sheet, window, top, event.start, event.end, TINTS[number % 2], words)
        if window.holds(event.end):
            at = window.x(event.end)
            sheet.line((at, top - 4), (at, top + LANE + 4), INK, 3)


def _signals(event: Event) -> str:
    """What the dialect made of an event, or why it made nothing."""
    return " + ".join(event.signals) or event.note or event.after


def _turn(sheet: Sheet, window: Window, trace: Trace, top: float) -> None:
    """The state and the preview, as they change where events end."""
    for start, end, state, preview in turn_spans(trace):
        fill = FINISHED if state == "finished" else OPEN
        _block(sheet, window, top, start, end, fill, [state, preview] if preview else [state])


def turn_spans(trace: Trace) -> list[tuple[int, int, str, str]]:
    """Start, end (bytes), state and preview of every stretch up to the end of the exchange."""
    spans: list[tuple[int, int, str, str]] = []
    start, state, preview = 0, trace.events[0].before if trace.events else "open", ""
    for event in trace.events:
        if event.end >= trace.end_byte:
            break
        if (event.after, event.preview) != (state, preview):
            spans.append((start, event.end, state, preview))
            start, state, preview = event.end, event.after, event.preview
    spans.append((start, trace.end_byte, state, preview))
    return [span for span in spans if span[0] < span[1]]


def judged(trace: Trace) -> list[Event]:
    """The events that the turn saw before the exchange ended.

    The last one may end a byte later: a CR alone dispatches, and an LF after it still belongs to the event.
    """
    return [event for event in trace.events if event.start < trace.end_byte]


def last_state(trace: Trace) -> str:
    """The state in which the end of the exchange found the turn."""
    if not judged(trace):
        return "open"
    last = judged(trace)[-1]
    return last.before if last.after == trace.outcome else last.after


def _block(sheet: Sheet, window: Window, top: float, start: int, end: int, fill: str, words: list[str]) -> None:
    """A span of a lane with one or two lines of words, where they have room beside the line of the end."""
    if not window.shows(start, end):
        return
    x, right = window.x(start), window.x(end)
    sheet.box(x, top, right - x, LANE, fill, edge="white")
    if window.holds(window.end) and x < window.x(window.end) < right:
        split = window.x(window.end)
        x, right = (x, split) if split - x >= right - split else (split, right)
    room = right - x - 2
    if start < window.first:
        words = [f"… {words[0]}", *words[1:]]
    for line, text in enumerate(words):
        base = top + (28 if len(words) == 1 else 20 + 18 * line)
        needs = sheet.measure(text[:300], SIZE)
        if needs <= room:
            sheet.text((x + right) / 2, base, text, SIZE, side="center", ink=GREY if line else INK)
        elif room >= 36 and not text.lstrip("… ").replace(",", "").isdigit():
            sheet.text(x + 2, base, text, SIZE, room=room - 2, ink=GREY if line else INK)


def _crowded(sheet: Sheet, window: Window, top: float, spans: list[tuple[int, int]], what: str) -> bool:
    """Where spans would be thinner than two pixels on average: one block that says how many there are."""
    shown = [span for span in spans if window.shows(*span)]
    if len(shown) * 2 <= window.right - LEFT:
        return False
    words = [f"{len(shown):,} {what}", "too many to tell apart in this window"]
    _block(sheet, window, top, shown[0][0], shown[-1][1], TINTS[0], words)
    return True


def _remark(sheet: Sheet, top: float, words: str) -> None:
    """A quiet word in a lane that has nothing to show."""
    sheet.text(LEFT + 8, top + 28, words, SMALL, ink=GREY)


def _end(sheet: Sheet, window: Window, trace: Trace, bottom: float) -> None:
    """The line where the exchange ended, across all lanes, and the outcome in the lane of the turn."""
    if not window.holds(trace.end_byte):
        return
    x, top = window.x(trace.end_byte), bottom - LANE - SPACE
    complete = trace.outcome == "COMPLETE"
    ink, where = (
        "white" if complete else INK,
        f"was {last_state(trace)} · {trace.end_kind} at {trace.end_byte:,}",
    )
    needs = max(sheet.measure(trace.outcome, HEAD, bold=True), sheet.measure(where, SMALL)) + 22
    needs = min(needs, WIDTH - x - 4)
    sheet.line((x, TOP - 10), (x, bottom), INK, 2)
    sheet.box(x, top, needs, LANE, BLUE if complete else AMBER)
    sheet.text(x + 11, top + 20, trace.outcome, HEAD, ink=ink, bold=True, room=needs - 14)
    sheet.text(x + 11, top + 38, where, SMALL, ink=ink, room=needs - 14)


# ---------------------------------------------------------------------------------------------
# Below the lanes


def _axis(sheet: Sheet, window: Window, bottom: float) -> None:
    """Offsets in bytes."""
    sheet.line((LEFT, bottom), (window.right, bottom), INK)
    step = next(f * 10**e for e in range(18) for f in (1, 2, 5) if f * 10**e * window.byte >= 64)
    for offset in range(-(-window.first // step) * step, window.last + 1, step):
        sheet.line((window.x(offset), bottom), (window.x(offset), bottom + 6), INK)
        sheet.text(window.x(offset), bottom + 21, f"{offset:,}", SMALL, side="center")
    sheet.text(24, bottom + 21, "offset in bytes", SMALL, ink=GREY)


def _character(raw: bytes) -> str:
    """A character's text, or its bytes in hexadecimal where it is none."""
    try:
        return sign(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return raw.hex(" ").upper()


def _foot(sheet: Sheet, window: Window, trace: Trace, base: float) -> None:
    """How often reads cut characters, which part of the body this is, and how to see another."""
    size, longer = len(trace.body), trace.characters
    cut = sum(bool(_cuts(trace, start, end)) for start, end in longer)
    reads = len(trace.read_ends)
    parts = ["the auditor's reading", f"{reads:,} read{'s' * (reads != 1)} returned bytes"]
    if longer:
        parts.append(f"{cut:,} of {len(longer):,} longer characters cut by a read")
    if (window.first, window.last) == (0, size):
        parts.append(f"shown: the whole body, {size:,} bytes")
    else:
        parts.append(f"shown: bytes {window.first:,} to {window.last:,} of {size:,} (--from, --to)")
    sheet.text(24, base, " · ".join(parts), SIZE, ink=GREY, room=WIDTH - 48)
