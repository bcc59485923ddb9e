from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.e2e.serving import Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, completion
from tests.store.holding import until

SECRET = "svc_0123456789"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("serving") / "svc.db", "--demo") as started:
        yield started


def address(server: Server) -> tuple[str, int]:
    parts = urlsplit(server.url)
    return str(parts.hostname), int(parts.port or 0)


def exchange(server: Server, sent: bytes) -> tuple[int, dict[str, str], Json]:
    """Send bytes on a connection of their own; status, headers and JSON of the answer."""
    with socket.create_connection(address(server), 10) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        head, _, body = b"".join(iter(lambda: sock.recv(65_536), b"")).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, json.loads(body)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",  # TLS where plain text is spoken
        b"GET /health HTTP/1.1\r\nHost: x\r\nAuthorization %s\r\n\r\n" % SECRET.encode(),
        b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_gets_the_error_shape_and_a_request_id(server: Server, sent: bytes) -> None:
    status, headers, body = exchange(server, sent)
    assert status == 400
    assert body["error"]["type"] == "invalid_json"
    assert headers["content-type"] == "application/json"
    until(lambda: headers["x-request-id"] in server.log)
    assert headers["x-content-type-options"] == "nosniff"
    assert SECRET not in server.log
    shown = requests.get(f"{server.url}/metrics", timeout=10).text
    counts = re.findall(r'^svc_http_responses_total{status="400"} (\S+)$', shown, re.MULTILINE)
    assert float(counts[0]) == server.log.count("status=400")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 20_000 + b"\r\n\r\n",
    ],
)
def test_an_endless_line_is_too_large(server: Server, sent: bytes) -> None:
    status, _, body = exchange(server, sent)
    assert (status, body["error"]["type"]) == (413, "too_large")


def test_callers_who_never_close_do_not_hold_up_others(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        callers = [socket.create_connection(address(server), 10) for _ in range(40)]
        for caller in map(stack.enter_context, callers):
            caller.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for caller in callers:  # gunicorn alone lingers two seconds with each, one by one
            assert caller.recv(100).startswith(b"HTTP/1.1 ")
        assert requests.get(f"{server.url}/health", timeout=10).status_code == 200


def connect_until_refused(server: Server) -> None:
    while True:
        with contextlib.suppress(ConnectionResetError):  # met the closing itself
            socket.create_connection(address(server), 10).close()


def test_a_connection_is_refused_while_the_last_answers_are_given(tmp_path: Path) -> None:
    asked, answer = threading.Event(), threading.Event()

    def handler(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        asked.set()
        answer.wait(30)
        return Reply(completion("no use"))

    question = {"q": {"type": "noul", "instructions": "Is it?"}}
    with ScriptedProvider(handler) as provider, ThreadPoolExecutor(1) as threads:
        environment = {"SVC_PROVIDER_OWN_URL": provider.url, "SVC_MODEL": "@own/m"}
        with Server(tmp_path / "svc.db", **environment) as server:
            under_way = threads.submit(server.post, {"state": "s", "questions": question})
            assert asked.wait(30)
            server.send(signal.SIGTERM)
            with pytest.raises(ConnectionRefusedError):
                connect_until_refused(server)
            assert not under_way.done()
            answer.set()
            assert under_way.result().status_code == 502
            assert server.wait() == 0
