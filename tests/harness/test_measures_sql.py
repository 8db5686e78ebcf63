"""The rules are plain SQL: PostgreSQL finds with them what SQLite does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from harness.measures import measure, rules
from harness.record_file import columns
from tests.client.attempts.postgres import Cluster

from .attempt_records import LACKS, Record, a_record, write
from .test_measures import OTHERS

# One right record, and one or two for each way to break a rule, with ids and tasks of their own.
ROWS: list[Record] = [a_record(1)]
ROWS += [a_record(number, **lack) for number, lack in enumerate(LACKS.values(), 100)]
ROWS += [
    row | {"attempt_id": f"{rule} {row['attempt_id']}", "task_id": f"{rule} {row['task_id']}"}
    for rule, rows in OTHERS.items()
    for row in rows
]


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection]:
    """Give a connection to a PostgreSQL of the module's own."""
    cluster = Cluster()
    try:
        with psycopg.connect(cluster.url.replace("postgresql+psycopg", "postgresql")) as connection:
            yield connection
    finally:
        cluster.stop()


def kind(rule: Any, lists: str) -> str:
    """Give PostgreSQL's type of a column."""
    named = rule.get("type", "string")
    (name,) = {named} if isinstance(named, str) else set(named) - {"null"}
    return {"string": "text", "integer": "bigint", "boolean": "boolean", "array": lists}[name]


@pytest.mark.parametrize("lists", ["text[]", "jsonb", "text"])
def test_postgresql_finds_the_same(connection: psycopg.Connection, tmp_path: Path, lists: str) -> None:
    """The same attempts break the same rules, whether a list is a list, JSON or text there."""
    types = {name: kind(rule, lists) for name, rule in columns().items()}
    fields = sql.SQL(", ").join(sql.SQL("{} " + spelt).format(sql.Identifier(name)) for name, spelt in types.items())
    connection.execute("DROP TABLE IF EXISTS attempt")
    connection.execute(sql.SQL("CREATE TABLE attempt ({})").format(fields))
    places = sql.SQL(", ").join(sql.Placeholder() * len(types))
    for row in ROWS:
        values = [_value(row[name], lists) for name in types]
        connection.execute(sql.SQL("INSERT INTO attempt VALUES ({})").format(places), values, prepare=False)
    found = {
        (name, attempt_id)
        for name, (_, statement) in rules().items()
        if name != "R5"
        for (attempt_id,) in connection.execute(sql.SQL(statement))
    }
    expected = measure(write(tmp_path / "records.jsonl", *ROWS))["findings"]
    assert found == {(finding["rule"], finding["attempt_id"]) for finding in expected}
    assert {name for name, _ in found} == {"R1", "R2", "R3", "R4", "R6", "R7"}


def _value(value: Any, lists: str) -> Any:
    if not isinstance(value, list) or lists == "text[]":
        return value
    return Jsonb(value) if lists == "jsonb" else str(value).replace("'", '"')
