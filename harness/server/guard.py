"""Turns away what no subject would send, before anything is looked up.

A developer's browser, or a page in it, can reach a port on 127.0.0.1. So the Host must be ours
(DNS rebinding), an Origin or Sec-Fetch-Site is a browser (cross-site requests), and a target in
absolute form takes us for a proxy. aiohttp's own parser bounds the head; the body is bounded here.
"""

from aiohttp.web import BaseRequest

HEAD_LINE_BYTES = 8 * 1024
HEADERS = 64

# Also where aiohttp stops to read a body whose length was not given (its client_max_size).
BODY_BYTES = 1024 * 1024


def refusal(request: BaseRequest, port: int) -> tuple[int, str] | None:
    """Give status and reason to refuse a request with, or None for one to be served."""
    hosts = request.headers.getall("Host", [])
    if hosts not in ([f"127.0.0.1:{port}"], [f"localhost:{port}"]):
        return 421, "this server answers to its own loopback address only"
    if not request.raw_path.startswith("/"):
        return 400, "this server is no proxy: send the path alone"
    for name in ("Origin", "Sec-Fetch-Site"):
        if name in request.headers:
            return 403, f"a request with {name} comes from a browser"
    if request.method != "POST":
        return 405, "subjects ask with POST"
    if (request.content_length or 0) > BODY_BYTES:
        return 413, f"a body of more than {BODY_BYTES} bytes"
    return None
