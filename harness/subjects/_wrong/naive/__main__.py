"""The naive loop of a hundred tutorials: when the loop ends, what there is was the answer."""

from ..loop import Turn, serve


def answer(turn: Turn) -> bool:
    """Keep whatever was shown."""
    turn.read(turn.texts())
    return True


serve("_wrong/naive", answer)
