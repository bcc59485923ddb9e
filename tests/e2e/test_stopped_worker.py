"""A worker that is stopped under load: the others go on, and lose a moment at most."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from pathlib import Path

import pytest
import requests

from tests.e2e.serving import Server
from tests.store.holding import until
from tests.web.models import decision

pytestmark = pytest.mark.slow

CALLERS = 8
STOPS = 4
WORKERS = 2

# The time under load before a stop and after it.
WARM_S, STOPPED_S = 0.7, 2.5

# The longest that nobody is answered, beside what it is when no worker is stopped: the second that
# is promised, and half of one for a busy machine.
GAP_S = 1.5


def test_a_stopped_worker_costs_the_others_a_moment_once(db: Path) -> None:
    numbers, ended = count(), threading.Event()
    answers: list[tuple[float, int]] = []

    def call(server: Server) -> None:
        while not ended.is_set():
            body = decision(f"state {next(numbers)}", debias=False)
            # The connections of the stopped worker get no answer.
            with contextlib.suppress(requests.RequestException):
                response = server.post(body, timeout=2)
                answers.append((time.monotonic(), response.status_code))

    with (
        Server(db, "--demo", "--workers", str(WORKERS)) as server,
        ThreadPoolExecutor(CALLERS) as threads,
    ):
        for _ in range(CALLERS):
            threads.submit(call, server)
        try:
            gaps = [stop_a_worker(server, answers) for _ in range(STOPS)]
        finally:
            ended.set()
    assert {status for _, status in answers} == {200}
    assert max(gaps) < GAP_S


def stop_a_worker(server: Server, answers: list[tuple[float, int]]) -> float:
    """Stop a worker for a while; the seconds by which nobody was answered for longer than usual.

    A worker that was killed for holding a lock is replaced, which takes a busy machine seconds: the
    next one is stopped when there are two again.
    """
    until(lambda: len(server.ready_workers) == WORKERS)
    warm = time.monotonic()
    time.sleep(WARM_S)
    pid = min(server.ready_workers)
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    ended = time.monotonic()
    return longest_gap(answers, began, ended) - longest_gap(answers, warm, began)


def longest_gap(answers: list[tuple[float, int]], began: float, ended: float) -> float:
    """The seconds for which nobody was answered."""
    times = [at for at, _ in answers if began <= at <= ended]
    return max(after - before for before, after in pairwise([began, *times, ended]))
