"""Keeps a processor busy for as long as a test wants."""

from __future__ import annotations

import time


def use_processor(seconds: float) -> None:
    """Have this thread use so many seconds of a processor."""
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass
