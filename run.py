"""Run the frozen suite: `python run.py --suite frozen --out DIR`; see `python run.py --help`."""

import gc
import os
import sys

gc.set_threshold(100_000)  # importing a server makes many objects and no garbage

from harness.cli import main  # noqa: E402

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # all is closed by now; taking the loaded libraries apart would cost ten trials
