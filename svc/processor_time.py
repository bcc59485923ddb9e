"""The seconds of a processor that a thread has used, also through others that worked for it."""

from __future__ import annotations

import threading
import time


class _Lent(threading.local):
    """What other threads used for this one."""

    seconds = 0.0


_lent = _Lent()


def used_s() -> float:
    """Seconds since some time before, of which only the difference of two means something."""
    return time.thread_time() + _lent.seconds


def add(seconds: float) -> None:
    """Another thread used so many seconds of a processor for this one."""
    _lent.seconds += seconds
