"""What only a real connection can bring: chunks, pipelines, halves of requests, no HTTP at all."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest

from svc.demo import DemoServer
from tests.e2e.serving import Server
from tests.web.models import decision

GOOD = json.dumps(decision()).encode()
MB = 1024 * 1024
POST = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def server(demo: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    db = tmp_path_factory.mktemp("http") / "svc.db"
    settings = {"SVC_PROVIDER_OWN_URL": demo.url, "SVC_MODEL": "@own/lexical"}
    with Server(db, "--max-body-mb", "1", **settings) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.log and "unforeseen" not in server.log


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    address = urlsplit(server.url)
    assert address.hostname and address.port
    with socket.create_connection((address.hostname, address.port), timeout=20) as sock:
        yield sock


def read(sock: socket.socket) -> HTTPResponse:
    response = HTTPResponse(sock)
    response.begin()
    return response


def exchange(server: Server, wire: bytes) -> tuple[int, dict[str, dict[str, str]]]:
    """Status and JSON of the answer to raw bytes."""
    with connected(server) as sock:
        sock.sendall(wire)
        with read(sock) as response:
            assert response.headers["x-request-id"]
            return response.status, json.load(response)


def chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))


def test_a_chunked_body_is_read(server: Server) -> None:
    status, body = exchange(server, CHUNKED + b"\r\n" + chunks(GOOD[:9], GOOD[9:]))
    assert status == 200
    assert "animal" in body["answers"]


def test_a_chunked_compressed_body_is_read(server: Server) -> None:
    packed = gzip.compress(GOOD)
    head = CHUNKED + b"Content-Encoding: gzip\r\n\r\n"
    assert exchange(server, head + chunks(packed[:9], packed[9:]))[0] == 200


def test_a_chunked_body_over_the_limit_is_413(server: Server) -> None:
    piece = b" " * 65_536
    status, body = exchange(server, CHUNKED + b"\r\n" + chunks(*[piece] * (MB // len(piece) + 1)))
    assert (status, body["error"]["type"]) == (413, "too_large")
    assert "1 MB" in body["error"]["message"]


@pytest.mark.parametrize(
    "costly",
    [
        # Each took 6 microseconds, and a body of 2 MB so came to 12 seconds.
        b"1\r\n \r\n" * 70_000,
        # Each took 200 microseconds, and a body of 16 MB so came to 13 seconds.
        (b'101;a="' + b"\\y" * 3_990 + b'"\r\n' + b" " * 257 + b"\r\n") * 500,
        b"1\r\n \r\n0\r\n" + b"a: b\r\n" * 20_000,
    ],
    ids=["chunks of a byte", "extensions", "trailers"],
)
def test_a_body_in_costly_chunks_ends_the_connection_soon(server: Server, costly: bytes) -> None:
    rest = chunks(GOOD) + CHUNKED + b"\r\n" + chunks(GOOD)
    with connected(server) as sock:
        sock.sendall(CHUNKED + b"\r\n" + costly + rest)
        with read(sock) as response:
            assert response.status == 413
            assert "too many chunks" in json.load(response)["error"]["message"]
        assert sock.recv(100) == b""


def test_a_chunked_body_of_exactly_the_limit_is_read(server: Server) -> None:
    status, _ = exchange(server, CHUNKED + b"\r\n" + chunks(GOOD.ljust(MB)))
    assert status == 200


def test_a_chunked_body_without_end_is_413_while_it_is_still_coming(server: Server) -> None:
    with connected(server) as sock:
        sock.sendall(CHUNKED + b"\r\n" + chunks(b" " * (2 * MB))[:-5])
        assert read(sock).status == 413


def test_an_announced_length_over_the_limit_is_413_before_it_comes(server: Server) -> None:
    status, body = exchange(server, POST + b"Content-Length: 99999999999\r\n\r\n")
    assert (status, body["error"]["type"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/decide", 413), ("/nowhere", 404), ("/health", 405)]
)
def test_a_caller_who_is_refused_while_still_sending_gets_the_answer_and_no_reset(
    server: Server, path: str, status: int
) -> None:
    body = b" " * (8 * MB)
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % path.encode()
    for wire in (
        b"Content-Length: %d\r\n\r\n" % len(body) + body,
        b"Transfer-Encoding: chunked\r\n\r\n" + chunks(body),
    ):
        assert exchange(server, head + wire)[0] == status


def test_who_expects_100_continue_is_told_to(server: Server) -> None:
    with connected(server) as sock:
        sock.sendall(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(GOOD))
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(GOOD)
        assert read(sock).status == 200


def test_a_connection_goes_on_after_a_refusal(server: Server) -> None:
    with connected(server) as sock:
        for body, status in ((b"no json", 400), (GOOD, 200), (b"{}", 422), (GOOD, 200)):
            sock.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            with read(sock) as response:
                assert response.status == status
                response.read()


@pytest.mark.parametrize(
    "wire",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        POST + b"Content-Length: many\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        CHUNKED + b"\r\nzz\r\nhello\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nno colon\r\n\r\n",
    ],
)
def test_what_is_no_valid_http_is_400_in_the_error_shape(server: Server, wire: bytes) -> None:
    status, body = exchange(server, wire)
    assert (status, body["error"]["type"]) == (400, "invalid_json")


def test_bodies_that_come_slowly_do_not_hold_up_those_of_their_size(server: Server) -> None:
    """Eight of 90 KB, all but the last bytes of which are there."""
    body = json.dumps({**decision(), "state": 90_000 * "x"}).encode()
    head = POST + b"Content-Length: %d\r\n\r\n" % len(body)
    with ExitStack() as slow:
        begun = [slow.enter_context(connected(server)) for _ in range(8)]
        for sock in begun:
            sock.sendall(head + body[:-10])
        status, _ = exchange(server, head + body)
        assert status == 200
        for sock in begun:
            sock.sendall(body[-10:])
            with read(sock) as response:
                assert response.status == 200


def test_the_fifth_body_of_unknown_length_waits_for_the_end_of_another(server: Server) -> None:
    """Each counts as a quarter of what the bodies of a key may have in memory."""
    with ExitStack() as slow:
        begun = [slow.enter_context(connected(server)) for _ in range(4)]
        for sock in begun:
            sock.sendall(CHUNKED + b"\r\n" + chunks(GOOD)[:40])
        time.sleep(0.5)
        with connected(server) as fifth:
            fifth.sendall(CHUNKED + b"\r\n" + chunks(GOOD))
            fifth.settimeout(1.0)
            with pytest.raises(TimeoutError):
                fifth.recv(1)
            begun[0].close()
            fifth.settimeout(20.0)
            with read(fifth) as response:
                assert response.status == 200


def test_a_caller_who_goes_away_half_way_harms_nobody(server: Server) -> None:
    for wire in (b"POST", POST + b"Content-Length: 100\r\n\r\n{", CHUNKED + b"\r\n5\r\nhel"):
        with connected(server) as sock:
            sock.sendall(wire)
    assert server.get("/health").status_code == 200


def test_a_request_id_with_a_line_break_in_it_adds_no_header(server: Server) -> None:
    wire = b"GET /health HTTP/1.1\r\nHost: h\r\nx-request-id: a\rX-Forged: 1\r\n\r\n"
    with connected(server) as sock:
        sock.sendall(wire)
        response = read(sock)
        assert response.headers["X-Forged"] is None
        assert response.headers["x-request-id"]


def test_the_server_does_not_say_its_version(server: Server) -> None:
    with connected(server) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        headers = read(sock).headers
    assert not any(character.isdigit() for character in headers.get("Server", ""))
    assert not {"X-Powered-By", "Via"} & set(headers)


def test_no_header_says_where_the_path_of_a_request_begins(server: Server) -> None:
    for name in (b"SCRIPT_NAME", b"Script-Name", b"PATH_INFO"):
        head = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n" + name + b": /v1\r\n\r\n"
        status, said = exchange(server, head)
        assert (status, said["error"]["type"]) == (404, "not_found")
