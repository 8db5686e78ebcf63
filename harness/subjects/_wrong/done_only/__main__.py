"""Keeps the answer at `data: [DONE]`, be it dispatched or not, and asks for nothing else."""

from ..loop import Turn, serve


def answer(turn: Turn) -> bool:
    """Keep what was shown if [DONE] was seen."""
    turn.read(turn.texts())
    return turn.saw_done


serve("_wrong/done_only", answer)
