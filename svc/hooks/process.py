"""The process that tells hooks what happens."""

from __future__ import annotations

import logging
import threading
import time

from svc.bootstrap import Shared
from svc.hooks.delivering import Deliveries
from svc.hooks.events import of_alarm
from svc.hooks.noticing import Noticing
from svc.hooks.sending import Sender
from svc.learning import Reporter
from svc.settings import Settings
from svc.store import (
    Budgets,
    Database,
    HookAlarms,
    HookEvents,
    Hooks,
    Labels,
    QuestionVersions,
    ReviewDue,
    Spool,
    StorageError,
    Weeks,
)

# The longest pauses between two looks at what is due, at what a few rows tell, and at reports, in
# seconds.
TICK_S = 0.25
LOOK_EVERY_S = 2.0
CLOSE_LOOK_EVERY_S = 60.0

# So long what is under way may end when the process is told to stop. The rest is sent again.
LAST_S = 2.0

log = logging.getLogger(__name__)


def tell(settings: Settings, shared: Shared, stop: threading.Event) -> None:
    """Tell hooks what happens, as long as there are hooks, until it is to stop.

    Of several processes, also of several servers, one does so, and the others have nothing to do.
    Raises `SettingsError` and `StorageError`.
    """
    database = Database.open(settings.db, turn=shared.write_lock, served=shared.file)
    try:
        hooks = Hooks(database, settings.master_key)
        if hooks.wanted():
            with Spool(database, settings.db, settings.master_key).telling() as alone:
                if alone:
                    _Desk(database, hooks).run(stop)
    finally:
        database.close()


class _Desk:
    """Looks and sends in turn."""

    def __init__(self, database: Database, hooks: Hooks) -> None:
        events, versions = HookEvents(database), QuestionVersions(database)
        reporter = Reporter(versions, Labels(database), Weeks(database))
        alarms, due = HookAlarms(database, of_alarm), ReviewDue(database)
        self._hooks, self._events = hooks, events
        self._noticing = Noticing(hooks, events, alarms, Budgets(database), due, versions, reporter)
        self._deliveries = Deliveries(hooks, events, Sender())
        self._look_at = self._look_closely_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Until it is to stop, or there are no hooks any more."""
        try:
            while not stop.is_set() and self._hooks.wanted():
                try:
                    self._turn()
                except StorageError as error:
                    log.error("hooks wait: %s", error.message)
                    stop.wait(LOOK_EVERY_S)
                self._deliveries.rest(TICK_S)
        finally:
            self._deliveries.close(LAST_S)

    def _turn(self) -> None:
        now = time.monotonic()
        if now >= self._look_at:
            self._noticing.look()
            if now >= self._look_closely_at:
                self._look_closely_at = now + CLOSE_LOOK_EVERY_S
                self._noticing.look_closely()
                self._events.forget_old()
            self._noticing.tell()
            self._look_at = now + LOOK_EVERY_S
        self._deliveries.start()
