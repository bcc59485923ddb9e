"""What a server that is killed leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.load import CONNECTIONS, post_until_it_breaks
from tests.e2e.serving import Server, stored
from tests.scripted import Behaviour, Json, ScriptedProvider
from tests.web.models import decision, replying

KILL_AFTER = 150  # calls
EACH = 500  # decisions each connection would make


def test_a_killed_server_has_every_decision_that_it_answered(db: Path) -> None:
    busy = threading.Event()
    answer = replying()

    def handle(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if n == KILL_AFTER:
            busy.set()
        return answer(body, n, headers)

    with ScriptedProvider(handle) as provider, ThreadPoolExecutor(CONNECTIONS) as threads:
        settings = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with Server(db, **settings) as server:
            under_way = [
                threads.submit(
                    post_until_it_breaks,
                    server.url,
                    [decision(f"state {caller} {n}", debias=False) for n in range(EACH)],
                )
                for caller in range(CONNECTIONS)
            ]
            assert busy.wait(60)
            server.kill()
            shares = [future.result() for future in under_way]
        answered = {decision_id for share in shares for decision_id in share}
        assert len(answered) >= KILL_AFTER - CONNECTIONS - 1
        assert all(len(share) < EACH for share in shares)  # it was killed under load
        with Server(db, **settings) as server:
            assert answered <= stored(db).keys()
            later = server.post(decision("after the start")).json()["id"]
            assert later > max(answered)
            assert server.stop() == 0
    assert list(stored(db))[-1] == later
