"""Names the machine, the day and the versions that figures belong to."""

import datetime
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from .results import Machine

DISTRIBUTIONS = (
    "httpx-sse", "httpx", "openai", "anthropic", "sseclient-py", "aiohttp-sse-client2", "aiohttp", "requests-sse",
    "requests", "jiter",
)  # fmt: skip


def machine() -> Machine:
    """Describe this machine; raise PackageNotFoundError where a peer is not installed."""
    return Machine(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={name: version(name) for name in DISTRIBUTIONS},
    )


def _processor() -> str:
    """Name the processor as Linux does, or as the platform module does elsewhere."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.*)$", path.read_text("utf-8"), re.MULTILINE) if path.exists() else None
    return found[1].strip() if found else platform.processor() or "an unnamed processor"
