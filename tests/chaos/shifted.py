"""`svc` under a clock that jumps: `python -m tests.chaos.shifted <file> serve ...`.

The file holds a double in the machine's order: the seconds that the wall clock is wrong by.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path

OFFSET = struct.Struct("d")


def shift(path: str) -> None:
    """Shift `time.time` of this process and of those it forks; before `svc` is imported."""
    with open(path, "rb") as file:
        shared = mmap.mmap(file.fileno(), OFFSET.size, access=mmap.ACCESS_READ)
    true_time = time.time
    time.time = lambda: true_time() + OFFSET.unpack_from(shared)[0]


def set_offset(path: Path, seconds: float) -> None:
    """Let the clock jump, in every process that reads `path`."""
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.write(OFFSET.pack(seconds))


if __name__ == "__main__":
    shift(sys.argv.pop(1))
    from svc.cli.main import main

    main()
