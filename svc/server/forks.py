"""What a worker hears of its master: that it has to stop, and that the master is gone.

A worker that is told to stop before it can hear of it is told once it can. Until a new worker has
handlers of its own it has its master's, which would take the signal for the master's own and lose
it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from functools import partial

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

# The exit code of a worker whose master is gone.
ORPHANED = 1

# From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def end_with_master(master: int) -> None:
    """Have the system kill this process when its parent, the process `master`, ends.

    The system does so however busy or stopped this process is. Where it cannot, this does nothing
    and the worker has to look whether its parent is still `master`.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != master:
        # It went away before the system knew of the wish.
        os._exit(ORPHANED)


def name_process(name: str) -> None:
    """Have tools of the system show this process by a name, of 15 ASCII characters at most."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def unblock_stop_signals() -> None:
    """Let this thread have the signals that stop, those that came before too."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def block_stop_signals_in_forks() -> None:
    """From now on a process that this one forks gets them only once it unblocks them."""
    # This process may be such a fork itself, which became a master.
    unblock_stop_signals()
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, STOP_SIGNALS),
        after_in_parent=unblock_stop_signals,
    )
