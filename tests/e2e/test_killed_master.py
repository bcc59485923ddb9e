"""A master that is killed: its workers end with it, and leave the port to the next server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.e2e.serving import Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.store.holding import until
from tests.web.models import PREFERS_CATS, decision, reply_to

# The time for workers to end, on a busy machine.
END_S = 5.0
CALLERS = 20


@pytest.mark.parametrize("stopped", [False, True])
def test_busy_workers_end_with_their_killed_master_and_free_the_port(
    tmp_path: Path, stopped: bool
) -> None:
    answer = threading.Event()

    def handler(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        answer.wait(60)
        return Reply(reply_to(PREFERS_CATS, body))

    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(ScriptedProvider(handler))
        settings = {"SVC_PROVIDER_OWN_URL": provider.url, "SVC_MODEL": "@own/m"}
        server = stack.enter_context(Server(tmp_path / "svc.db", "--workers", "2", **settings))
        threads = stack.enter_context(ThreadPoolExecutor(CALLERS))
        stack.callback(answer.set)
        calls = [threads.submit(ask, server, n) for n in range(CALLERS)]
        until(lambda: len(provider.requests) == CALLERS)
        workers = server.workers
        if stopped:
            os.kill(min(workers), signal.SIGSTOP)
        server.send(signal.SIGKILL)
        give_up_at = time.monotonic() + END_S
        while any(runs(pid) for pid in workers):
            assert time.monotonic() < give_up_at, "a worker goes on without its master"
            time.sleep(0.02)
        host, port = urlsplit(server.url).hostname, urlsplit(server.url).port
        # The files of a process with many threads are closed when the last of them has ended.
        while not is_free(host, port):
            assert time.monotonic() < give_up_at, "the port is still taken"
            time.sleep(0.02)
        assert all(call.result(END_S) is None for call in calls)


def ask(server: Server, n: int) -> int | None:
    """The status of the answer, None where the connection broke."""
    with contextlib.suppress(requests.RequestException):
        return server.post(decision(n, debias=False)).status_code
    return None


def is_free(host: str | None, port: int | None) -> bool:
    """Whether somebody else could listen there."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def runs(pid: int) -> bool:
    """Whether there is such a process that has not ended; one without parents stays a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
