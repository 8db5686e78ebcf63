"""Keeps nothing, ever: safe from half answers, and useless."""

from ..loop import Turn, serve


def answer(turn: Turn) -> bool:
    """Show the answer and forget it."""
    turn.read(turn.texts())
    return False


serve("_wrong/never", answer)
