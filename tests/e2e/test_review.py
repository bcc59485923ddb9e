"""Reviewers of a server that dies never have the same decision."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from svc.demo import DemoServer
from tests.e2e.load import post_all
from tests.e2e.serving import Server
from tests.web.models import decision

pytestmark = pytest.mark.slow

REVIEWERS = 16
DECISIONS = 640
KILLED_AFTER = (150, 350)  # labels
WAIT_S = 60.0


class Reviewing:
    """Reviewers who take and label decisions until none is left."""

    def __init__(self) -> None:
        self.had: dict[str, set[str]] = defaultdict(set)
        self.labels = 0
        self.server: Server | None = None
        self._lock = threading.Lock()

    def work(self, reviewer: str) -> None:
        give_up_at = time.monotonic() + WAIT_S
        while time.monotonic() < give_up_at:
            server = self.server
            if server is None:
                time.sleep(0.01)
                continue
            try:
                if not self._page(server, reviewer):
                    return
            except requests.RequestException:
                # It was killed; another one starts.
                time.sleep(0.01)
        raise AssertionError(f"{reviewer} did not come to an end")

    def _page(self, server: Server, reviewer: str) -> bool:
        path = f"/v1/review?question=animal&reviewer={reviewer}&limit=5"
        page = server.get(path).json()
        items = [item["id"] for item in page["items"]]
        with self._lock:
            for one in items:
                self.had[one].add(reviewer)
        for one in items:
            body = {"decision_id": one, "question": "animal", "reviewer": reviewer}
            server.post({**body, "label": "cat"}, "/v1/feedback").raise_for_status()
            with self._lock:
                self.labels += 1
        return bool(items)


def test_no_decision_is_in_two_hands_though_the_server_is_killed_twice(
    db: Path, demo: DemoServer
) -> None:
    settings = {"SVC_PROVIDER_OWN_URL": demo.url, "SVC_MODEL": "@own/lexical"}
    reviewing = Reviewing()
    with ThreadPoolExecutor(REVIEWERS) as threads:
        with Server(db, **settings) as server:
            bodies = [decision(f"The cat sat {n}.", debias=False) for n in range(DECISIONS)]
            made = {answer["id"] for answer in post_all(server.url, bodies)}
            reviewing.server = server
            work = [threads.submit(reviewing.work, f"r{n}") for n in range(REVIEWERS)]
            _kill_after(reviewing, KILLED_AFTER[0])
        with Server(db, **settings) as server:
            reviewing.server = server
            _kill_after(reviewing, KILLED_AFTER[1])
        with Server(db, **settings) as server:
            reviewing.server = server
            for one in work:
                one.result()
            assert server.stop() == 0
    assert reviewing.had.keys() == made
    assert [one for one, reviewers in reviewing.had.items() if len(reviewers) > 1] == []
    with sqlite3.connect(db) as connection:
        (labels,) = connection.execute(
            "SELECT count(*) FROM labels WHERE sampled = 'queue' AND chance > 0"
        ).fetchone()
    connection.close()
    assert labels == DECISIONS


def _kill_after(reviewing: Reviewing, labels: int) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while reviewing.labels < labels and time.monotonic() < give_up_at:
        time.sleep(0.01)
    server, reviewing.server = reviewing.server, None
    assert server is not None
    server.kill()
