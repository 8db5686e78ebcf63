"""Makes a find smaller while it stays a find: ever smaller spans are left out, then bytes made plain."""

from collections.abc import Callable

# Bytes that say nothing by themselves: the plain choice of a head, and a letter.
_PLAIN = (0, ord("a"))


def shrink(data: bytes, is_find: Callable[[bytes], bool]) -> bytes:
    """Give the smallest input that leaving out and making plain lead to; data itself has to be a find."""
    before = None
    while before != data:
        before, data = data, _plainer(_shorter(data, is_find), is_find)
    return data


def _shorter(data: bytes, is_find: Callable[[bytes], bool]) -> bytes:
    size = len(data)
    while size:
        at = 0
        while at < len(data):
            less = data[:at] + data[at + size :]
            if is_find(less):
                data = less
            else:
                at += size
        size //= 2
    return data


def _plainer(data: bytes, is_find: Callable[[bytes], bool]) -> bytes:
    for at in range(len(data)):
        for value in _PLAIN:
            if data[at] in _PLAIN[: _PLAIN.index(value) + 1]:
                break
            plain = data[:at] + bytes([value]) + data[at + 1 :]
            if is_find(plain):
                data = plain
                break
    return data
