"""Signals around a fork; the script forks, so it has a process of its own."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, time
from svc.server import forks

def masters(number, frame):
    os.write(1, b"lost ")

signal.signal(signal.SIGTERM, masters)
forks.block_stop_signals_in_forks()
child = os.fork()
if child == 0:
    while signal.SIGTERM not in signal.sigpending():
        time.sleep(0.001)
    signal.signal(signal.SIGTERM, lambda number, frame: os.write(1, b"heard "))
    forks.unblock_stop_signals()
    os._exit(0)
os.kill(child, signal.SIGTERM)
os.waitpid(child, 0)
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_process_that_is_told_to_stop_at_its_birth_hears_of_it_later() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "heard lost "  # by the child, then by the parent, which is not held
