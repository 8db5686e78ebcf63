"""Reading a file of attempt records: what is a record, and how a line that is none is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.names import UsageError
from harness.record_file import LINE_BYTES, SCHEMA, columns, records
from harness.schema import check

from .attempt_records import Record, a_record, line, refused, write

NAMES = tuple(columns())


def test_records_are_given_in_order(tmp_path: Path) -> None:
    """Every line is a record, in the order of the file."""
    wanted = [a_record(1), refused(2), a_record(3) | {"gen_ai.response.finish_reasons": None}]
    assert list(records(write(tmp_path / "r.jsonl", *wanted))) == wanted


def test_an_empty_file_has_no_record(tmp_path: Path) -> None:
    """Nothing is in an empty file."""
    assert list(records(write(tmp_path / "r.jsonl"))) == []


WITHOUT = {name: value for name, value in a_record().items() if name != "why"}
BAD_LINES = [
    (b"\n", "no JSON text"),
    (b"{]\n", "no JSON text"),
    (b"\xff\n", "no JSON text"),
    (b"[" * 100_000 + b"\n", "no JSON text"),
    (b'{"fence": NaN}\n', "no JSON text: NaN is no JSON"),
    (b"[1]\n", "no record, but a list"),
    (b"null\n", "no record, but a NoneType"),
    (line(a_record())[:-1], "no line end, as if writing it was cut short"),
    (b"x" * (LINE_BYTES + 1), f"longer than {LINE_BYTES} bytes"),
    (line(a_record()).replace(b'"fence":1', b'"fence":2,"fence":1'), "no JSON text: a name that occurs twice"),
    (line(a_record(why='": "')).replace(b'"fence":1', b'"fence":2,"fence":1'), "a name that occurs twice"),
    (line(WITHOUT), "'why' is a required property"),
    (line(a_record() | {"more": 1}), "Additional properties are not allowed ('more' was unexpected)"),
    (line(WITHOUT | {"more": 1}), "r.jsonl: line 2: "),
]


@pytest.mark.parametrize(("bad", "message"), BAD_LINES)
def test_a_line_that_is_no_record(tmp_path: Path, bad: bytes, message: str) -> None:
    """What is no record is refused with the number of its line and the reason; those before it are given."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(line(a_record()) + bad)
    found = records(path)
    assert next(found) == a_record()
    with pytest.raises(UsageError, match="line 2: ") as refusal:
        next(found)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema", "attempt/2"),
        ("fence", 0),
        ("fence", True),
        ("fence", 1.0),
        ("fence", 2**53),
        ("fence", None),
        ("attempt_id", ""),
        ("attempt_id", "x" * 201),
        ("decision", "maybe"),
        ("decision", None),
        ("transport_end", "left"),
        ("terminal_class", ["complete"]),
        ("framing_complete", 1),
        ("framing_complete", "true"),
        ("payload_sha256", "AB" * 32),
        ("payload_sha256", "ab" * 32 + "\n"),
        ("gen_ai.response.finish_reasons", "stop"),
        ("gen_ai.response.finish_reasons", [1]),
        ("gen_ai.response.finish_reasons", ["stop"] * 17),
        ("started_at", "2026-12-01T12:00:00Z"),
        ("started_at", "2026-13-01T12:00:00.000000Z"),
        ("decided_at", "2026-12-01T25:00:00.000000Z"),
        ("first_display_at", "2026-02-30T12:00:00.000000Z"),
        ("decided_at", None),
        ("text", "x" * 16385),
        ("why", {"a": 1}),
    ],
)
def test_a_wrong_value(tmp_path: Path, name: str, value: Any) -> None:
    """A value outside of its column is refused, and the column is named."""
    with pytest.raises(UsageError, match="line 1: ") as refusal:
        list(records(write(tmp_path / "r.jsonl", a_record(**{name: value}))))
    assert name in str(refusal.value)


@pytest.mark.parametrize("name", ["framing_complete", "terminal_class", "terminal_reason_source", "payload_sha256"])
def test_evidence_that_is_not_known_is_read(tmp_path: Path, name: str) -> None:
    """Null evidence is a record: what it lacks is for the rules to say."""
    assert list(records(write(tmp_path / "r.jsonl", a_record() | {name: None})))


ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["x" * 200, "x" * 201, "ab" * 32, "2026-12-01T12:00:00.000000Z", "complete", "attempt/1"]),
    st.lists(st.one_of(st.text(max_size=3), st.integers()), max_size=17),
)


@given(st.sampled_from(NAMES), ANY)
def test_the_quick_checks_are_the_schemas(tmp_path_factory: pytest.TempPathFactory, name: str, value: Any) -> None:
    """A record is read just where the JSON Schema takes it, whatever stands in whichever column."""
    record: Record = a_record(**{name: value})
    path = write(tmp_path_factory.mktemp("any") / "r.jsonl", record)
    try:
        check(record, SCHEMA, "a record")
    except UsageError:
        with pytest.raises(UsageError):
            list(records(path))
    else:
        assert list(records(path)) == [record]
