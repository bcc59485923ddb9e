"""Several workers: one of them ends in good order while all are asked."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.load import CONNECTIONS, post_all
from tests.e2e.serving import WAIT_S, Server, stored
from tests.web.models import decision

EACH = 20  # decisions that each connection makes, one after the other


class Workers(Server):
    """A server of two workers."""

    def __init__(self, db: Path) -> None:
        super().__init__(db, "--demo", "--workers", "2")

    def replace(self, pid: int) -> None:
        """End one worker as an operator would; return when there are two others."""
        os.kill(pid, signal.SIGTERM)
        give_up_at = time.monotonic() + WAIT_S
        while pid in self.workers or len(self.workers) < 2:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)


@pytest.mark.parametrize("reload", [False, True])
def test_workers_that_are_replaced_lose_no_request(db: Path, reload: bool) -> None:
    ended = threading.Event()

    def ask(server: Server) -> int:
        count = 0
        while not ended.is_set():
            states = [f"state {count} {n}" for n in range(EACH * CONNECTIONS)]
            bodies = [decision(state, debias=False) for state in states]
            count += len(post_all(server.url, bodies))
        return count

    with Workers(db) as server, ThreadPoolExecutor(1) as callers:
        before = server.workers
        asked = callers.submit(ask, server)
        try:
            for pid in before:
                if reload:
                    server.send(signal.SIGHUP)
                    wait_until_gone(server, before)
                    break
                server.replace(pid)
        finally:
            ended.set()
        count = asked.result(WAIT_S)
        assert not before & server.workers
        assert server.stop() == 0
    assert len(stored(db)) == count


def wait_until_gone(server: Workers, pids: set[int]) -> None:
    give_up_at = time.monotonic() + 2 * WAIT_S
    while pids & server.workers:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
