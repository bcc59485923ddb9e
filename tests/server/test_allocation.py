from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
from pathlib import Path
from svc.server.allocation import LARGE_BYTES, return_large_blocks

def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

return_large_blocks()
del (first := [bytearray(4 * LARGE_BYTES)])[:]  # by itself the threshold would rise to this
before = memory()
blocks = [bytearray(b"x") * (2 * LARGE_BYTES) for _ in range(20)]
kept = bytearray(b"x") * 100_000
blocks.clear()
print(memory() - before < 4 * LARGE_BYTES)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
def test_large_blocks_go_back_to_the_system() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "True\n"
