"""A worker whose limit of open files is reached, which can read no module that it has not read."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import requests

from svc.demo import DemoServer
from svc.stats import thresholds
from tests.e2e.serving import WAIT_S, Server
from tests.web.models import decision


@contextlib.contextmanager
def no_further_file(pid: int) -> Iterator[None]:
    """A process whose open files are all it may have, for as long as the block runs."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = 1 + max(map(int, os.listdir(f"/proc/{pid}/fd")))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_promises_are_reckoned_without_a_further_file(db: Path, demo: DemoServer) -> None:
    with Server(db, SVC_PROVIDER_OWN_URL=demo.url, SVC_MODEL="@own/lexical") as server:
        for number in range(thresholds.FIRST):
            made = server.post(decision(f"The cat sat {number}.", debias=False)).json()
            label = {"decision_id": made["id"], "question": "animal", "label": "cat"}
            server.post(label, "/v1/feedback").raise_for_status()
        with requests.Session() as session:
            session.get(server.url + "/health", timeout=WAIT_S)
            (worker,) = server.workers
            with no_further_file(worker):
                answered = session.get(
                    server.url + "/v1/calibration?question=animal", timeout=WAIT_S
                )
    assert answered.status_code == 200, answered.text
    assert answered.json()["labels"] == thresholds.FIRST
