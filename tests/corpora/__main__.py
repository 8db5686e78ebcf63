"""Fetches the corpora that are not committed: `make corpora` calls it."""

import sys

from .json_suite import FILES, FOLDER, CorpusError, fetch

try:
    fetch()
except CorpusError as error:
    sys.exit(str(error))
print(f"{FILES} files in {FOLDER}")
