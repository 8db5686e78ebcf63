"""`python -m client.watch BASE_URL`: streams one answer to a terminal as it comes, and says what became of it.

Exit codes: 0 the answer was accepted, 1 it was not, 2 called wrongly, 130 interrupted. To a terminal it redraws
one small frame with plain escape sequences, elsewhere it prints one line for each change. The attempt has a
coordinator over a store in memory, so that what is called accepted here is what an application would have stored.
This file knows no case: whoever starts it names a server.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

from .attempts import Attempt, Committed, Coordinator, MemoryStore, Result
from .attempts.coordinator import new_id, now_us
from .attempts.evidence_record import About, append_record, evidence_record
from .contract import Contract, ContractError, load
from .dialects import find
from .display import Approve, Display, DisplayPolicy
from .frames import LOOKS, Moment, Size, counters, frame, line, painted, reason, rule, verdict, whole
from .history import Message
from .http import Conditions, Exchange
from .units import utf16_units

# How often a frame is drawn at most, in seconds; and the longest wait between two reads, in milliseconds.
_FRAME_S = 0.03
_MOST_SLOW_MS = 10_000
# With pauses between the reads the contract's deadline would be the watcher's own doing.
_SLOW_DEADLINE_MS = 600_000


class View(Protocol):
    """Where moments go."""

    def is_due(self, events: int, turn: str) -> bool:
        """Say whether a moment is to be shown now; text comes with events and in no other way."""

    def update(self, moment: Moment) -> None:
        """Show a moment."""

    def end(self, moment: Moment, words: Sequence[str]) -> None:
        """Show the last moment, and below it what is to be said of it."""


class Plain:
    """Prints a line for each change: for pipes and files."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._seen = (0, "")

    def is_due(self, events: int, turn: str) -> bool:
        return (events, turn) != self._seen

    def update(self, moment: Moment) -> None:
        self._seen = (moment.events, moment.turn)
        print(line(moment), file=self._out, flush=True)

    def end(self, moment: Moment, words: Sequence[str]) -> None:
        print("\n".join([line(moment), *words]), file=self._out, flush=True)


class Live:
    """Redraws one frame in place: for terminals. It hides nothing and clears only what it drew itself."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rows = 0
        self._drawn_s = float("-inf")
        self._colour = not os.environ.get("NO_COLOR")  # https://no-color.org

    def is_due(self, events: int, turn: str) -> bool:
        del events, turn  # bytes are counted as well, so that every read changes the frame
        return time.monotonic() - self._drawn_s >= _FRAME_S

    def update(self, moment: Moment) -> None:
        self._drawn_s = time.monotonic()
        self._draw(frame(moment, self._size(), colour=self._colour))

    def end(self, moment: Moment, words: Sequence[str]) -> None:
        said, *more = words
        told = painted(said, LOOKS[moment.screen.state], colour=self._colour)
        self._draw([*whole(moment.screen, self._size().width), told, counters(moment).rstrip(), *more])

    def _size(self) -> Size:
        found = shutil.get_terminal_size()
        return Size(width=found.columns, height=found.lines)

    def _draw(self, lines: list[str]) -> None:
        back = f"\x1b[{self._rows}F\x1b[J" if self._rows else ""
        self._out.write(back + "".join(f"{text}\n" for text in lines))
        self._out.flush()
        self._rows = len(lines)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is asked, of whom, and how it is shown."""

    base_url: str
    dialect: str
    contract: Contract
    question: str
    history: list[Message]
    policy: DisplayPolicy
    approve: Approve | None
    conditions: Conditions
    cancel_after_utf16: int | None
    slow_ms: int
    record: Path | None


