"""The strict client: takes a streamed answer for whole only when the provider proved that it is.

Bytes in, values out. `Reader` is the core and does no I/O; `ask` and `stream` are the way to the network;
`History` is what the next request would send; `client.validators` asks whether a task wants a complete answer.
This island knows nothing of cases, labels,
archives or verdicts, and imports neither `harness` nor `audit`.
"""

from .contract import Contract, ContractError, load
from .history import History
from .http import Answer, Conditions, ask, stream
from .proposals import CommandSent, EffectSeen, ProposalComplete, proposals
from .reader import CANCEL, Reader, Settled

__all__ = [
    "CANCEL",
    "Answer",
    "CommandSent",
    "Conditions",
    "Contract",
    "ContractError",
    "EffectSeen",
    "History",
    "ProposalComplete",
    "Reader",
    "Settled",
    "ask",
    "load",
    "proposals",
    "stream",
]
