"""The process that deletes decisions and kept answers that are older than they may be."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from functools import partial

from svc.bootstrap import Shared
from svc.settings import Settings
from svc.store import TOGETHER, Database, Retentions, Spool, Step, Sweeping

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

# So many steps are taken of one project before it is the turn of the next.
STEPS_IN_TURN = 20

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
        _Deletion(sweeping.kept_answers, database, stop).go_on()
        if not stop.is_set():
            sweeping.wordings(lambda: not stop.wait(WORDINGS_REST_S))
    finally:
        database.close()


def _sweep(
    sweeping: Sweeping, database: Database, projects: list[str], stop: threading.Event
) -> None:
    """Delete what is old of all projects, some of each in turn: of one there may always be more."""
    waiting = deque[_Deletion]()
    for project in projects:
        waiting.append(_Deletion(partial(sweeping.decisions, project), database, stop))
        waiting.append(_Deletion(sweeping.job_rows(project), database, stop))
    while waiting:
        deletion = waiting.popleft()
        if deletion.go_on(STEPS_IN_TURN):
            waiting.append(deletion)


class _Deletion:
    """Steps that delete something as long as there is some, with rests between."""

    def __init__(self, step: Step, database: Database, stop: threading.Event) -> None:
        self._step, self._database, self._stop = step, database, stop
        self._most, self._taken = TOGETHER, 0

    def go_on(self, steps: float = math.inf) -> bool:
        """Take so many steps at most; whether there may be more to delete."""
        last = self._taken + steps
        while self._taken < last:
            began = time.monotonic()
            if self._stop.is_set() or not self._step(self._most):
                return False
            self._taken += 1
            took_s = time.monotonic() - began
            fewer, more = max(LEAST, self._most // 2), min(TOGETHER, self._most + 1)
            self._most = fewer if took_s > LONG_S else more
            if self._taken % LOG_MOVED_EVERY == 0:
                # Who stores decisions would have to, and wait for the disk.
                self._database.move_log()
            self._stop.wait(max(LEAST_REST_S, REST * took_s))
        return True
