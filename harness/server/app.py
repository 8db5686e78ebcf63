"""The server itself: trials by their token, on aiohttp's low-level server.

There is no router and no control plane: a trial is opened and closed by a call, and its path is
a random token that says nothing about the case. A request to any other path is 404.
"""

import asyncio
import logging
import secrets

from aiohttp import web
from aiohttp.typedefs import LooseHeaders

from ..cases import Case
from .guard import BODY_BYTES, HEAD_LINE_BYTES, HEADERS, refusal
from .player import Play, play
from .script import Script, script

# How long a request may take to send its body, and how many one trial may make.
_REQUEST_S = 10.0
_REQUESTS = 100

# aiohttp logs what clients do wrong; here that is the experiment, and it is in the record.
_SILENT = logging.getLogger("endmark.server")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class _Played(web.StreamResponse):
    """What aiohttp is given when the script has been played: nothing is left to send."""

    def __init__(self) -> None:
        super().__init__()
        self.force_close()

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002 - aiohttp's signature
        return None

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002
        return None


class Trial:
    """One case being served: where, and what was done so far with each request, in the order they came."""

    def __init__(self, case: Case, port: int, token: str) -> None:
        self.path = f"/{token}/v1"
        self.base_url = f"http://127.0.0.1:{port}{self.path}"
        self.plays: list[Play] = []
        self.scripts: list[Script] = [script(exchange) for exchange in case.exchanges]


class FixtureServer:
    """Serves any number of trials; an async context manager that owns its socket."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> "FixtureServer":
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            logger=_SILENT,
            max_line_size=HEAD_LINE_BYTES,
            max_field_size=HEAD_LINE_BYTES,
            max_headers=HEADERS,
            lingering_time=0,
        )
        self._listener = await asyncio.get_running_loop().create_server(self._server, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listener and self._server:
            self._listener.close()
            await self._server.shutdown(timeout=0.1)
            await self._listener.wait_closed()

    def open(self, case: Case) -> Trial:
        """Open a trial of a case on a new path."""
        token = secrets.token_urlsafe(24)
        trial = self._trials[token] = Trial(case, self.port, token)
        return trial

    def close(self, trial: Trial) -> None:
        """Close a trial: its path is gone."""
        self._trials.pop(trial.path.split("/")[1], None)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        refused = refusal(request, self.port)
        if refused:
            return _refuse(*refused)
        trial = self._trials.get(request.raw_path.split("/")[1])
        if trial is None or not request.raw_path.startswith(trial.path + "/"):
            return _refuse(404, "no trial here")
        if len(trial.plays) >= _REQUESTS:
            return _refuse(429, f"more than {_REQUESTS} requests in one trial")
        try:
            async with asyncio.timeout(_REQUEST_S):
                body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _refuse(413, f"a body of more than {BODY_BYTES} bytes")
        except TimeoutError:
            return _refuse(408, f"no whole request within {_REQUEST_S:.0f} s")
        record = Play(headers=list(request.headers.items()), request_body=body)
        trial.plays.append(record)
        number = min(len(trial.plays), len(trial.scripts)) - 1
        await play(trial.scripts[number], request, record)
        return _Played()


def _refuse(status: int, why: str) -> web.Response:
    headers: LooseHeaders = {"Connection": "close"}
    response = web.Response(status=status, text=f"{why}\n", headers=headers)
    response.force_close()
    return response
