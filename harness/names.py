"""Where things are, and what may be a name.

A checkout has the islands side by side; the wheel has them inside `endmark`. Both keep the same
neighbours, so everything is found from this file.
"""

import re
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
CASES = HOME / "cases"
AUDIT = HOME / "audit.py"
SUBJECTS = Path(__file__).resolve().parent / "subjects"
SCHEMAS = Path(__file__).resolve().parent / "schemas"

# "" in a checkout, "endmark." in the wheel: how a sibling island is spelt for `python -m`.
PACKAGE_PREFIX = (__package__ or "").removesuffix("harness")

# The folder from which `python -m <prefix>client` works.
IMPORT_ROOT = HOME.parent if PACKAGE_PREFIX else HOME

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def is_name(text: str) -> bool:
    """Say whether a text may name a suite, a case or a file of one."""
    return NAME.fullmatch(text) is not None


class UsageError(Exception):
    """A request that cannot be met, by the fault of whoever made it: one line for them, exit 2."""
