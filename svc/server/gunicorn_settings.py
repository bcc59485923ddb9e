"""Gunicorn's settings and hooks, by gunicorn's own names.

`svc serve` and `gunicorn wsgi:app` (by way of gunicorn.conf.py) both read this module. The settings
are described at https://docs.gunicorn.org/en/stable/settings.html; times are in seconds.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from svc import limits
from svc.bootstrap import Shared
from svc.server import forks
from svc.server.allocation import return_freed_memory
from svc.server.keeper import TRACES, Keeper
from svc.server.tasks import allowed_here, request_threads
from svc.telemetry import Line

# After the shutdown grace, for stopping threads and writing what is queued.
CLOSE_S = 5

worker_class = "svc.server.worker.Worker"
workers = 1
threads = limits.REQUEST_THREADS
# Connections that are kept alive and idle count too.
worker_connections = 8 * limits.REQUEST_THREADS
# Usual clients and proxies keep a connection for a shorter time, so they are the ones to close it.
keepalive = 75
# A worker that gives no sign of life for so long is replaced.
timeout = int(limits.REQUEST_DEADLINE_S)
# This is the master's patience; `post_worker_init` sets the worker's.
graceful_timeout = limits.SHUTDOWN_GRACE_S + CLOSE_S
control_socket_disable = True
# No header of a request says where its path begins, not even one from this machine.
forwarder_headers = ""
logger_class = "svc.server.gunicorn_settings.Log"
loglevel = "warning"
# Every request has its line in our own log.
accesslog = None
errorlog = None

# What all workers have in common, once there is a master.
shared: Shared | None = None

# What processes beside the workers do, by their names; the event tells them to stop.
beside: Mapping[str, Callable[[Shared, threading.Event], None]] = {}

_keeper: Keeper | None = None

# With these the system says that it allows no further process, or has no memory for one.
_NO_PROCESS = (errno.EAGAIN, errno.ENOMEM)

# What the master does that takes processes, and what is said where there was none.
_WITHOUT_PROCESS = {
    "manage_workers": "what has ended is begun again later",
    "reload": "some workers are still those before the reload",
    "reexec": "no other master was begun",
}

log = logging.getLogger(__name__)


def on_starting(server: Arbiter) -> None:
    """In the master, before anything else."""
    global shared
    if server.cfg.is_ssl:
        sys.exit("Error: certfile: this server speaks plain HTTP; deploy/ shows a TLS proxy")
    # It would have the metrics kept in files; ours are in memory that the processes share.
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
    return_freed_memory()
    threads = request_threads(server.cfg.workers, allowed_here())
    shared = Shared(Line() if TRACES in beside else None, threads)
    on_reload(server)
    forks.block_stop_signals_in_forks()


def on_reload(server: Arbiter) -> None:
    """In the master, with new settings: workers have the threads that the system has room for."""
    if shared is not None:
        server.cfg.set("threads", min(server.cfg.threads, shared.request_threads))


def when_ready(server: Arbiter) -> None:
    """In the master, before the first worker: a graceful Ctrl-C, and memory to share.

    A second Ctrl-C is the quick stop that gunicorn makes of the first. The process that keeps jobs
    running is told to stop at once, since it has to finish rows while workers finish requests.
    """

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, keeper_first(Keeper.kill, note))
        terminate(signal.SIGTERM, frame)

    def note(number: int, frame: object) -> None:
        server.signal(number, frame)

    terminate = keeper_first(Keeper.stop, note)
    _start_keeper(server)
    go_on_without_processes(server)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGQUIT, keeper_first(Keeper.kill, note))
    gc.collect()
    # A collection writes to every object it visits, and so would copy each page that workers share.
    gc.freeze()


def keeper_first(
    tell: Callable[[Keeper], None], handler: Callable[[int, Any], None]
) -> Callable[[int, Any], None]:
    """A handler of a signal that tells the keeper, where there is one, before it does the rest."""

    def handle(number: int, frame: Any) -> None:
        if _keeper is not None:
            tell(_keeper)
        handler(number, frame)

    return handle


def renew_with_workers(keeper: Keeper, server: Arbiter) -> None:
    """Look at the keeper when the main loop looks whether workers are missing.

    That is each second, and when the system tells of a child. Not in the handler of the signal:
    that may interrupt a fork of the master, whose locks a second one within it would wait for
    without end.
    """
    manage_workers = server.manage_workers

    def manage() -> None:
        manage_workers()
        keeper.renew()

    server.manage_workers = manage


def go_on_without_processes(server: Arbiter) -> None:
    """Have the master go on where the system allows no further process, and say what is not done.

    The next look tries again, and the first process that is allowed is a worker's.
    """
    for name, undone in _WITHOUT_PROCESS.items():
        setattr(server, name, _forgiving(getattr(server, name), undone))


def _forgiving(act: Callable[[], None], undone: str) -> Callable[[], None]:
    master = os.getpid()

    def acting() -> None:
        try:
            act()
        except OSError as error:
            if error.errno not in _NO_PROCESS or os.getpid() != master:
                raise
            log.error("the system allows no further process; %s", undone)

    return acting


def _start_keeper(server: Arbiter) -> None:
    global _keeper
    if beside and shared is not None:
        works = {name: partial(work, shared) for name, work in beside.items()}
        _keeper = Keeper(works, shared.bell, server.LISTENERS)
        renew_with_workers(_keeper, server)


def on_exit(server: Arbiter) -> None:
    """In the master, when its workers have ended: wait for the rows that are under way.

    They have the same grace as requests, at the same time.
    """
    if _keeper is not None:
        _keeper.end(limits.SHUTDOWN_GRACE_S, CLOSE_S)


def post_worker_init(worker: ThreadWorker) -> None:
    """In a worker, when its application is built.

    Ctrl-C reaches every process of the terminal; the worker waits for the master's word. What is
    under way gets the whole grace, so the master has to wait a little longer than the worker.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.cfg.set("graceful_timeout", limits.SHUTDOWN_GRACE_S)
    # Without the thread that all calls need, a worker would answer with errors alone.
    worker.wsgi.extensions["svc"].core.client.begin()


def worker_exit(server: Arbiter, worker: ThreadWorker) -> None:
    """In a worker that ends: stop the services and write what is queued."""
    # There is no application when it could not be built.
    app = getattr(worker, "wsgi", None)
    if app is not None:
        app.extensions["svc"].close()


class Log(Logger):  # type: ignore[misc]
    """Gunicorn's log as part of ours."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.propagate = True
