"""Deletes what an ended job has left: calls and replies here, files and batches at providers."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from pathlib import Path

from svc.bootstrap import Services
from svc.bulk.batch_apis import BatchApis
from svc.bulk.book import Book
from svc.bulk.job_run import LONGEST_PAUSE_S, OUTAGE_PAUSE_S
from svc.bulk.sending import readable
from svc.bulk.stripping import strip
from svc.store import UnknownJob, job_of

# What is left at a provider is tried to be deleted for so long, in seconds.
LEAVING_S = 86_400.0

log = logging.getLogger(__name__)


def leave(services: Services, job_id: str, closed: threading.Event) -> None:
    """Delete what a book that no job needs holds at once, and what its providers have of it.

    `job_id` is the id of its job, or what stands for it where the book was put aside.
    Returns before that is done when the process is `closed`, or a provider is not configured; the
    next one goes on.
    """
    folder = services.spool.book(job_id)
    strip(folder)
    book = Book(folder, {}, b"")
    files, damaged = book.readable()
    names = {file.provider for file in files}
    with closing(BatchApis(services)) as opened:
        apis = opened.still_there(names, _project(services, job_id))
        sendings = readable([file for file in files if file.provider in apis], apis)
        left = [one for one in sendings if one is not None]
        if damaged or len(left) < len(sendings):
            log.warning("%s is damaged: its provider may still have svc-%s", folder, book.run)
        give_up_at, pause_s = _begun_at(folder) + LEAVING_S, OUTAGE_PAUSE_S
        while left := [one for one in left if not one.give_up()]:
            if time.time() > give_up_at:
                log.warning("what an ended job left at its provider stays there: svc-%s", book.run)
                break
            if closed.wait(pause_s):
                return
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        for name in sorted(names - apis.keys()):
            log.warning("%s, which is not configured, may still have svc-%s", name, book.run)
        if names - apis.keys() and time.time() <= give_up_at:
            # It may be again with the next start.
            return
    book.remove()


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
