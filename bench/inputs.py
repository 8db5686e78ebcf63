"""Chat streams as OpenAI's API sends them, made from a seed: the same number gives the same bytes.

A stream has 300 events: a role, 297 pieces of content, a finish and `[DONE]`. By its number it is English,
Chinese, or English with emoji. What varies from event to event besides the content is the variant's to say:

    https://platform.openai.com/docs/api-reference/chat-streaming/streaming
        {"id", "object", "created", "model", "choices": [{"index", "delta", "logprobs", "finish_reason"}],
         "usage"?, "obfuscation"?}

This file knows no framer and no clock.
"""

import json
import math
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

STREAMS = 1000
EVENTS = 300  # in each stream, [DONE] included

Draw = random.Random

_HEAD = '{"id":"chatcmpl-%s","object":"chat.completion.chunk","created":%d,"model":"gpt-5-mini-2025-08-07",'
_HEAD += '"choices":[{"index":0,'
_LETTERS = string.ascii_letters + string.digits
_ENGLISH = (
    "the of and to in is that for it as with on was by this are be from at or an which stream event answer model"
    " whole half reader boundary finished provider because evidence never proves sentence carefully understanding"
    " characters , . : ; not can will each ed ing tion able"
)
_CHINESE = (
    "的 一个 我们 可以 如果 因为 流 事件 完整 回答 模型 读取 边界 没有 证据 提供 结束 句子 字符 之后"
    " 这 是 在 不 了 ， 。 、"
)
_EMOJI = "🌱 🚀 😀 👍 🎉 🔍 ✅ 👩\u200d💻 🇨🇳 ❤️"
_WORDS = {name: words.split() for name, words in (("english", _ENGLISH), ("chinese", _CHINESE), ("emoji", _EMOJI))}
_BREAKS = ("\n\n", "\n", ' "', '"', "\\", "\t")


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One response body: its events as they go over the wire, and the answer that they spell."""

    events: tuple[bytes, ...]
    answer: str

    @property
    def body(self) -> bytes:
        """All of its bytes."""
        return b"".join(self.events)

    @property
    def data(self) -> list[str]:
        """The data of each event, as the standard dispatches it."""
        return [event.decode().partition("data: ")[2][:-2] for event in self.events]

    def pieces(self, piece_bytes: int | None) -> list[bytes]:
        """The body in pieces of so many bytes, or one event a piece where that is None."""
        return list(self.events) if piece_bytes is None else cut(self.body, piece_bytes)


def _english(draw: Draw) -> str:
    return " " + draw.choice(_WORDS["english"])


def _chinese(draw: Draw) -> str:
    return draw.choice(_WORDS["chinese"])


def _emoji(draw: Draw) -> str:
    return " " + draw.choice(_WORDS["emoji"]) if draw.random() < 0.3 else _english(draw)


SCRIPTS: tuple[Callable[[Draw], str], ...] = (_english, _chinese, _emoji)

# A variant spells what stands after the delta of one choice, and what stands after the choices.
Variant = Callable[[Draw, str], tuple[str, str]]


def content_only(draw: Draw, content: str) -> tuple[str, str]:  # noqa: ARG001 - what the other variants need
    """Nothing but the content differs."""
    return '"logprobs":null,', ""


def obfuscated(draw: Draw, content: str) -> tuple[str, str]:
    """Random letters pad every event to a multiple of 16 bytes (`stream_options.include_obfuscation`)."""
    pad = 16 - len(content.encode()) % 16
    return '"logprobs":null,', ',"usage":null,"obfuscation":"' + "".join(draw.choices(_LETTERS, k=pad)) + '"'


def logprobs(draw: Draw, content: str) -> tuple[str, str]:
    """The token's probability and bytes, as `logprobs: true` asks for them."""
    return _logprobs([_token(draw, content) + ',"top_logprobs":[]}'] if content else []), ""


def top_logprobs(draw: Draw, content: str) -> tuple[str, str]:
    """The same with the two likeliest tokens (`top_logprobs: 2`)."""
    if not content:
        return _logprobs([]), ""
    others = ",".join(_token(draw, text) + "}" for text in (content, _english(draw)))
    return _logprobs([f'{_token(draw, content)},"top_logprobs":[{others}]}}']), ""


VARIANTS: dict[str, Variant] = {
    "content": content_only,
    "obfuscation": obfuscated,
    "logprobs": logprobs,
    "top_logprobs": top_logprobs,
}


def stream(number: int, variant: str = "content", events: int = EVENTS) -> Stream:
    """Make the stream of this number, of 4 events at least; raise KeyError for no variant of VARIANTS."""
    draw = random.Random(f"{variant} {number}")
    head = _HEAD % ("".join(draw.choices(_LETTERS, k=29)), 1760000000 + number)
    vary, script = VARIANTS[variant], SCRIPTS[number % len(SCRIPTS)]
    pieces = [_piece(draw, script) for _ in range(events - 3)]
    deltas = [('{"role":"assistant","content":"","refusal":null}', "", "null")]
    deltas += [(f'{{"content":{json.dumps(piece, ensure_ascii=False)}}}', piece, "null") for piece in pieces]
    deltas += [("{}", "", '"stop"')]
    spelt = []
    for delta, content, reason in deltas:
        inner, outer = vary(draw, content)
        spelt.append(f'data: {head}"delta":{delta},{inner}"finish_reason":{reason}}}]{outer}}}\n\n'.encode())
    return Stream(events=(*spelt, b"data: [DONE]\n\n"), answer="".join(pieces))


def streams(count: int, variant: str = "content", events: int = EVENTS) -> Iterator[Stream]:
    """Make the first so many streams of so many events."""
    return (stream(number, variant, events) for number in range(count))


def short_stream() -> Stream:
    """One stream of exactly 250 bytes: a comment, two pieces of content, a finish and `[DONE]`."""
    choices = ('"delta":{"content":"你好，"}', '"delta":{"content":"Java 🌱"}', '"delta":{},"finish_reason":"stop"')
    events = [f'data: {{"choices":[{{"index":0,{choice}}}]}}\n\n'.encode() for choice in choices]
    events.append(b"data: [DONE]\n\n")
    comment = b":" + b" " * (250 - sum(map(len, events)) - 3) + b"\n\n"
    return Stream(events=(comment + events[0], *events[1:]), answer="你好，Java 🌱")


def cut(body: bytes, piece_bytes: int) -> list[bytes]:
    """Cut a body into pieces of so many bytes, the last one shorter where it must be."""
    return [body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes)]


def _piece(draw: Draw, script: Callable[[Draw], str]) -> str:
    return draw.choice(_BREAKS) if draw.random() < 0.03 else script(draw)


def _token(draw: Draw, text: str) -> str:
    """Spell one token's object, its closing brace left to the caller."""
    spelt, likely = json.dumps(text, ensure_ascii=False), round(math.log(draw.random() + 1e-9), 8)
    return f'{{"token":{spelt},"logprob":{likely!r},"bytes":{json.dumps(list(text.encode()), separators=(",", ":"))}'


def _logprobs(tokens: list[str]) -> str:
    return f'"logprobs":{{"content":[{",".join(tokens)}],"refusal":null}},'
