"""Three records of a tool call that must not be taken for one another.

`ProposalComplete`: the provider proposed a call, whole, in an accepted message. `CommandSent`: the
application sent it somewhere. `EffectSeen`: somebody saw what it did. Nothing in this package sends a
command; each record needs the one before it, so a proposal alone can never pass for an effect.
"""

from dataclasses import dataclass

from .outcomes import COMPLETE, Fault
from .reader import Settled
from .strict_json import MAX_DEPTH, Json, parse


@dataclass(frozen=True, kw_only=True)
class ProposalComplete:
    """A call that the provider finished proposing; `arguments` is a strict JSON object, or free text."""

    id: str | None
    name: str
    arguments: dict[str, Json] | str


@dataclass(frozen=True, kw_only=True)
class CommandSent:
    """A proposal that the application acted on, under an id of the application's own."""

    proposal: ProposalComplete
    command_id: str


@dataclass(frozen=True, kw_only=True)
class EffectSeen:
    """What was observed of a command: not its being sent, but what it changed."""

    command: CommandSent
    observation: str


def proposals(turn: Settled) -> list[ProposalComplete]:
    """Give the calls of a COMPLETE tool proposal; none for any other turn, however whole they look."""
    if turn.outcome != COMPLETE or turn.reason_class != "tools":
        return []
    found = []
    for call in turn.calls:
        arguments = call.arguments if call.free else parse(call.arguments.encode(), MAX_DEPTH)
        if not isinstance(arguments, Fault) and isinstance(arguments, dict | str):
            found.append(ProposalComplete(id=call.id, name=call.name or "", arguments=arguments))
    return found
