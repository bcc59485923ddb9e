"""Processes where the system allows no more of them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from gunicorn.arbiter import Arbiter
from gunicorn.workers.gthread import ThreadWorker

from svc.providers.watchdog import Watchdog
from svc.server.gunicorn_settings import (
    go_on_without_processes,
    post_worker_init,
    renew_with_workers,
)
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

# Work that goes on when it is told to stop, as a row at a model that takes long does.
ENDING = """
import os, threading, time
from svc.bootstrap import Shared
from svc.server.keeper import NAME, Keeper

reading, writing = os.pipe()

def work(stop):
    os.write(writing, b"begun")
    threading.Event().wait(60)

keeper = Keeper({NAME: work}, Shared().bell, [])
assert os.read(reading, 5) == b"begun"
keeper.stop()
threading.Event().wait(2)
began = time.monotonic()
keeper.end(grace_s=GRACE, least_s=LEAST)
print(time.monotonic() - began)
"""

# This process and a server, which may have a worker and one thread more, and later many.
SERVER = """
import logging, os, resource, signal, socket, tempfile, time
import requests
from gunicorn import config
from requests.adapters import HTTPAdapter
from urllib3 import Retry
from svc.app import create_app
from svc.bootstrap import build
from svc.server.program import Program
from svc.settings import load
from tests.limited import limit_to

logging.basicConfig()
listener = socket.create_server(("127.0.0.1", 0))
url = "http://127.0.0.1:%d/health" % listener.getsockname()[1]
limit_to(4, later=100)
# What gunicorn took from the user who imported it.
config.User.default, config.Group.default = os.getuid(), os.getgid()
master = os.fork()
if not master:
    settings = load({"SVC_DB": tempfile.mkdtemp() + "/svc.db"})
    Program(listener, 1, lambda shared: create_app(build(settings, shared))).run()
listener.close()
end = signal.SIGKILL
try:
    time.sleep(3.5)
    resource.prlimit(master, resource.RLIMIT_NPROC, (100, 100))
    waiting = Retry(connect=30, backoff_factor=0.2, backoff_max=0.5)
    session = requests.Session()
    session.mount("http://", HTTPAdapter(max_retries=waiting))
    assert session.get(url, timeout=5).status_code == 200
    end = signal.SIGTERM
finally:
    os.kill(master, end)
    status = os.waitpid(master, 0)[1]
assert status == 0
"""


@ONLY_ROOT
def test_work_that_could_not_begin_begins_once_there_may_be_a_process() -> None:
    assert "svc-jobs does not begin" in errors_of(SCRIPT)


@pytest.mark.parametrize(("grace", "least", "waited"), [(6, 1, 4), (0, 1, 1)])
def test_rows_under_way_have_their_grace_from_when_they_were_first_told(
    grace: int, least: int, waited: int
) -> None:
    # It was told two seconds before; that it counts from now again would take six.
    script = ENDING.replace("GRACE", str(grace)).replace("LEAST", str(least))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert waited - 0.1 < float(done.stdout) < waited + 1.9


def test_the_master_goes_on_where_no_process_can_be_made_and_tries_again() -> None:
    looks: list[str] = []

    def manage() -> None:
        looks.append("workers")
        if len(looks) == 1:
            raise BlockingIOError(errno.EAGAIN, "no process")

    server = master(manage_workers=manage)
    keeper = SimpleNamespace(renew=lambda: looks.append("keeper"))
    renew_with_workers(cast(Keeper, keeper), server)
    go_on_without_processes(server)
    server.manage_workers()
    server.manage_workers()
    assert looks == ["workers", "workers", "keeper"]


@pytest.mark.parametrize("act", ["reload", "reexec"])
def test_a_master_that_is_told_to_begin_others_goes_on_without_them(
    caplog: pytest.LogCaptureFixture, act: str
) -> None:
    server = master(**{act: failing(errno.EAGAIN)})
    go_on_without_processes(server)
    getattr(server, act)()
    assert "the system allows no further process" in caplog.text


def test_another_error_of_the_master_is_not_taken_for_that() -> None:
    server = master(manage_workers=failing(errno.EBADF))
    go_on_without_processes(server)
    with pytest.raises(OSError, match="a file or process"):
        server.manage_workers()


def test_what_fails_in_a_fork_of_the_master_ends_the_fork() -> None:
    server = master(reexec=failing(errno.EAGAIN))
    go_on_without_processes(server)
    if not (pid := os.fork()):
        try:
            server.reexec()
        except BlockingIOError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@ONLY_ROOT
def test_a_worker_without_its_threads_is_begun_again_and_ends_no_server() -> None:
    said = errors_of(SERVER)
    assert said.count("a worker does not begin, since the system allows no further thread") >= 2
    assert "Traceback" not in said


def master(**acts: Callable[[], None]) -> Arbiter:
    """A master that does these acts, and nothing for all others."""
    others = dict.fromkeys(("manage_workers", "reload", "reexec"), lambda: None)
    return cast(Arbiter, SimpleNamespace(**{**others, **acts}))


def failing(number: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(number, "a file or process")

    return act


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
