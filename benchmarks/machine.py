"""On what the figures were measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import find

PACKAGES = ("flask", "gunicorn", "marshmallow", "requests", "urllib3")


def description() -> list[str]:
    """Lines that name the processor, memory, system and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [
        f"{_field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, "
        f"{_memory_gb():.0f} GB memory, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, {packages}",
        f"nginx {_tool('nginx', '-v')}, wrk {_tool('wrk', '-v')}",
    ]


def _field(path: str, name: str) -> str:
    """The first value of a `name: value` line."""
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path(path).read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def _memory_gb() -> float:
    return int(_field("/proc/meminfo", "MemTotal").split()[0]) / 1024**2


def _tool(name: str, flag: str) -> str:
    path = find(name)
    if path is None:
        return "absent"
    done = subprocess.run([path, flag], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else "unknown"
