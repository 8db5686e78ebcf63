"""Keeps the answer as soon as any finish reason was seen, whatever it says and whatever follows."""

from ..loop import Turn, serve


def answer(turn: Turn) -> bool:
    """Keep what was shown if there was a finish reason."""
    turn.read(turn.texts())
    return turn.finish_reason is not None


serve("_wrong/finish_only", answer)
