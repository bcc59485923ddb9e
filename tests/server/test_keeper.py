"""Processes where the system allows no more of them."""

from __future__ import annotations

import errno
import signal
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gunicorn.arbiter import Arbiter
from gunicorn.workers.gthread import ThreadWorker

from svc.providers.watchdog import Watchdog
from svc.server.gunicorn_settings import post_worker_init, renew_with_workers
from svc.server.keeper import Keeper
from tests.limited import ONLY_ROOT, errors_of

SCRIPT = """
import logging, os, resource, threading
from svc.bootstrap import Shared
from svc.server.keeper import NAME, PAUSE_S, Keeper
from tests.limited import limit_to

logging.basicConfig()
reading, writing = os.pipe()
shared = Shared()
limit_to(2, later=100)
keeper = Keeper({NAME: lambda stop: os.write(writing, b"begun")}, shared.bell, [])
children = f"/proc/self/task/{os.getpid()}/children"
(first,) = open(children).read().split()
threading.Event().wait(2 * PAUSE_S)
resource.prlimit(int(first), resource.RLIMIT_NPROC, (100, 100))
assert os.read(reading, 5) == b"begun"
assert open(children).read().split() == [first]
keeper.kill()
"""


@ONLY_ROOT
def test_work_that_could_not_begin_begins_once_there_may_be_a_process() -> None:
    assert "svc-jobs does not begin" in errors_of(SCRIPT)


def test_the_master_goes_on_where_no_process_can_be_made_and_tries_again() -> None:
    looks: list[str] = []

    def manage() -> None:
        looks.append("workers")
        if len(looks) == 1:
            raise BlockingIOError(errno.EAGAIN, "no process")

    server: Any = SimpleNamespace(manage_workers=manage)
    keeper = SimpleNamespace(renew=lambda: looks.append("keeper"))
    renew_with_workers(cast(Keeper, keeper), cast(Arbiter, server))
    server.manage_workers()
    server.manage_workers()
    assert looks == ["workers", "workers", "keeper"]


def test_another_error_of_the_master_is_not_taken_for_that() -> None:
    def manage() -> None:
        raise OSError(errno.EBADF, "a socket")

    server: Any = SimpleNamespace(manage_workers=manage)
    renew_with_workers(cast(Keeper, SimpleNamespace(renew=lambda: None)), cast(Arbiter, server))
    with pytest.raises(OSError, match="a socket"):
        server.manage_workers()


def test_a_worker_has_the_thread_of_all_calls_before_any_request() -> None:
    """Where the system allows few, requests would take its place, and no call could be made."""
    watchdog = Watchdog()
    core = SimpleNamespace(client=SimpleNamespace(begin=watchdog.begin))
    application = SimpleNamespace(extensions={"svc": SimpleNamespace(core=core)})
    settings = SimpleNamespace(set=lambda *_: None)
    before, handler = threading.active_count(), signal.getsignal(signal.SIGINT)
    try:
        post_worker_init(cast(ThreadWorker, SimpleNamespace(cfg=settings, wsgi=application)))
        assert threading.active_count() == before + 1
    finally:
        signal.signal(signal.SIGINT, handler)
        watchdog.close()
