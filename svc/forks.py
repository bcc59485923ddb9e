"""A worker that is told to stop before it can hear of it is told once it can.

Until a new worker has handlers of its own it has its master's, which would take the signal for
the master's own and lose it.
"""

from __future__ import annotations

import os
import signal
from functools import partial

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def let_signals_through() -> None:
    """Let this thread have the signals that stop, those that came before too."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def hold_signals() -> None:
    """From now on let no process that this one forks have them before it lets them through."""
    let_signals_through()  # this process may be such a fork itself, that became a master
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, STOPS),
        after_in_parent=let_signals_through,
    )
