"""The demonstration server over real sockets: HTTP, errors, and how it ends."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests

from svc.demo import DemoServer

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


def address(server: DemoServer) -> tuple[str, int]:
    parts = urlsplit(server.url)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


def exchange(server: DemoServer, request: bytes) -> bytes:
    """All that comes back for raw bytes until the server closes."""
    with socket.create_connection(address(server), timeout=5) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_it_lists_its_one_model(server: DemoServer) -> None:
    with requests.get(f"{server.url}/models", timeout=5) as reply:
        assert [entry["id"] for entry in reply.json()["data"]] == ["lexical"]


def test_a_connection_is_kept_for_further_requests(server: DemoServer) -> None:
    connection = http.client.HTTPConnection(*address(server), timeout=5)
    sockets = set()
    for _ in range(3):
        connection.request("GET", "/v1/models?limit=1")
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200
        sockets.add(connection.sock)
    connection.close()
    assert len(sockets) == 1 and None not in sockets


def test_pipelined_requests_are_answered_in_order(server: DemoServer) -> None:
    both = b"GET /v1/models HTTP/1.1\r\n\r\nGET /nowhere HTTP/1.1\r\n\r\n"
    assert exchange(server, both).split(b"HTTP/1.1 ")[1:][0].startswith(b"200")
    assert exchange(server, both).split(b"HTTP/1.1 ")[1:][1].startswith(b"404")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nowhere", 404),
        ("POST", "/", 404),
        ("GET", CHAT, 405),
        ("POST", "/v1/models", 405),
        ("DELETE", "/v1/models", 405),
    ],
)
def test_a_wrong_route_or_method_gets_an_error_in_the_usual_shape(
    server: DemoServer, method: str, path: str, status: int
) -> None:
    connection = http.client.HTTPConnection(*address(server), timeout=5)
    connection.request(method, path)
    reply = connection.getresponse()
    assert reply.status == status
    assert b'"invalid_request_error"' in reply.read()
    assert (reply.getheader("Allow") is not None) == (status == 405)
    connection.close()


def test_a_head_request_gets_no_body(server: DemoServer) -> None:
    reply = exchange(server, b"HEAD /v1/models HTTP/1.1\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 405 ") and reply.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"garbage\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\xfc\x03\r\n\r\n", 400),
        (b"GET /v1/models SPDY/3\r\n\r\n", 400),
        (f"POST {CHAT} HTTP/1.1\r\nContent-Length: -1\r\n\r\n".encode(), 400),
        (f"POST {CHAT} HTTP/1.1\r\nContent-Length: 1\xb2\r\n\r\n".encode("latin-1"), 400),
        (f"POST {CHAT} HTTP/1.1\r\nContent-Length: {10**18}\r\n\r\n".encode(), 413),
        (f"POST {CHAT} HTTP/1.1\r\nContent-Length: {'9' * 5_000}\r\n\r\n".encode(), 413),
        (f"POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(), 411),
        (b"GET /v1/models HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"GET /v1/models HTTP/1.1\r\na: " + b"b" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"b" * 20_000 + b" HTTP/1.1\r\n\r\n", 414),
    ],
)
def test_bytes_that_are_no_request_end_the_connection_with_an_error(
    server: DemoServer, request_bytes: bytes, status: int
) -> None:
    reply = exchange(server, request_bytes)
    assert reply.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Connection: close" in reply and reply.count(b"Content-Length: ") == 1


def test_a_caller_that_leaves_in_the_middle_of_a_body_gets_nothing(server: DemoServer) -> None:
    head = f"POST {CHAT} HTTP/1.1\r\nContent-Length: 100\r\n\r\n".encode()
    assert exchange(server, head + b"{") == b""
    assert requests.get(f"{server.url}/models", timeout=5).status_code == 200


def test_a_caller_may_wait_for_the_leave_to_send_its_body(server: DemoServer) -> None:
    head = f"POST {CHAT} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode()
    with socket.create_connection(address(server), timeout=5) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{}")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_port_in_use_is_refused_at_once(server: DemoServer) -> None:
    with pytest.raises(OSError, match="in use"):
        DemoServer(port=address(server)[1])


def test_stop_ends_open_connections_and_every_thread() -> None:
    before = set(threading.enumerate())
    server = DemoServer()
    server.start()
    idle = [socket.create_connection(address(server), timeout=5) for _ in range(5)]
    assert requests.get(f"{server.url}/models", timeout=5).status_code == 200
    server.stop()
    assert [connection.recv(1) for connection in idle] == [b""] * 5
    assert set(threading.enumerate()) <= before
    for connection in idle:
        connection.close()
    server.stop()


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    server = DemoServer()
    server.stop()
    with pytest.raises(OSError):
        socket.create_connection(address(server), timeout=5).close()


def test_many_connections_at_once_get_the_same_reply(server: DemoServer) -> None:
    replies: list[bytes] = []

    def ask() -> None:
        replies.append(exchange(server, b"GET /v1/models HTTP/1.1\r\n\r\n" * 5))

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(replies) == 50 and len(set(replies)) == 1
    assert replies[0].count(b"HTTP/1.1 200 ") == 5
