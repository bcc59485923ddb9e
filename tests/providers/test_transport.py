"""The session of one provider, over real sockets: what it sends, keeps, and never does."""

import base64
import gzip
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
import requests

from svc import __version__, limits
from svc.providers.transport import Transport
from svc.providers.watchdog import Watchdog
from svc.wire import TooLong
from tests.scripted import Endless, Raw, Reply, ScriptedProvider, always, redirect

LONG = 30.0  # seconds: a limit that is not meant to be reached
REDIRECTS = (301, 302, 303, 307, 308)
EMPTY = Reply({})


@contextmanager
def sessions(url, pool_size=4, local=True):
    """A transport to `url`, as a function of path, key and body that makes one call."""
    with (
        closing(Transport(url, pool_size, local=local)) as transport,
        closing(Watchdog()) as watchdog,
    ):

        def post(path="/chat/completions", key=None, body=b"{}", method="POST"):
            with watchdog.watching(LONG):
                return transport.send(method, path, key, body, LONG)

        yield post


def test_a_request_has_these_headers_and_no_other():
    with ScriptedProvider(always(EMPTY)) as provider, sessions(provider.url) as post:
        post(key="k-1", body=b'{"a": 1}')
        post(path="/models", body=None, method="GET")
    asked, listed = (request.headers for request in provider.requests)
    common = {
        "host": f"127.0.0.1:{provider.port}",
        "accept": "application/json",
        "accept-encoding": "gzip",
        "content-type": "application/json",
        "user-agent": f"svc/{__version__}",
    }
    assert asked == {**common, "authorization": "Bearer k-1", "content-length": "8"}
    assert listed == common


def test_of_a_name_with_thousands_of_addresses_a_few_are_tried(monkeypatch):
    """Each takes time, and whoever answers for a name may list as many as a reply of DNS has."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    tried = []

    class Counting(socket.socket):
        def connect(self, address):
            tried.append(address)
            super().connect(address)

    kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    listed = [(*kind, (f"127.0.{n // 250}.{1 + n % 250}", port)) for n in range(4_000)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: listed)
    monkeypatch.setattr(socket, "socket", Counting)
    with sessions(f"http://many.example:{port}/v1") as post:
        with pytest.raises(requests.ConnectionError):
            post()
    assert len(tried) == limits.ADDRESSES_TRIED


def test_nothing_of_one_call_is_left_in_the_next():
    with ScriptedProvider(always(EMPTY)) as provider, sessions(provider.url) as post:
        post(key="k-1", body=b'{"first": "and longer"}')
        post(key=None, body=b'{"a": 1}')
        post(key="k-2", body=b"{}")
    assert provider.bodies == [{"first": "and longer"}, {"a": 1}, {}]
    keys = [request.headers.get("authorization") for request in provider.requests]
    assert keys == ["Bearer k-1", None, "Bearer k-2"]


@pytest.mark.parametrize(
    "cookie", ["a=b", "a=b; Path=/", "a=b; Domain=127.0.0.1; Max-Age=1000", "a=b; HttpOnly"]
)
def test_a_cookie_is_never_sent_back(cookie):
    reply = Reply({}, headers={"Set-Cookie": cookie})
    with ScriptedProvider(always(reply)) as provider, sessions(provider.url) as post:
        post()
        post(path="/models", body=None, method="GET")
        post()
    assert len(provider.requests) == 3
    assert all("cookie" not in request.headers for request in provider.requests)


def test_cookies_that_take_long_to_parse_are_not_parsed():
    cookies = ("Set-Cookie: " + "a=b;" * 16_000 + "\r\n") * 4
    reply = Raw(f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{cookies}\r\n{{}}".encode())
    with ScriptedProvider(always(reply)) as provider, sessions(provider.url) as post:
        began = time.thread_time()
        assert post().status == 200
        assert time.thread_time() - began < 1.0


@pytest.mark.parametrize("status", REDIRECTS)
def test_no_redirect_is_followed(status):
    with ScriptedProvider(always(EMPTY)) as elsewhere:
        for target in (elsewhere.url, "/v1/models"):
            reply = redirect(target, status)
            with ScriptedProvider(always(reply)) as provider, sessions(provider.url) as post:
                assert post(key="k-1").status == status
            assert len(provider.requests) == 1
    assert elsewhere.requests == []


@pytest.mark.parametrize("status", REDIRECTS)
def test_the_cap_counts_for_the_body_of_a_redirect_too(status):
    head = f"HTTP/1.1 {status} Scripted\r\nLocation: /v1/models\r\n"

    class EndlessRedirect:
        def play(self, sock, stop):
            sock.sendall(head.encode())
            sock.sendall(b"Content-Length: 1000000000\r\n\r\n")
            while not stop.is_set():
                sock.sendall(b" " * 65_536)
            return False

    with ScriptedProvider(always(EndlessRedirect())) as provider, sessions(provider.url) as post:
        with pytest.raises(TooLong):
            post()
    packed = gzip.compress(b" " * (limits.REPLY_BYTES + 1))
    bomb = Reply(packed, status, {"Location": "/v1/models", "Content-Encoding": "gzip"})
    with ScriptedProvider(always(bomb)) as provider, sessions(provider.url) as post:
        with pytest.raises(TooLong):
            post()


def test_as_many_connections_are_kept_as_calls_may_run_at_once():
    together = threading.Barrier(8)

    class Together:
        def play(self, sock, stop):
            together.wait(LONG)
            return EMPTY.play(sock, stop)

    with ScriptedProvider(always(Together())) as provider:
        with sessions(provider.url, pool_size=8) as post, ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                calls = [pool.submit(post) for _ in range(8)]
                assert [call.result(LONG).status for call in calls] == [200] * 8
    assert provider.connections == 8


def test_a_call_that_was_not_read_to_its_end_takes_no_place_in_the_pool():
    with ScriptedProvider(lambda body, n, _: EMPTY if n else Endless()) as provider:
        with sessions(provider.url, pool_size=1) as post:
            with pytest.raises(TooLong):
                post()
            for _ in range(3):
                assert post().status == 200
    assert provider.connections == 2


def test_the_proxy_is_that_of_the_start(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ScriptedProvider(always(EMPTY)) as proxy, ScriptedProvider(always(EMPTY)) as later:
        monkeypatch.setenv("http_proxy", f"http://user:word@127.0.0.1:{proxy.port}")
        with sessions("http://provider.invalid/v1", local=False) as post:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{later.port}")
            assert post(key="k-1").status == 200
    assert later.requests == []
    request = proxy.requests[0]
    assert request.path == "http://provider.invalid/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer k-1"
    words = base64.b64encode(b"user:word").decode()
    assert request.headers["proxy-authorization"] == f"Basic {words}"


def test_a_proxy_that_is_set_after_the_start_does_not_count(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ScriptedProvider(always(EMPTY)) as provider:
        with sessions(provider.url, local=False) as post:
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
            assert post().status == 200


@pytest.mark.parametrize("entry", ["machine 127.0.0.1", "default"])
def test_netrc_is_not_read(entry, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text(f"{entry} login user password word\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with ScriptedProvider(always(EMPTY)) as provider, sessions(provider.url) as post:
        post(key="k-1")
        post(key=None)
    keys = [request.headers.get("authorization") for request in provider.requests]
    assert keys == ["Bearer k-1", None]
