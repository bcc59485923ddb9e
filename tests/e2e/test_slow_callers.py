"""Callers who send slowly or nothing at all, many at once, while others want to be answered."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from svc import limits
from svc.server.worker import HEAD_S, LINGER_S, SLOW_CALLER_S
from tests.e2e.serving import Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.store.holding import until
from tests.web.models import PREFERS_CATS, decision, reply_to

MANY = 2 * limits.REQUEST_THREADS
HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
CLOSE = b"\r\nConnection: close\r\n\r\n"
BODY = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"


class FewFiles(Server):
    """A server that may open few files."""

    def __init__(self, db: Path, files: int, *arguments: str) -> None:
        super().__init__(db, *arguments)
        self._command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *self._command]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("slow") / "svc.db", "--demo") as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.log and "unforeseen" not in server.log


def connect(server: Server, count: int, stack: ExitStack) -> list[socket.socket]:
    parts = urlsplit(server.url)
    assert parts.hostname and parts.port
    made = [socket.create_connection((parts.hostname, parts.port), 60) for _ in range(count)]
    return [stack.enter_context(sock) for sock in made]


def health(server: Server, timeout: float) -> int:
    return requests.get(server.url + "/health", timeout=timeout).status_code


@pytest.mark.parametrize("begun", [b"", b"G", HEAD])
def test_connections_whose_head_does_not_come_hold_up_nobody(server: Server, begun: bytes) -> None:
    with ExitStack() as stack:
        callers = connect(server, MANY, stack)
        for caller in callers:
            caller.sendall(begun)
        for _ in range(3):
            assert health(server, HEAD_S / 2) == 200
            for caller in callers:
                caller.sendall(b"G" if not begun else b"a")
        for caller in callers[:5]:
            caller.sendall(b": b\r\n\r\n")
            assert caller.recv(100).startswith(b"HTTP/1.1 ")


@pytest.mark.slow
def test_a_head_has_its_time_whether_it_drips_or_not(server: Server) -> None:
    with ExitStack() as stack:
        silent, dripping = connect(server, 2, stack)
        started = time.monotonic()
        dripping.settimeout(0.5)
        dripping.sendall(HEAD)
        while True:
            try:
                assert dripping.recv(100) == b""
            except TimeoutError:
                dripping.sendall(b"a")
                continue
            except ConnectionResetError:
                pass
            break
        assert silent.recv(100) == b""
        assert HEAD_S - 1 < time.monotonic() - started < 3 * HEAD_S


def test_bodies_that_do_not_come_give_way_to_those_who_wait_for_a_thread(server: Server) -> None:
    with ExitStack() as stack:
        callers = connect(server, MANY, stack)
        for caller in callers:
            caller.sendall(BODY)
        assert health(server, 30) == 200
        answer = callers[0].recv(10_000)
        assert answer.startswith(b"HTTP/1.1 408 ") and b'"request_timeout"' in answer


def test_callers_who_take_in_no_response_give_way_to_those_who_wait_for_a_thread(
    server: Server,
) -> None:
    parts = urlsplit(server.url)
    with ExitStack() as stack:
        for _ in range(MANY):
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            caller.connect((parts.hostname, parts.port))
            caller.sendall(LARGE * 80)
        for _ in range(3):
            assert health(server, 30) == 200  # each of them alone may take a minute


@pytest.mark.slow
def test_slow_models_cut_no_caller_and_who_waits_for_a_thread_has_waited(tmp_path: Path) -> None:
    answer = threading.Event()

    def handler(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        answer.wait(60)
        return Reply(reply_to(PREFERS_CATS, body))

    with ScriptedProvider(handler) as provider, ExitStack() as stack:
        settings = {"SVC_PROVIDER_OWN_URL": provider.url, "SVC_MODEL": "@own/m"}
        server = stack.enter_context(Server(tmp_path / "svc.db", **settings))
        stack.callback(answer.set)
        callers = connect(server, limits.REQUEST_THREADS + 10, stack)
        for n, caller in enumerate(callers):
            body = json.dumps(decision(n, debias=False)).encode()
            caller.sendall(POST % len(body) + body)
        until(lambda: len(provider.requests) == limits.REQUEST_THREADS)
        time.sleep(2 * SLOW_CALLER_S)
        answer.set()
        assert {caller.recv(12) for caller in callers} == {b"HTTP/1.1 200"}
        logged = re.compile(r"path=/v1/decide status=200 ms=([\d.]+)")
        until(lambda: len(logged.findall(server.log)) == len(callers))
        assert min(map(float, logged.findall(server.log))) > 2_000 * SLOW_CALLER_S


def test_who_is_refused_can_send_on_and_is_answered(server: Server) -> None:
    with ExitStack() as stack:
        (caller,) = connect(server, 1, stack)
        caller.sendall(BODY.replace(b"/v1/decide", b"/nowhere").replace(b"\r\n\r\n", CLOSE))
        until = time.monotonic() + 1.5 * LINGER_S
        while time.monotonic() < until:
            time.sleep(0.1)
            caller.sendall(b"x" * 10)
        assert caller.recv(100).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(("sent", "goes_on"), [(b"x" * 999, b"keep-alive"), (b"", b"close")])
def test_who_is_refused_is_told_whether_the_connection_goes_on(
    server: Server, sent: bytes, goes_on: bytes
) -> None:
    with ExitStack() as stack:
        (caller,) = connect(server, 1, stack)
        caller.sendall(BODY.replace(b"/v1/decide", b"/nowhere") + sent)
        answer = caller.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 404 ") and b"\r\nConnection: " + goes_on in answer


def test_callers_who_do_not_close_hold_up_nobody(server: Server) -> None:
    with ExitStack() as stack:
        callers = connect(server, MANY, stack)
        for caller in callers:
            caller.sendall(b"GET\r\n\r\n")
        assert health(server, 5) == 200
        assert all(caller.recv(100).startswith(b"HTTP/1.1 400 ") for caller in callers)


def test_more_connections_than_files_leave_room_for_those_who_ask(tmp_path: Path) -> None:
    with FewFiles(tmp_path / "svc.db", 420, "--demo") as server, ExitStack() as stack:
        callers = connect(server, 500, stack)
        assert health(server, 10) == 200
        assert callers[0].recv(100) == b""  # who waited longest has made room
        callers[-1].sendall(HEAD + b"\r\n")
        assert callers[-1].recv(100).startswith(b"HTTP/1.1 200 ")
        assert not re.search(r"Traceback|no file|ERROR", server.log)
        assert server.stop() == 0
