"""Reads the choices at the head of an input: switches, limits and cuts come before the bytes that are judged.

An input that is too short chooses 0, and 0 is always the plain choice: the contract as it is, nothing cut.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, pairwise

from client.contract import SWITCHES, Contract


class Choices:
    """An input, taken from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        """Take one byte; 0 where there is none."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def one_of(self, *values: str) -> str:
        """Take one byte and choose by it."""
        return values[self.byte() % len(values)]

    def take(self, size: int) -> bytes:
        """Take up to so many bytes."""
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        """Take all that is left."""
        return self.take(max(len(self._data) - self._at, 0))


def switched(contract: Contract, choices: Choices) -> Contract:
    """Give a contract with its switches turned by the bits of two bytes; all of them have two values."""
    bits = choices.byte() | choices.byte() << 8
    turned = dict(contract.switches)
    for number, (name, values) in enumerate(sorted(SWITCHES.items())):
        if bits >> number & 1:
            (turned[name],) = values - {turned[name]}
    return replace(contract, switches=turned)


def limited(contract: Contract, choices: Choices, **units: int) -> Contract:
    """Give a contract with each named limit set to one byte times its unit, where that byte is not 0."""
    chosen = {name: choices.byte() * unit for name, unit in units.items()}
    return replace(contract, limits=replace(contract.limits, **{name: n for name, n in chosen.items() if n}))


def cut(body: bytes, choices: Choices) -> list[bytes]:
    """Cut a body into pieces of two sizes in turn, one byte each; the size 0 is all the rest."""
    sizes = (choices.byte(), choices.byte())
    pieces: list[bytes] = []
    at = 0
    while at < len(body):
        size = sizes[len(pieces) % 2] or len(body)
        pieces.append(body[at : at + size])
        at += size
    return pieces


def cut_around(body: bytes, proofs: Iterable[int | None]) -> list[bytes]:
    """Cut a body before and after each of the bytes that prove something."""
    places = sorted({place for at in proofs if at is not None for place in (at - 1, at)} | {0, len(body)})
    return [body[start:end] for start, end in pairwise(places)]


class Ends:
    """Where each of some pieces ends."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._ends = list(accumulate(map(len, pieces)))

    def of(self, at: int | None) -> int | None:
        """Give the end of the piece that holds the last of `at` bytes; None, the end of all, stays None."""
        return None if at is None else self._ends[bisect_left(self._ends, at)]


def sizes_of(pieces: list[bytes]) -> str:
    """Name the sizes of some pieces, for a message."""
    return ", ".join(str(len(piece)) for piece in pieces[:8]) + (", ..." if len(pieces) > 8 else "")