class Watched:
    """One attempt with its display, its exchange and the moments of both."""

    def __init__(self, options: Options, view: View) -> None:
        """Raise ContractError for a dialect that the contract does not have, or a contract without an owner."""
        self._options, self._view = options, view
        self._display = Display(options.policy, options.approve)
        self._coordinator = Coordinator(MemoryStore(), options.contract, options.dialect)
        self._attempt: Attempt = self._coordinator.begin(new_id(), options.question, on_preview=self._display.show)
        self._exchange = Exchange(self._attempt, options.conditions)
        self._first_display_at_us: int | None = None

    async def run(self) -> int:
        """Read to the end, settle, show and record; give the exit code."""
        try:
            interrupted = not await self._read()
        finally:
            self._exchange.close()
        if self._attempt.settled is None:
            self._attempt.cancel()
        result = self._attempt.commit()
        self._display.settle(result)
        self._end(result)
        return 130 if interrupted else int(not isinstance(result, Committed))

    async def _read(self) -> bool:
        """Make logical reads until the turn is settled or cancelled by the case; say whether nobody interrupted it."""
        options = self._options
        deadline_ms = _SLOW_DEADLINE_MS if options.slow_ms else options.contract.limits.deadline_ms
        path = find(options.dialect).path
        try:
            await self._exchange.open(options.base_url, path, options.history, options.question, deadline_ms)
            while self._attempt.settled is None and not self._is_cancelled():
                await self._exchange.read(self._exchange.consumed_bytes + 1)
                if self._view.is_due(self._attempt.events, self._attempt.state):
                    self._view.update(self._moment())
                await asyncio.sleep(options.slow_ms / 1000)
        except asyncio.CancelledError:
            return False
        return True

    def _is_cancelled(self) -> bool:
        most = self._options.cancel_after_utf16
        return most is not None and utf16_units(self._attempt.preview) >= most

    def _moment(self) -> Moment:
        screen = self._display.screen
        if screen.text.characters and self._first_display_at_us is None:
            self._first_display_at_us = now_us()
        return Moment(
            screen=screen,
            reads=self._exchange.reads,
            consumed_bytes=self._exchange.consumed_bytes,
            events=self._attempt.events,
            turn=self._attempt.state,
        )

    def _end(self, result: Result) -> None:
        options, moment = self._options, self._moment()
        before, turn = len(options.history), self._attempt.settled
        after = before + len(self._coordinator.history())
        transport_end = self._attempt.wire.transport_end
        words = [
            verdict(moment.screen, result, before, after),
            reason(result, turn, transport_end),
            rule(options.contract, options.dialect, turn.reason_class if turn else None),
        ]
        self._view.end(moment, words)
        if options.record:
            about = About(first_display_at_us=self._first_display_at_us, history_before=before, history_after=after)
            (record,) = self._coordinator.attempts(self._attempt.task_id)
            append_record(options.record, evidence_record(record, self._attempt, about))


def main(argv: Sequence[str] | None = None) -> int:
    """Watch one answer; give the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that the stream does not have is shown as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    args = _parser().parse_args(argv)
    try:
        watched = Watched(_options(args), Live(sys.stdout) if sys.stdout.isatty() else Plain(sys.stdout))
        print(args.title or args.base_url, flush=True)
        return asyncio.run(_until_signalled(watched))
    except (ContractError, ValueError) as error:
        print(f"client: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"client: {error.filename or 'system'}: {error.strerror or error}", file=sys.stderr)
        return 2


async def _until_signalled(watched: Watched) -> int:
    """Watch; let Ctrl-C and SIGTERM end it with a last frame, also where whoever started this ignores Ctrl-C."""
    task = asyncio.current_task()
    assert task
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # there are none on Windows
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await watched.run()


def _options(args: argparse.Namespace) -> Options:
    """Give the options; raise ValueError or ContractError for what cannot be used."""
    policy = DisplayPolicy(args.policy)
    refused: str | None = args.refuse
    return Options(
        base_url=args.base_url,
        dialect=args.dialect,
        contract=load(args.contract),
        question=args.question,
        history=json.loads(args.history),
        policy=policy,
        approve=(lambda segment: refused is None or refused not in segment)
        if policy is DisplayPolicy.SEGMENTS
        else None,
        conditions=Conditions(read_cap_bytes=args.cap, read_timeout_ms=args.read_timeout_ms),
        cancel_after_utf16=args.cancel_after_utf16,
        slow_ms=min(args.slow, _MOST_SLOW_MS),
        record=args.record,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}.watch", description="Stream one answer to this terminal, as it comes."
    )
    defaults: Any = Conditions()
    parser.add_argument("base_url", metavar="BASE_URL", help="http://host[:port]/path")
    parser.add_argument("--dialect", required=True, help="the provider's dialect, for instance openai-chat")
    parser.add_argument("--contract", default="strict/1", metavar="NAME/N", help="the contract to judge by (strict/1)")
    parser.add_argument("--question", default="question", help="what is asked")
    parser.add_argument("--history", default="[]", metavar="JSON", help="the messages before it, a JSON list")
    parser.add_argument("--policy", choices=[*DisplayPolicy], default=DisplayPolicy.IMMEDIATE, help="when text is seen")
    parser.add_argument(
        "--refuse", metavar="WORD", help="policy segments: hold back from the segment with this word on"
    )
    parser.add_argument("--cap", type=int, default=defaults.read_cap_bytes, metavar="BYTES", help="the most of a read")
    parser.add_argument(
        "--read-timeout-ms", type=int, default=defaults.read_timeout_ms, metavar="MS", help="of a silence"
    )
    parser.add_argument("--cancel-after-utf16", type=int, metavar="N", help="cancel once so many units were read")
    parser.add_argument("--slow", type=int, default=0, metavar="MS", help="wait so long after each read (at most 10 s)")
    parser.add_argument("--title", help="the first line")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the attempt's record to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
