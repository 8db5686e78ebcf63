"""`redact.py`: a secret that no one thought of never enters a record; only its name does."""

import json
from pathlib import Path

import pytest

from harness.archive import Archive
from harness.cases import load_suite
from harness.redact import request_record
from harness.runner import Plan, run

from .support import a_subject, copy_cases, lines_of, run_async, tree

CANARY = "sk-canary-5b1f"
JSON = ("Content-Type", "application/json")


@pytest.mark.parametrize(
    ("headers", "body", "names"),
    [
        ([("Authorization", f"Bearer {CANARY}")], b"{}", {"authorization"}),
        ([("Api-Key", CANARY), ("X-Api-Key", CANARY)], b"{}", {"api-key", "x-api-key"}),
        ([("Cookie", f"session={CANARY}")], b"{}", {"cookie"}),
        ([("Host", f"{CANARY}.example")], b"{}", set()),
        ([("User-Agent", CANARY)], b"{}", {"user-agent"}),
        ([JSON], json.dumps({"user": CANARY}).encode(), {"body.user"}),
        ([JSON], json.dumps({"model": "m", "metadata": {"k": CANARY}}).encode(), {"body.metadata"}),
        ([JSON], json.dumps([{"model": CANARY}]).encode(), {"body"}),
        ([JSON], json.dumps(CANARY).encode(), {"body"}),
        ([], f"key={CANARY}".encode(), {"body"}),
        ([], f'{{"model": "{CANARY}"'.encode(), {"body"}),
        ([], b"\xff\xfe" + CANARY.encode(), {"body"}),
        ([], b"[" * 100_000 + CANARY.encode(), {"body"}),
        ([], f'{{"temperature": NaN, "user": "{CANARY}"}}'.encode(), {"body"}),
        ([], f'{{"temperature": 1e999, "user": "{CANARY}"}}'.encode(), {"body"}),
        ([], b"", set()),
    ],
)
def test_what_is_left_out(headers: list[tuple[str, str]], body: bytes, names: set[str]) -> None:
    """What is not on the allow-list leaves its name alone."""
    record, left_out = request_record(headers, body)
    assert CANARY.encode() not in record
    assert left_out == names


def test_the_record_of_a_plain_request() -> None:
    """A record is the placeholders, the allowed headers in order, and the allowed members, canonically."""
    headers = [JSON, ("Host", "127.0.0.1:1"), ("Accept", "*/*"), ("Content-Length", "60"), ("X-Trace", "1")]
    body = b'{"stream": true, "model": "fixture", "messages": [], "user": "me"}'
    record, left_out = request_record(headers, body)
    assert record == (
        b"POST {path} HTTP/1.1\nhost: {host}\naccept: */*\ncontent-length: 60\ncontent-type: application/json\n\n"
        b'{"messages":[],"model":"fixture","stream":true}'
    )
    assert left_out == {"x-trace", "body.user"}


def test_the_record_does_not_depend_on_the_order() -> None:
    """Headers and members in another order and another case give the same bytes."""
    first, _ = request_record([("ACCEPT", "a"), ("content-type", "b")], b'{"n":1,"model":"m"}')
    second, _ = request_record([("Content-Type", "b"), ("accept", "a")], b'{"model" : "m", "n" : 1}')
    assert first == second


def test_a_header_that_is_no_text() -> None:
    """Bytes of a header that are no UTF-8 are recorded, escaped."""
    record, _ = request_record([("Accept", "\udcff")], b"")
    assert b"accept: \\udcff\n" in record


LEAKY = f"""
import http.client, urllib.parse
ready()
turn = hear()
url = urllib.parse.urlsplit(turn["base_url"])
for body in (
    json.dumps(dict(model="m", messages=[], user="{CANARY}", extra=dict(key="{CANARY}"))),
    "key={CANARY}",
    '{{"temperature": NaN, "user": "{CANARY}"}}',
):
    connection = http.client.HTTPConnection(url.hostname, url.port)
    connection.request("POST", url.path + "/chat/completions?api-key={CANARY}", body, {{
        "Authorization": "Bearer {CANARY}", "Cookie": "a={CANARY}", "X-Vendor": "{CANARY}",
        "Content-Type": "application/json",
    }})
    connection.getresponse().read()
    connection.close()
claim(turn)
hear()
"""


def test_no_canary_in_an_archive(tmp_path: Path) -> None:
    """A run with secrets in headers, cookie, query and bodies leaves no trace of them in the whole archive."""
    suite = load_suite(copy_cases(tmp_path), "frozen", "seven-byte")
    archive = Archive(tmp_path / "run")
    run_async(run(Plan(subject=a_subject(tmp_path, LEAKY), suites=(suite,)), archive, 1, lambda _: None))
    files = tree(archive.folder)
    assert [name for name, data in files.items() if CANARY.encode() in data or CANARY in name] == []
    (line,) = lines_of(archive.folder / "data/volatile/trials-00000.jsonl")
    assert {"authorization", "cookie", "x-vendor", "body", "body.user", "body.extra"} <= set(line["redacted"])
    (record,) = lines_of(archive.folder / "data/records/trials-00000.jsonl")
    assert len(record["requests"]) == 3
    assert record["no_claim"] is None
