"""Threads of a process for one kind of work, also where the system allows no further thread."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from svc.logs import Sparingly

log = logging.getLogger(__name__)


class Threads(ThreadPoolExecutor):
    """A pool whose work waits for the threads that there are where no further one can be started.

    The one it is made from has queued the work by then, and raises an error all the same.
    """

    def __init__(self, most: int, name: str = "", begun: int = 1) -> None:
        """At most `most` threads, of which the first `begun` are started now, if the system does.

        Raises `RuntimeError` where it starts none.
        """
        super().__init__(most, thread_name_prefix=name)
        self._told = Sparingly(1)
        # None of them is idle while it waits, so that each submission starts another.
        go = threading.Event()
        try:
            for _ in range(begun):
                self.submit(go.wait)
        finally:
            go.set()

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
            if self._told.take():
                log.error(
                    "the system allows no further thread: work waits for the %d that there are",
                    len(self._threads),
                )
