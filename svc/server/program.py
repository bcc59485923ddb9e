"""Gunicorn, started in code on a socket that listens already."""

from __future__ import annotations

import socket
from collections.abc import Callable
from wsgiref.types import WSGIApplication

from gunicorn.app.base import Application

from svc.bootstrap import Shared
from svc.server import gunicorn_settings

# Makes the application in a worker's process, from what all workers have in common.
MakeApplication = Callable[[Shared | None], WSGIApplication]


class Program(Application):  # type: ignore[misc]
    """A master process and its workers; `run` serves until a signal stops it."""

    def __init__(self, listener: socket.socket, workers: int, make: MakeApplication) -> None:
        """`workers` is the number of processes that answer requests."""
        # From here on the descriptor is gunicorn's to close.
        self._bind = f"fd://{listener.detach()}"
        self._workers = workers
        self._make = make
        super().__init__()

    def load_config(self) -> None:
        """Called by gunicorn: read the settings that `gunicorn wsgi:app` reads too."""
        self.load_config_from_module_name_or_filename(f"python:{gunicorn_settings.__name__}")
        self.cfg.set("bind", self._bind)
        self.cfg.set("workers", self._workers)

    def load(self) -> WSGIApplication:
        """Called by gunicorn in each worker: the services start after the fork."""
        return self._make(gunicorn_settings.shared)
