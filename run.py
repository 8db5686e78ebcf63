"""Run the frozen suite: `python run.py --suite frozen --out DIR`; see `python run.py --help`."""

import sys

from harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
