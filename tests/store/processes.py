"""Starts `child.py`, and ends it whatever happens."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60


@contextlib.contextmanager
def child(command: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.child", command, str(path), *arguments],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], send: str = "") -> list[str]:
    """What it prints until its end, which is to be a good one."""
    output, _ = process.communicate(send, timeout=TIMEOUT_S)
    assert process.returncode == 0
    return output.splitlines()
