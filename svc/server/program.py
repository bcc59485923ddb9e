"""Gunicorn, started in code on a socket that listens already."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from wsgiref.types import WSGIApplication

from gunicorn.app.base import Application
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from svc.bootstrap import Shared
from svc.errors import SvcError
from svc.server import gunicorn_settings

log = logging.getLogger(__name__)

# Makes the application in a worker's process, from what all workers have in common.
MakeApplication = Callable[[Shared | None], WSGIApplication]

# Works in a process of its own, until there is nothing to do or the event is set.
Work = Callable[[Shared, threading.Event], None]


class Program(Application):  # type: ignore[misc]
    """A master process and its workers; `run` serves until a signal stops it."""

    def __init__(
        self,
        listener: socket.socket,
        workers: int,
        make: MakeApplication,
        beside: Mapping[str, Work] | None = None,
    ) -> None:
        """`workers` is the number of processes that answer requests.

        What is done `beside` them is by the names of its processes, see `Keeper`.
        """
        gunicorn_settings.beside = beside or {}
        # From here on the descriptor is gunicorn's to close.
        self._bind = f"fd://{listener.detach()}"
        self._workers = workers
        self._make = make
        super().__init__()

    def run(self) -> None:
        """Serve until a signal stops the master, or a worker cannot start; ends this process."""
        _Master(self).run()

    def load_config(self) -> None:
        """Called by gunicorn: read the settings that `gunicorn wsgi:app` reads too."""
        self.load_config_from_module_name_or_filename(f"python:{gunicorn_settings.__name__}")
        self.cfg.set("bind", self._bind)
        self.cfg.set("workers", self._workers)

    def load(self) -> WSGIApplication:
        """Called by gunicorn in each worker: the services start after the fork.

        What cannot be used in spite of the checks before the start ends the server with one line.
        """
        try:
            return self._make(gunicorn_settings.shared)
        except SvcError as error:
            log.error("the server ends: %s", error)
            sys.exit(Arbiter.APP_LOAD_ERROR)


class _Master(Arbiter):  # type: ignore[misc]
    """Gunicorn's master, which ends in order however many workers cannot start."""

    _ending = False

    def stop(self, graceful: bool = True) -> None:
        self._ending = True
        super().stop(graceful)

    def reap_workers(self) -> None:
        try:
            super().reap_workers()
        except HaltServer:
            # The server ends already, since an earlier worker could not start. Raised once more,
            # it would end the master with a traceback, before it has ended the other workers.
            if not self._ending:
                raise
