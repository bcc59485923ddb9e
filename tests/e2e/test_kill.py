"""What a server that is killed leaves behind."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from svc.demo import DemoServer
from tests.e2e.load import CONNECTIONS, post_until_it_breaks
from tests.e2e.serving import Server, stored
from tests.web.models import decision

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
