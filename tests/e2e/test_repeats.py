"""Requests with one `Idempotency-Key` at several workers, and at one that is killed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.e2e.serving import ROOT, WAIT_S, Server, stored
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, decision, reply_to

CALLERS = 8


class Gate:
    """A provider that answers once the test lets it."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        self.asked.set()
        self.go.wait(WAIT_S)
        return Reply(reply_to(PREFERS_CATS, body))


def send(server: Server) -> requests.Response:
    headers = {"Idempotency-Key": "the same"}
    return requests.post(
        f"{server.url}/v1/decide", json=decision(), headers=headers, timeout=2 * WAIT_S
    )


def workers_of(db: Path, provider: ScriptedProvider) -> Server:
    settings = {"SVC_MODEL": "@own/m", "SVC_PROVIDER_OWN_URL": provider.url}
    return Server(db, "--workers", "2", **settings)


def test_requests_at_several_workers_are_carried_out_once(db: Path) -> None:
    gate = Gate()
    with (
        ScriptedProvider(gate) as provider,
        workers_of(db, provider) as server,
        ThreadPoolExecutor(CALLERS) as callers,
    ):
        sent = [callers.submit(send, server) for _ in range(CALLERS)]
        assert gate.asked.wait(WAIT_S)
        # Time for the others to reach a worker; those that come later are repeats as well.
        time.sleep(0.3)
        gate.go.set()
        answers = [one.result(2 * WAIT_S) for one in sent]
        assert server.stop() == 0
    assert {one.status_code for one in answers} == {200}
    assert len({one.content for one in answers}) == 1
    assert [one.headers.get("Idempotent-Replayed") for one in answers].count("true") == CALLERS - 1
    assert len(stored(db)) == 1


def test_a_killed_worker_leaves_no_key_blocked(db: Path) -> None:
    gate = Gate()
    with (
        ScriptedProvider(gate) as provider,
        workers_of(db, provider) as server,
        ThreadPoolExecutor(1) as callers,
    ):
        first = callers.submit(send, server)
        assert gate.asked.wait(WAIT_S)
        for pid in server.workers:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(requests.RequestException):
            first.result(WAIT_S)
        gate.go.set()
        answer = send(server)
        assert server.stop() == 0
    assert (answer.status_code, answer.headers.get("Idempotent-Replayed")) == (200, None)
    assert len(stored(db)) == 1


def test_an_answer_outlasts_the_server(db: Path) -> None:
    with Server(db, "--demo") as server:
        first = send(server)
        server.kill()
    with Server(db, "--demo") as server:
        again = send(server)
        assert server.stop() == 0
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")


def test_the_example_of_the_page_gets_the_same_answer_twice(db: Path) -> None:
    page = (ROOT / "docs" / "idempotency.md").read_text("utf-8")
    (command,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    words = shlex.split(command)
    name, _, key = words[words.index("-H") + 1].partition(": ")
    body = words[words.index("-d") + 1].encode()
    with Server(db, "--demo") as server:
        url = f"{server.url}/v1/decide"
        first, again = (requests.post(url, body, headers={name: key}) for _ in range(2))
        assert server.stop() == 0
    assert first.status_code == 200
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
