"""Requests that wait on a model that does not answer, and everybody else beside them."""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from svc import limits
from tests.e2e.serving import ROOT, Server, environment
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.store.holding import until
from tests.web.models import PREFERS_CATS, decision, reply_to

pytestmark = pytest.mark.slow

POST = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n"

# What is promised, and how many may be slower on a busy machine.
PROMPT_S = 0.1
ASKED = 20


@dataclass
class Stalled:
    """A server whose model `@own/m` does not answer before `answer` is set."""

    server: Server
    provider: ScriptedProvider
    answer: threading.Event
    stack: ExitStack
    db: Path

    def send(self, count: int, key: str | None = None) -> list[socket.socket]:
        """That many requests at the same time, each over a connection of its own."""
        return [self._send(number, key) for number in range(count)]

    def _send(self, number: int, key: str | None) -> socket.socket:
        parts = urlsplit(self.server.url)
        sock = self.stack.enter_context(
            socket.create_connection((parts.hostname, parts.port or 0), 60)
        )
        body = json.dumps(decision(f"{key} {number}", debias=False)).encode()
        head = b"" if key is None else f"Authorization: Bearer {key}\r\n".encode()
        sock.sendall(POST % (head, len(body)) + body)
        return sock

    def get(self, path: str, key: str | None = None) -> tuple[int, float]:
        """The status, and the seconds that it took."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        began = time.monotonic()
        status = requests.get(self.server.url + path, headers=headers, timeout=30).status_code
        return status, time.monotonic() - began

    def key(self, *options: str) -> str:
        """The text of a new key."""
        command = [sys.executable, "-m", "svc.cli.main", "keys", "create", "--db", str(self.db)]
        made = subprocess.run(
            [*command, "--rpm", "100000", *options],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return made.stdout.split()[-1]


@pytest.fixture
def stalled(db: Path) -> Iterator[Stalled]:
    answer = threading.Event()

    def handler(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        answer.wait(60)
        return Reply(reply_to(PREFERS_CATS, body))

    with ScriptedProvider(handler) as provider, ExitStack() as stack:
        settings = {"SVC_PROVIDER_OWN_URL": provider.url, "SVC_MODEL": "@own/m"}
        server = stack.enter_context(Server(db, **settings))
        stack.callback(answer.set)
        yield Stalled(server, provider, answer, stack, db)


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics"])
def test_who_looks_at_the_server_waits_for_no_model(stalled: Stalled, path: str) -> None:
    callers = stalled.send(limits.REQUEST_THREADS + 44)
    until(lambda: len(stalled.provider.requests) == limits.REQUEST_THREADS)
    asked = [stalled.get(path) for _ in range(ASKED)]
    assert {status for status, _ in asked} == {200}
    assert statistics.median(seconds for _, seconds in asked) < PROMPT_S
    stalled.answer.set()
    assert {caller.recv(12) for caller in callers} == {b"HTTP/1.1 200"}


def test_one_key_has_its_share_and_another_is_answered_beside_it(stalled: Stalled) -> None:
    one, other = stalled.key("--name", "one"), stalled.key("--name", "other")
    few = stalled.key("--name", "few", "--concurrency", "2")
    callers = stalled.send(limits.KEY_CONCURRENCY, one) + stalled.send(2, few)
    until(lambda: len(stalled.provider.requests) == len(callers))
    for key in (one, few):
        (refused,) = stalled.send(1, key)
        answer = refused.recv(10_000).decode().lower()
        assert answer.startswith("http/1.1 429 ") and '"rate_limited"' in answer
        assert "\r\nretry-after: " in answer
    assert stalled.get("/v1/models", other)[0] == 200
    assert stalled.get("/metrics", one)[0] == 200
    stalled.answer.set()
    assert {caller.recv(12) for caller in callers} == {b"HTTP/1.1 200"}
    until(lambda: stalled.get("/v1/models", few)[0] == 200)
