"""The steps of a case with several attempts: what each is, and which order of them can be played.

It knows what a case may ask of a subject (docs/attempts.md, A4), and nothing of what is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .names import UsageError

if TYPE_CHECKING:
    from .cases import Case

# What the bodies of a session may have together: a journal repeats them, and a line of the protocol is no longer.
_BODIES_BYTES = 1024 * 1024

# The steps that make a request, each for an attempt of its own; the latter two in place of another one.
_ASKING = ("begin", "supersede", "retry")
_REPLACING = ("supersede", "retry")


@dataclass(frozen=True, kw_only=True)
class SessionStep:
    """One step of a session; `until_bytes` counts body bytes of the attempt's own exchange."""

    do: str
    attempt: str | None = None
    of: str | None = None
    until_bytes: int | None = None

    @property
    def asks(self) -> bool:
        """Say whether the step makes a request, unless the subject's policy denies it."""
        return self.do in _ASKING

    @property
    def message(self) -> dict[str, object]:
        """The step as it is sent to a subject: the keys that it has."""
        return {key: value for key, value in vars(self).items() if value is not None}


def check_session(where: str, case: "Case") -> None:
    """Refuse a session that cannot be played, or whose course would hang on a clock."""
    if "cancel_after_utf16" in case.conditions:
        raise UsageError(f"{where}: client.cancel_after_utf16: a case with steps cancels in a step; leave it out")
    asking = sum(step.asks for step in case.steps)
    if asking != len(case.exchanges):
        raise UsageError(f"{where}: step: {asking} steps make a request, there are {len(case.exchanges)} exchanges")
    sizes = [len(exchange.body) for exchange in case.exchanges]
    if sum(sizes) > _BODIES_BYTES:
        raise UsageError(f"{where}: exchange: bodies of {sum(sizes)} bytes, at most {_BODIES_BYTES} in one session")
    _check_steps(where, case.steps, sizes)
    limit_ms = case.conditions["read_timeout_ms"] // 2
    for number, exchange in enumerate(case.exchanges, 1):
        if max(exchange.silences_ms) > limit_ms:
            raise UsageError(
                f"{where}: exchange {number}: script: time passes between the steps of a session, so a wait is at "
                f"most half of read_timeout_ms, {limit_ms} ms; for a read that times out take ending 'stall'"
            )


def _check_steps(where: str, steps: Sequence[SessionStep], sizes: Sequence[int]) -> None:
    """Check names and offsets; the nth attempt reads the body of the nth exchange."""
    known: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        here = f"{where}: step {number} ({step.do})"
        if step.of is not None and step.do not in _REPLACING:
            raise UsageError(f"{here}: of: only {' and '.join(_REPLACING)} replace an attempt")
        if step.do in _REPLACING and step.of not in known:
            raise UsageError(f"{here}: of: no attempt {step.of!r} before this step")
        if step.asks:
            if step.attempt is None or step.attempt in known:
                raise UsageError(f"{here}: attempt: {step.attempt!r} was named before; take a new letter")
            known[step.attempt] = sizes[len(known)]
        elif step.do == "clear":
            if step.attempt is not None:
                raise UsageError(f"{here}: attempt: the conversation is cleared, not an attempt; leave it out")
        elif step.attempt not in known:
            raise UsageError(f"{here}: attempt: no attempt {step.attempt!r} before this step")
        _check_until(here, step, known)


def _check_until(here: str, step: SessionStep, sizes: dict[str, int]) -> None:
    if step.until_bytes is None:
        return
    if step.do != "read":
        raise UsageError(f"{here}: until_bytes: only a read goes on until a byte")
    size = sizes[step.attempt or ""]
    if not 1 <= step.until_bytes <= size:
        raise UsageError(f"{here}: until_bytes: {step.until_bytes} is outside the body of {size} bytes")
