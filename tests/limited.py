"""Scripts in processes that may have few threads and further processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ONLY_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become a user who has no threads yet"
)


def limit_to(most: int, later: int | None = None) -> None:
    """Become a user who may have so many threads and processes; `later` is the most to set then.

    What the limit counts are those of a user, and it does not bind root.
    """
    user = 100_000 + os.getpid()
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most if later is None else later))
    os.setgid(user)
    os.setuid(user)


def errors_of(script: str) -> str:
    """What a script writes to standard error, which has to end well."""
    command = [sys.executable, "-c", script]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr
