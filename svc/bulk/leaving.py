"""Deletes what an ended job has left: calls and replies here, files and batches at providers."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from svc.bootstrap import Services
from svc.bulk.batch_apis import BatchApis
from svc.bulk.book import Book
from svc.bulk.job_run import LONGEST_PAUSE_S, OUTAGE_PAUSE_S
from svc.bulk.sending import Sending, readable
from svc.bulk.stripping import strip
from svc.store import UnknownJob, job_of

# What is left at a provider is tried to be deleted for so long, in seconds.
LEAVING_S = 86_400.0

# What a provider may take for each of it, in seconds: many others may wait behind one that hangs.
EXCHANGE_S = 10.0

# The threads that delete books, however many jobs have ended, and those of them that ask one
# provider.
AT_ONCE, OF_PROVIDER = 4, 2

log = logging.getLogger(__name__)


# Says whether a provider of this name may be asked inside its block.
Asking = Callable[[str], AbstractContextManager[bool]]


class Leaving:
    """Deletes what many ended jobs have left, in a few threads; each is tried again until it is."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # When each book is to be tried next, and the pause after that.
        self._due: dict[str, tuple[float, float]] = {}
        # The books that are tried now.
        self._tried: set[str] = set()
        # Of each book, what says that its job needs it no more.
        self._ended: dict[str, Callable[[], bool]] = {}
        self._threads: list[threading.Thread] = []
        # How many threads ask each provider.
        self._asked: Counter[str] = Counter()
        self._changed, self._closed = threading.Condition(), threading.Event()

    def add(self, name: str, has_ended: Callable[[], bool]) -> None:
        """Delete a book by its name, once `has_ended` says that its job needs it no more."""
        with self._changed:
            if self._closed.is_set() or name in self:
                return
            # In any order, as a process may end before it comes to those behind slow ones.
            self._due[name] = (random.random(), OUTAGE_PAUSE_S)
            self._ended[name] = has_ended
            self._changed.notify()
            if len(self._threads) < AT_ONCE:
                self._begin_thread()

    def __contains__(self, name: str) -> bool:
        return name in self._due or name in self._tried

    def close(self, seconds: float) -> None:
        """End the threads, and wait so long for them; the next start goes on."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
        give_up_at = time.monotonic() + seconds
        for thread in list(self._threads):
            thread.join(max(0.0, give_up_at - time.monotonic()))

    def _begin_thread(self) -> None:
        thread = threading.Thread(target=self._work, name="svc-leaving", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system allows no further thread; another one does it, or the next start.
            return
        self._threads.append(thread)

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            name, pause_s = taken
            done = self._is_done(name)
            with self._changed:
                self._tried.discard(name)
                if done:
                    del self._ended[name]
                else:
                    later = min(LONGEST_PAUSE_S, 2 * pause_s)
                    self._due[name] = (time.monotonic() + pause_s, later)

    def _take(self) -> tuple[str, float] | None:
        """The next book that is due, and its pause; None where there is none, or at the end."""
        with self._changed:
            while self._due and not self._closed.is_set():
                name = min(self._due, key=lambda one: self._due[one])
                due, pause_s = self._due[name]
                left_s = due - time.monotonic()
                if left_s <= 0:
                    del self._due[name]
                    self._tried.add(name)
                    return name, pause_s
                self._changed.wait(left_s)
            self._threads.remove(threading.current_thread())
        return None

    def _is_done(self, name: str) -> bool:
        try:
            return self._ended[name]() and leave(self._services, name, self._asking)
        except Exception as error:  # noqa: BLE001 - it is tried again with the next start
            log.error("what is left of %s is deleted later: %s", name, type(error).__name__)
            return True

    @contextmanager
    def _asking(self, provider: str) -> Iterator[bool]:
        """Whether it may be asked in the block, which not all threads do of one provider."""
        with self._changed:
            may = self._asked[provider] < OF_PROVIDER
            self._asked[provider] += may
        try:
            yield may
        finally:
            with self._changed:
                self._asked[provider] -= may


def leave(services: Services, job_id: str, asking: Asking) -> bool:
    """Delete what a book that no job needs holds at once, and what its providers have of it.

    `job_id` is the id of its job, or what stands for it where the book was put aside. `asking` says
    whether a provider may be asked inside its block. Returns whether no more is to be done now;
    where a provider is not configured, the next start goes on.
    """
    folder = services.spool.book(job_id)
    if not folder.exists():
        return True
    strip(folder)
    book = Book(folder, {}, b"")
    files, damaged = book.readable()
    names = {file.provider for file in files}
    with closing(BatchApis(services, EXCHANGE_S)) as opened:
        apis = opened.still_there(names, _project(services, job_id))
        sendings = readable([file for file in files if file.provider in apis], apis)
        there = [one for one in sendings if one is not None]
        begun_at = _begun_at(folder)
        left = _left(there, asking, begun_at)
    is_late = time.time() > begun_at + LEAVING_S
    if left and not is_late:
        return False
    if damaged or len(there) < len(sendings):
        log.warning("%s is damaged: its provider may still have svc-%s", folder, book.run)
    if left:
        log.warning("what an ended job left at its provider stays there: svc-%s", book.run)
    for name in sorted(names - apis.keys()):
        log.warning("%s, which is not configured, may still have svc-%s", name, book.run)
    # A provider that is not configured may be so again with the next start, which needs the book.
    if is_late or not names - apis.keys():
        book.remove()
    return True


def _left(sendings: Iterable[Sending], asking: Asking, since: float) -> list[Sending]:
    """Those of which something is left.

    A provider that hangs is asked about none after that. Where one may not be asked now, the others
    wait as well, since to look for a batch in a list may take long.
    """
    left: list[Sending] = []
    hanging: set[str] = set()
    # Those that have to be looked for in a list come last.
    ordered = sorted(sendings, key=lambda one: one.unclear)
    for number, one in enumerate(ordered):
        began, provider = time.monotonic(), one.file.provider
        with asking(provider) as may:
            if not may:
                return left + ordered[number:]
            if provider in hanging or not one.give_up(since):
                left.append(one)
        if time.monotonic() - began >= EXCHANGE_S:
            hanging.add(provider)
    return left


def _project(services: Services, name: str) -> str:
    try:
        return services.jobs.get(job_of(name)).project
    except UnknownJob:
        return ""


def _begun_at(folder: Path) -> float:
    """When it was begun to delete it, in seconds since the epoch."""
    marker = folder / "ended"
    if not marker.exists():
        marker.touch()
    return marker.stat().st_mtime
