"""The ways to cut one body: a reader's answer must not depend on them."""

from collections.abc import Iterator

CUTS = ("whole", "byte by byte", "by three", "with trailing bytes")


def pieces(body: bytes, cut: str) -> Iterator[bytes]:
    """Cut a body; the trailing bytes are an unfinished line, which can change nothing."""
    size = {"byte by byte": 1, "by two": 2, "by three": 3}.get(cut, max(len(body) + 2, 1))
    if cut == "with trailing bytes":
        body += b":x"
    for start in range(0, len(body), size):
        yield body[start : start + size]
