"""What a server that is killed leaves behind."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from svc.demo import DemoServer
from svc.store import ids
from tests.e2e.load import CONNECTIONS, post_all, post_until_it_breaks
from tests.e2e.serving import Server, stored
from tests.web.models import decision

pytestmark = pytest.mark.slow

KILL_AFTER = 200  # answers
EACH = 2_000  # decisions each connection would make


def test_a_killed_server_has_every_decision_that_it_answered(db: Path, demo: DemoServer) -> None:
    settings = {"SVC_PROVIDER_OWN_URL": demo.url, "SVC_MODEL": "@own/lexical"}
    answered: list[str] = []
    enough = threading.Event()

    def note(decision_id: str) -> None:
        answered.append(decision_id)
        if len(answered) >= KILL_AFTER:
            enough.set()

    def call(caller: int) -> bool:
        bodies = [decision(f"state {caller} {n}", debias=False) for n in range(EACH)]
        return post_until_it_breaks(server.url, bodies, note)

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        with Server(db, **settings) as server:
            callers = [threads.submit(call, caller) for caller in range(CONNECTIONS)]
            assert enough.wait(60)
            server.kill()
            assert all(caller.result() for caller in callers)  # it was killed under load
    with Server(db, **settings) as server:
        assert set(answered) <= stored(db).keys()
        later = server.post(decision("after the start")).json()["id"]
        assert server.stop() == 0
    assert later > max(answered)
    assert list(stored(db))[-1] == later


def test_a_killed_server_has_every_label_that_it_answered_and_its_calibrators(
    db: Path, demo: DemoServer
) -> None:
    settings = {"SVC_PROVIDER_OWN_URL": demo.url, "SVC_MODEL": "@own/lexical"}
    labelled: list[str] = []
    enough = threading.Event()

    def call(decision_ids: list[str]) -> bool:
        """Label one after the other; whether the server went away."""
        for decision_id in decision_ids:
            body = {"decision_id": decision_id, "question": "animal", "label": "dog"}
            try:
                response = server.post(body, "/v1/feedback")
            except requests.RequestException:
                return True
            assert response.status_code == 200
            labelled.append(decision_id)
            if len(labelled) >= KILL_AFTER:
                enough.set()
        return False

    with Server(db, **settings) as server, ThreadPoolExecutor(CONNECTIONS) as threads:
        bodies = [decision("The cat sat there.", debias=False) for _ in range(640)]
        made = [answer["id"] for answer in post_all(server.url, bodies)]
        callers = [threads.submit(call, made[n::CONNECTIONS]) for n in range(CONNECTIONS)]
        assert enough.wait(60)
        server.kill()
        assert any(caller.result() for caller in callers)  # it was killed under load
    in_effect = calibrator(db)
    with Server(db, **settings) as server:
        report = server.get("/v1/calibration?question=animal").json()
        assert server.stop() == 0
    assert in_effect is not None
    pooled = in_effect["pooled"]
    assert report["calibrator"] == {**pooled["calibrator"], "labels": pooled["labels"]}
    # Those whose answer was on its way when the server died may be there too.
    assert len(labelled) <= report["labels"] <= len(labelled) + CONNECTIONS
    with sqlite3.connect(db) as connection:
        rows = connection.execute(
            "SELECT decisions.id FROM labels JOIN decisions ON seq = decision_seq"
        ).fetchall()
    connection.close()
    assert {ids.parse(one) for one in labelled} <= {row[0] for row in rows}


def calibrator(db: Path) -> dict[str, Any] | None:
    """The one in effect, as the file has it."""
    connection = sqlite3.connect(db)
    (found,) = connection.execute("SELECT calibrator FROM learned").fetchone()
    connection.close()
    return None if found is None else dict(json.loads(found))
