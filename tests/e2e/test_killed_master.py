"""A master that is killed: its workers end with it, and leave the port to the next server."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.e2e.serving import Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.store.holding import until
from tests.web.models import PREFERS_CATS, decision, reply_to

pytestmark = pytest.mark.slow

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
        if stopped:
            os.kill(min(server.workers), signal.SIGSTOP)
        server.kill_master(END_S)
        assert all(call.result(END_S) is None for call in calls)


def ask(server: Server, n: int) -> int | None:
    """The status of the answer, None where the connection broke."""
    with contextlib.suppress(requests.RequestException):
        return server.post(decision(n, debias=False)).status_code
    return None
