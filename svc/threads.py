"""Threads of a process for one kind of work, also where the system allows no further thread."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from svc.logs import Sparingly

log = logging.getLogger(__name__)


def lacks_thread(error: RuntimeError) -> bool:
    """Whether it says that the system allows no further thread, which has no class of its own."""
    return str(error) == "can't start new thread"


class Threads(ThreadPoolExecutor):
    """A pool whose work waits for the threads that there are where no further one can be started.

    The one it is made from has queued the work by then, and raises an error all the same.
    """

    def __init__(self, most: int, name: str) -> None:
        """At most `most` threads, the first of which is there from the start.

        Raises `RuntimeError` where the system does not allow it.
        """
        super().__init__(most, thread_name_prefix=name)
        self._told = Sparingly(1)
        self.submit(_nothing)

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


def _nothing() -> None:
    """The work of a thread that is to be there."""
