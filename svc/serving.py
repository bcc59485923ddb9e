"""How gunicorn serves: its settings, by gunicorn's own names, its hooks, and what is checked first.

`svc serve` and `gunicorn wsgi:app` (by way of gunicorn.conf.py) both read this module.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from svc import forks, limits
from svc.addresses import is_loopback
from svc.bootstrap import Shared
from svc.errors import SettingsError
from svc.providers.catalog import build_catalog
from svc.settings import Settings
from svc.store.database import Database
from svc.store.keys import Keys

CLOSE_S = 5  # seconds to stop threads and write what is queued, after the shutdown grace

# Settings of gunicorn; https://docs.gunicorn.org/en/stable/settings.html
worker_class = "svc.worker.threads.Worker"
workers = 1
threads = limits.REQUEST_THREADS
worker_connections = 8 * limits.REQUEST_THREADS  # kept-alive ones that are idle count too
keepalive = 75  # seconds; longer than usual clients and proxies keep theirs
timeout = int(limits.REQUEST_DEADLINE_S)  # seconds without a sign of life from the whole worker
graceful_timeout = limits.SHUTDOWN_GRACE_S + CLOSE_S  # seconds, in the master
control_socket_disable = True
logger_class = "svc.serving.Log"
loglevel = "warning"
accesslog = None  # every request has its line in our own log
errorlog = None


shared: Shared | None = None  # what all workers have in common, once there is a master


def on_starting(server: Arbiter) -> None:
    """In the master, before anything else."""
    global shared
    if server.cfg.is_ssl:
        sys.exit("Error: certfile: this server speaks plain HTTP; deploy/ has a TLS front for it")
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)  # our numbers lie in memory, not in files
    shared = Shared()
    forks.hold_signals()


def when_ready(server: Arbiter) -> None:
    """In the master, before the first worker: a graceful Ctrl-C, and memory to share.

    A second Ctrl-C is the quick stop that gunicorn makes of the first.
    """

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, server.signal)
        server.signal(signal.SIGTERM, frame)

    signal.signal(signal.SIGINT, interrupt)
    gc.collect()
    gc.freeze()  # collecting writes to each object, and so would copy every page that workers share


def post_worker_init(worker: ThreadWorker) -> None:
    """In a worker, when its application is built.

    Ctrl-C reaches every process of the terminal; the worker waits for the master's word. What is
    under way gets the whole grace, so the master has to wait a little longer than the worker.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.cfg.set("graceful_timeout", limits.SHUTDOWN_GRACE_S)


def worker_exit(server: Arbiter, worker: ThreadWorker) -> None:
    """In a worker that ends: stop the services and write what is queued."""
    app = getattr(worker, "wsgi", None)  # none, when the application could not be built
    if app is not None:
        app.extensions["svc"].close()


class Log(Logger):  # type: ignore[misc]
    """Gunicorn's log as part of ours."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.propagate = True


def resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """The address families and socket addresses of a host name or IP address, one or more.

    Raises `SettingsError`.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise SettingsError(f"cannot listen on {host!r}: there is no such host") from None
    return [(family, address) for family, _, _, _, address in found]


def check(settings: Settings, addresses: Iterable[str]) -> None:
    """Try what a server needs before it starts; `addresses` are the IP addresses it listens on.

    Raises `SettingsError` for a provider or database that cannot be used, and for an address
    that other machines reach while there are no keys.
    """
    build_catalog(settings)
    database = Database.open(settings.db)
    try:
        guarded = settings.no_auth or Keys(database).exist()
    finally:
        database.close()
    public = [address for address in addresses if not is_loopback(address)]
    if public and not guarded:
        raise SettingsError(
            f"{public[0]} can be reached from other machines and there are no API keys; "
            "make one with `svc keys create --name <who>`, or pass --no-auth (SVC_NO_AUTH=1)"
        )
