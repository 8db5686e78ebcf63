"""What the wrong clients share: the subject protocol on stdio, and a plain loop over lines.

This is the code of a hundred tutorials on purpose: http.client, lines cut at LF, `data: `
stripped, json.loads. How each control decides what to keep is its own file.
"""

import http.client
import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from .spellings import SPELLINGS, payloads


class Turn:
    """One turn as a tutorial sees it: a question, texts to parse, and what was shown so far."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message
        self._path, self._spelling = SPELLINGS[message["dialect"]]
        self.shown = ""
        self.finish_reason: str | None = None
        self.saw_done = False

    @property
    def read_cap_bytes(self) -> int:
        """The most bytes that one read of this trial may return."""
        return int(self._message["conditions"]["read_cap_bytes"])

    def post(self) -> http.client.HTTPResponse:
        """Ask, and give the response without looking at its status."""
        message, url = self._message, urlsplit(self._message["base_url"])
        timeout_s = message["conditions"]["read_timeout_ms"] / 1000
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout_s)
        question = {"role": "user", "content": message["question"]}
        body = {"model": "fixture", "stream": True, "messages": [*message["history"], question]}
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"{url.path}{self._path}", json.dumps(body), headers)
        return connection.getresponse()

    def texts(self) -> Iterator[str]:
        """Give what stands in the events, one by one, as far as lines show it."""
        response = self.post()
        if self._message["dialect"] == "bedrock":
            return payloads(response.read())
        return self.unpacked(line.decode().rstrip("\r\n") for line in response)

    def unpacked(self, lines: Iterable[str]) -> Iterator[str]:
        """Take the `data: ` off the lines that have it; Ollama's lines have none."""
        for line in lines:
            if self._message["dialect"] == "ollama":
                yield line
            elif line.startswith("data: "):
                yield line[6:]

    def read(self, texts: Iterator[str]) -> None:
        """Show every delta; note the finish reason and the end; stop there or at a cancel."""
        for text in texts:
            if text == "[DONE]":
                self.saw_done = True
                return
            seen = self._spelling(json.loads(text))
            self.shown += seen.text
            self.finish_reason = seen.reason or self.finish_reason
            self.saw_done |= seen.done
            if seen.done or self._cancelled():
                return

    def _cancelled(self) -> bool:
        wanted = self._message["conditions"].get("cancel_after_utf16")
        return wanted is not None and len(self.shown.encode("utf-16-le")) // 2 >= wanted

    def claim(self, keep: bool, error: Exception | None) -> dict[str, object]:
        """Say what the history is now."""
        history = list(self._message["history"])
        if keep:
            history += [
                {"role": "user", "content": self._message["question"]},
                {"role": "assistant", "content": self.shown},
            ]
        raised = {"type": type(error).__name__, "chain": [], "message": str(error)[:500]} if error else None
        return {
            "kind": "claim",
            "trial": self._message["trial"],
            "history": history,
            "preview": self.shown,
            "raised": raised,
            "hints": {"finish_reason": self.finish_reason},
        }


def serve(name: str, answer: Callable[[Turn], bool]) -> None:
    """Answer turns until `stop`; `answer` reads the stream and says whether to keep what was shown."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["kind"] == "stop":
            return
        if message["kind"] == "start":
            _say(_ready(name))
            continue
        turn = Turn(message)
        try:
            keep, error = answer(turn), None
        except Exception as caught:  # whatever a tutorial's loop dies of
            keep, error = False, caught
        _say(turn.claim(keep, error))


def _ready(name: str) -> dict[str, object]:
    return {
        "kind": "ready",
        "protocol": "endmark.subject/1",
        "name": name,
        "version": "1",
        "language": f"Python {platform.python_version()}",
        "dialects": sorted(SPELLINGS),
        "capabilities": ["cancel", "read-timeout"],
    }


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
