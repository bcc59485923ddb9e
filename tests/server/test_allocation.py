from __future__ import annotations

import platform
import subprocess
import sys

import pytest

HEAD = """
import threading
from pathlib import Path
from svc.server.allocation import LARGE_BYTES, return_freed_memory

def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

return_freed_memory()
"""

LARGE_BLOCKS = """
del (first := [bytearray(4 * LARGE_BYTES)])[:]  # by itself the threshold would rise to this
before = memory()
blocks = [bytearray(b"x") * (2 * LARGE_BYTES) for _ in range(20)]
kept = bytearray(b"x") * 100_000
blocks.clear()
print(memory() - before < 4 * LARGE_BYTES)
"""

BLOCKS_OF_THREADS = """
kept, turn, started = [], threading.Lock(), threading.Barrier(8)

def work():
    started.wait()
    with turn:
        blocks = [bytearray(b"x") * 10_000 for _ in range(4_000)]
        kept.append(blocks.pop())

before = memory()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# Those of one thread, and as many once more.
print(memory() - before < 80_000_000)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
@pytest.mark.parametrize("program", [LARGE_BLOCKS, BLOCKS_OF_THREADS], ids=["large", "threads"])
def test_what_is_freed_goes_back_to_the_system_or_to_the_next_thread(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "True\n"
