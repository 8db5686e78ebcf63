"""An event loop whose clock jumps over idle time, so that time-outs are tested without waiting.

Sockets are real. When nothing has happened for a moment and a timer is due later, the loop's
clock is moved to that timer. `elapsed` counts what would have passed.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# Real silence after which nothing is in flight on loopback between two tasks of one loop.
_QUIET_S = 0.02


class _Selector(selectors.DefaultSelector):
    skipped: float = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= _QUIET_S:
            return super().select(timeout)
        ready = super().select(_QUIET_S)
        if not ready:
            self.skipped += timeout - _QUIET_S
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """A selector loop with a clock that skips idle time."""

    def __init__(self) -> None:
        self._jumping = _Selector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.skipped

    @property
    def skipped(self) -> float:
        """Seconds that were jumped over."""
        return self._jumping.skipped


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, float]:
    """Run a coroutine on a jumping loop; give its result and the seconds that would have passed."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        loop = runner.get_loop()
        start = loop.time()
        result = runner.run(main())
        return result, loop.time() - start
