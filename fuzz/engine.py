"""`python -m fuzz.engine TARGET OPTION...`: one target under atheris, which is libFuzzer with Python's coverage.

The one file that imports atheris. Client and auditor are imported under instrumentation before anything else
imports them, the auditor under the name by which the tests know it. Options are libFuzzer's.
"""

import sys

import atheris


def main(name: str, options: list[str]) -> None:
    """Fuzz until the options or a find say so; libFuzzer ends the process."""
    with atheris.instrument_imports(include=["client", "audit"]):
        import audit
        import client  # noqa: F401

        sys.modules["endmark_auditor"] = audit
        from .targets import TARGETS

    deviation = TARGETS[name].deviation

    def judge(data: bytes) -> None:
        what = deviation(data)
        if what is not None:
            raise AssertionError(what)

    atheris.Setup([name, *options], judge)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
