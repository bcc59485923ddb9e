"""The process that deletes decisions and kept answers that are older than they may be."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial

from svc.bootstrap import Shared
from svc.settings import Settings
from svc.store import TOGETHER, Database, Retentions, Spool, Sweeping

# After each step nothing is deleted for so many times as long as it took, and for so many seconds
# at the least.
REST = 3.0
LEAST_REST_S = 0.01

# The rest after some wordings were deleted, which takes some hundredths of a second.
WORDINGS_REST_S = 0.1

# Who stores decisions waits for a step: after one that took longer, in seconds, the next deletes
# half as much, but so many at the least.
LONG_S = 0.01
LEAST = 10

# After so many steps what they wrote is moved from the log into the file.
LOG_MOVED_EVERY = 10


def sweep(settings: Settings, shared: Shared, stop: threading.Event) -> None:
    """Delete what is too old now, until nothing is or it is to stop.

    Of several processes, also of several servers, one does so, and the others have nothing to do;
    each deletes kept answers.
    Raises `SettingsError` and `StorageError`.
    """
    database = Database.open(settings.db, turn=shared.write_lock, served=shared.file)
    try:
        sweeping = Sweeping(database)
        if projects := [one.project for one in Retentions(database).all()]:
            with Spool(database, settings.db, settings.master_key).sweeping() as alone:
                if alone:
                    _sweep(sweeping, database, projects, stop)
        _repeat(sweeping.kept_answers, database, stop)
        if not stop.is_set():
            sweeping.wordings(lambda: not stop.wait(WORDINGS_REST_S))
    finally:
        database.close()


def _sweep(
    sweeping: Sweeping, database: Database, projects: list[str], stop: threading.Event
) -> None:
    for project in projects:
        _repeat(partial(sweeping.decisions, project), database, stop)
        _repeat(partial(sweeping.job_rows, project), database, stop)


def _repeat(step: Callable[[int], bool], database: Database, stop: threading.Event) -> None:
    """Take a step as long as there is something to delete, with rests between."""
    most = TOGETHER
    for count in itertools.count(1):
        began = time.monotonic()
        if stop.is_set() or not step(most):
            return
        took_s = time.monotonic() - began
        most = max(LEAST, most // 2) if took_s > LONG_S else min(TOGETHER, most + 1)
        if count % LOG_MOVED_EVERY == 0:
            # Who stores decisions would have to, and wait for the disk.
            database.move_log()
        stop.wait(max(LEAST_REST_S, REST * took_s))
