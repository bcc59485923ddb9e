"""The process that tells hooks what happens."""

from __future__ import annotations

import logging
import threading
import time

from svc.bootstrap import Shared
from svc.hooks.delivering import Deliveries
from svc.hooks.looking import Looking
from svc.hooks.noticing import Noticing
from svc.hooks.sending import Sender
from svc.settings import Settings
from svc.store import Database, HookEvents, Hooks, Spool, StorageError

# The longest pause between two looks at what is to be sent, and the one after the database failed,
# both in seconds.
TICK_S = 0.25
FAILED_S = 2.0

# After what looking took of the processor it rests for so many times as long: thousands of events
# that wait, or jobs that have ended, take a tenth of a second or more.
PAUSES = 3.0

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
        self._hooks, events = hooks, HookEvents(database)
        self._looking = Looking(Noticing.of(database, hooks, events), events.forget_old)
        self._deliveries = Deliveries(hooks, events, Sender())

    def run(self, stop: threading.Event) -> None:
        """Until it is to stop, or there are no hooks any more."""
        try:
            while not stop.is_set() and self._hooks.wanted():
                began, pause_s = time.thread_time(), FAILED_S
                try:
                    self._looking.look()
                    self._deliveries.start()
                    pause_s = PAUSES * (time.thread_time() - began)
                except StorageError as error:
                    log.error("hooks wait: %s", error.message)
                self._deliveries.rest(TICK_S)
                stop.wait(pause_s)
        finally:
            self._deliveries.close(LAST_S)
