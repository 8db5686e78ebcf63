"""Facts of framing that a speed says nothing about, asked of every framer: a small table of right and wrong.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

Each body is fed as it is cut here, whole, and byte by byte; right is who gives the same right data each time.
"""

from dataclasses import dataclass

from .inputs import cut
from .peers import FRAMERS, Frame, Pieces, texts
from .results import Fact


@dataclass(frozen=True, kw_only=True)
class Question:
    """One body, and the data of its events; None where it has to be refused."""

    name: str
    pieces: Pieces
    data: list[str] | None


QUESTIONS = (
    Question(name="CR alone ends a line", pieces=[b"data: a\r\rdata: b\r\r"], data=["a", "b"]),
    Question(
        name="CRLF cut in two is one line end", pieces=[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"], data=["a\nb"]
    ),
    Question(name="line ends may be mixed", pieces=[b"data: a\r\ndata: b\n\rdata: c\r\n\n"], data=["a\nb", "c"]),
    Question(name="a BOM at the start is dropped", pieces=[b"\xef\xbb", b"\xbfdata: a\n\n"], data=["a"]),
    Question(name="a character may be cut", pieces=[b"data: \xf0\x9f", b"\x8c\xb1\n\n"], data=["🌱"]),
    Question(name="bytes that are no UTF-8 are refused (¹)", pieces=[b"data: \xff\n\n"], data=None),
    Question(
        name="U+2028, U+0085 and VT end no line",
        pieces=["data: a\u2028b\u0085c\vd\n\n".encode()],
        data=["a\u2028b\u0085c\vd"],
    ),
    Question(name="one leading space is dropped, no more", pieces=[b"data:  a \n\n"], data=[" a "]),
    Question(name="empty last data lines are kept", pieces=[b"data: a\ndata:\ndata:\n\n"], data=["a\n\n"]),
    Question(name="an event of empty data is one", pieces=[b"data\n\ndata:\n\n"], data=["", ""]),
    Question(name="an event without data is none", pieces=[b"event: x\n\ndata: a\n\n"], data=["a"]),
    Question(name="blank lines after an `id` are no events", pieces=[b"id: 1\ndata: a\n\n\n: ping\n\n"], data=["a"]),
    Question(name="an event without its blank line is dropped", pieces=[b"data: a\n\ndata: b\n"], data=["a"]),
)


def facts() -> tuple[Fact, ...]:
    """Ask every framer every question."""
    frames = {name: make() for name, make in FRAMERS.items()}
    return tuple(
        Fact(name=question.name, answers={name: answer(frame, question) for name, frame in frames.items()})
        for question in QUESTIONS
    )


def answer(frame: Frame, question: Question) -> str:
    """Say what was wrong in the first way of feeding that went wrong; "" where nothing did."""
    body = b"".join(question.pieces)
    for how, pieces in (("", question.pieces), ("whole: ", [body]), ("byte by byte: ", cut(body, 1))):
        got = _data(frame, pieces)
        if got != question.data if isinstance(got, list) else question.data is not None:
            return how + (got if isinstance(got, str) else _short(got))
    return ""


def _data(frame: Frame, pieces: Pieces) -> list[str] | str:
    try:
        return texts(frame(pieces))
    except Exception as error:  # a peer may refuse with anything
        return f"raises {type(error).__name__}"


def _short(data: list[str]) -> str:
    spelt = ascii(data)
    return "gives " + (spelt if len(spelt) < 60 else f"{spelt[:50]}...")
