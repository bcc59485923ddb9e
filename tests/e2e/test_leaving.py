"""Callers who do not wait for their answers: what they wanted stops, and is not paid further."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.e2e.serving import Server
from tests.scripted import Reply, ScriptedProvider, Silent, completion, error
from tests.store.holding import until

QUESTION = {"q": {"type": "noul", "instructions": "Is it late?"}}
SILENT, BUSY, SLOW = "@own/silent", "@own/busy", "@own/slow"


def answer(body: Any, n: int, headers: Any) -> Any:
    if body["model"] == "silent":
        return Silent()
    if body["model"] == "busy":
        return Reply(error("busy"), status=429, headers={"Retry-After": "1"})
    return Reply(completion("yes", [{"yes": 0.9, "no": 0.1}]), delay=1.5)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Server, ScriptedProvider]]:
    with ScriptedProvider(answer) as provider:
        settings = {
            "SVC_PROVIDER_OWN_URL": provider.url,
            "SVC_PROVIDER_OWN_RPM": "10000",
            "SVC_MODEL": "@own/slow",
        }
        with Server(folder / "svc.db", **settings) as server:
            yield server, provider
            assert server.stop() == 0
            assert "Traceback" not in server.log and "unforeseen" not in server.log


def ask(server: Server, model: Any, *headers: str) -> socket.socket:
    """Send a request, and do not wait for its answer."""
    parts = urlsplit(server.url)
    body = json.dumps({"state": "Late.", "model": model, "questions": QUESTION, "debias": False})
    lines = ["POST /v1/decide HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    caller = socket.create_connection((parts.hostname or "", parts.port or 0), 60)
    caller.sendall("\r\n".join([*lines, *headers, "", body]).encode())
    return caller


MODELS = {
    "one": SILENT,
    "race": {"race": [SILENT, SILENT]},
    "council": {"council": [SILENT, SILENT]},
    "cascade": {"cascade": [SILENT, SLOW], "escalate_below": 0.9},
}


@pytest.mark.parametrize("name", MODELS)
def test_the_calls_of_who_has_left_are_cut_off(tmp_path: Path, name: str) -> None:
    with serving(tmp_path) as (server, provider):
        with ask(server, MODELS[name]):
            until(lambda: len(provider.bodies) >= 1)
        until(lambda: "status=499" in server.log)
        asked = len(provider.bodies)
        page = requests.get(server.url + "/v1/audit", timeout=30).json()
        assert page["entries"] == []
        assert len(provider.bodies) == asked
        metrics = requests.get(server.url + "/metrics", timeout=30).text
        assert 'status="499"' in metrics


def test_nothing_is_tried_again_for_who_has_left(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, provider):
        with ask(server, [BUSY, SLOW]):
            until(lambda: len(provider.bodies) >= 1)
        until(lambda: "status=499" in server.log)
        assert {body["model"] for body in provider.bodies} == {"busy"}


def test_a_repeat_gets_what_was_begun_for_who_has_left(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, provider):
        key = "Idempotency-Key: once"
        with ask(server, SLOW, key):
            until(lambda: len(provider.bodies) >= 1)
        with ask(server, SLOW, key) as caller:
            head = caller.recv(65_536).decode()
        assert head.startswith("HTTP/1.1 200")
        assert len(provider.bodies) == 1
        assert "status=499" not in server.log
