"""Metrics of a server of several processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.serving import Server
from tests.web.models import decision


def test_every_worker_shows_what_all_have_counted(db: Path) -> None:
    with Server(db, "--demo", "--workers", "2", "--no-auth") as server:
        with ThreadPoolExecutor(8) as threads:
            codes = list(threads.map(lambda n: server.post(decision(n)).status_code, range(60)))
        assert codes == [200] * 60
        for _ in range(10):
            text = server.get("/metrics").text
            assert "svc_decisions_total 60.0" in text
            assert "svc_decide_duration_seconds_count 60.0" in text
        assert server.stop() == 0
