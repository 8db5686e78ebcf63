"""The islands never import one another, and import nothing that the table does not name."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]

# Which third-party packages a file may import; "" is the island's default.
TABLE: dict[str, dict[str, frozenset[str]]] = {
    "client": {
        "": frozenset(),
        "client/http.py": frozenset({"h11"}),
        "client/strict_json.py": frozenset({"jiter"}),
        "client/validators.py": frozenset({"jsonschema"}),
        # SQLAlchemy: one set of statements for SQLite and PostgreSQL, on a connection of the caller's if need be.
        "client/attempts/sql.py": frozenset({"sqlalchemy"}),
    },
    "harness": {
        "": frozenset(),
        "harness/schema.py": frozenset({"jsonschema"}),
        # tomlkit: `case new` edits case.toml in place, and the standard library only reads TOML.
        "harness/make_case.py": frozenset({"tomlkit"}),
        "harness/server/app.py": frozenset({"aiohttp"}),
        "harness/server/player.py": frozenset({"aiohttp"}),
        "harness/server/guard.py": frozenset({"aiohttp"}),
    },
    "plots": {"": frozenset({"matplotlib"})},
    "audit.py": {"": frozenset()},
    "run.py": {"": frozenset({"harness"})},
}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Give every import of a file as (level, module), those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def files(island: str) -> list[Path]:
    """Give the source files of an island."""
    root = HOME / island
    return [root] if root.is_file() else sorted(root.rglob("*.py"))


def depth(path: Path, island: str) -> int:
    """Say how many levels a relative import may climb without leaving the island."""
    return len(path.relative_to(HOME / island).parts)


@pytest.mark.parametrize("island", TABLE)
def test_imports(island: str) -> None:
    """Every import is relative inside its island, of the standard library, or in the table."""
    found = files(island)
    assert found
    for path in found:
        name = path.relative_to(HOME).as_posix()
        allowed = TABLE[island].get(name, TABLE[island][""])
        for level, module in imports(path):
            top = module.partition(".")[0]
            if level:
                assert level <= depth(path, island), f"{name}: {'.' * level}{module} leaves the island"
            else:
                assert top in sys.stdlib_module_names or top in allowed, f"{name}: imports {module}"


def test_the_check_can_fail(tmp_path: Path) -> None:
    """An import hidden in a function is seen."""
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from ..harness import cli\n    import audit\n")
    assert list(imports(path)) == [(2, "harness"), (0, "audit")]


@pytest.mark.parametrize("island", ["client", "harness", "plots", "audit.py"])
def test_every_file_says_what_it_is_for(island: str) -> None:
    """Every file that holds code opens with a docstring."""
    for path in files(island):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not tree.body or ast.get_docstring(tree), f"{path.relative_to(HOME)} has no docstring"
