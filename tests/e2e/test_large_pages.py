"""Pages of the audit log with long answers, and many callers who ask for them and do not read."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from svc import limits
from tests.e2e.serving import Server
from tests.web.models import decision

ENTRIES = 300
ANSWER_BYTES = 100_000
READERS = 300
MOST_MB = 300

PAGE = b"GET /v1/audit?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def server(db: Path) -> Iterator[Server]:
    with Server(db, "--demo") as server:
        server.post(decision("a state", debias=False)).raise_for_status()
        multiply(db)
        yield server


def multiply(db: Path) -> None:
    """Make many decisions with long answers of the one that is stored."""
    with contextlib.closing(sqlite3.connect(db)) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(decisions)")]
        row = dict(
            zip(names, connection.execute("SELECT * FROM decisions").fetchone(), strict=True)
        )
        places = ", ".join("?" * len(names))
        for number in range(1, ENTRIES):
            row["seq"] += 1
            row["id"] = row["id"][:8] + number.to_bytes(8)
            row["answers"] = json.dumps({"animal": {"value": "é" * (ANSWER_BYTES // 2)}})
            connection.execute(f"INSERT INTO decisions VALUES ({places})", list(row.values()))


def test_pages_of_long_answers_are_cut_and_lead_through_all(server: Server) -> None:
    seen, path = 0, "/v1/audit?limit=1000"
    while True:
        response = server.get(path)
        page = response.json()
        assert len(response.content) <= limits.PAGE_BYTES * 1.1
        seen += len(page["entries"])
        if page["next_before"] is None:
            break
        path = f"/v1/audit?limit=1000&before={page['next_before']}"
    assert seen == ENTRIES


@pytest.mark.slow
def test_many_readers_that_do_not_read_cost_little(server: Server) -> None:
    parts = urlsplit(server.url)
    with ExitStack() as stack:
        for _ in range(READERS):
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            caller.connect((parts.hostname, parts.port))
            caller.sendall(PAGE * 4)
        most = 0.0
        until = time.monotonic() + 15
        while time.monotonic() < until:
            most = max(most, sum(map(memory_mb, server.workers)))
            time.sleep(0.1)
    assert most < MOST_MB


def memory_mb(pid: int) -> float:
    """The memory of a process, with what it has shut out."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return (int(sizes["VmRSS"]) + int(sizes["VmSwap"])) / 1024
