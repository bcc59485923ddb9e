"""A worker that is told to stop before it can hear of it is told once it can.

Until a new worker has handlers of its own it has its master's, which would take the signal for
the master's own and lose it.
"""

from __future__ import annotations

import os
import signal
from functools import partial

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


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
