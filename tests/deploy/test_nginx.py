"""nginx with the configuration of deploy/, in front of two instances with their own keys."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import pytest
import requests

from tests.e2e.serving import ROOT, WAIT_S, Server, environment
from tests.e2e.tls import write_certificate
from tests.store.holding import until
from tests.web.models import decision

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
# Bytes that fit into no buffer of nginx, and not into those of the sockets on the way.
LONG = 15_000_000
HOSTS = ("acme.example", "globex.example")


class Instance(Protocol):
    """What nginx passes requests on to."""

    url: str


class Front:
    """What callers see: one address, and a name for each instance."""

    def __init__(self, port: int, certificate: Path, keys: dict[str, str]) -> None:
        self.port, self._certificate, self._keys = port, str(certificate), keys

    def ask(
        self,
        host: str,
        method: str,
        path: str,
        key_of: str | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> requests.Response:
        """Ask one host with its own key, with another host's, or with none."""
        key = self._keys.get(host if key_of is None else key_of)
        own = {"Host": host} | ({"Authorization": f"Bearer {key}"} if key else {})
        return requests.request(
            method,
            f"https://127.0.0.1:{self.port}{path}",
            headers={**own, **(headers or {})},
            verify=self._certificate,
            timeout=WAIT_S,
            **fields,
        )

    def connect(self, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLSocket:
        """An encrypted connection, of this version or an older one."""
        context = ssl.create_default_context(cafile=self._certificate)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = newest
        sock = socket.create_connection(("127.0.0.1", self.port), WAIT_S)
        try:
            return context.wrap_socket(sock, server_hostname="127.0.0.1")
        except ssl.SSLError:
            sock.close()
            raise

    def send(self, sent: bytes, encrypted: bool) -> bytes:
        """Send bytes on a connection of their own; all that comes back."""
        plain = partial(socket.create_connection, ("127.0.0.1", self.port), WAIT_S)
        with self.connect() if encrypted else plain() as sock:
            sock.sendall(sent)
            return b"".join(iter(lambda: sock.recv(65_536), b""))


def make_key(db: Path) -> str:
    command = [sys.executable, "-m", "svc.cli.main", "keys", "create", "--name", "test"]
    made = subprocess.run(
        [*command, "--db", str(db)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.split()[-1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def configuration(
    folder: Path,
    port: int,
    instances: Mapping[str, Sequence[Instance]],
    address: str = "127.0.0.1",
) -> str:
    """The configuration as it is deployed, with this test's files, names and instances in it."""
    text = (ROOT / "deploy/nginx.conf").read_text()
    changes = {
        "listen 443 ssl;": f"listen {address}:{port} ssl;",
        "/etc/svc/tls.crt": str(folder / "tls.pem"),
        "/etc/svc/tls.key": str(folder / "tls.pem"),
    }
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    text = _replaced(r"( +\S+\.example +\w+;\n)+", "{name} {key};\n", text, instances)
    upstream = "upstream {key} {{ {servers} keepalive 64; }}\n"
    text = _replaced(r"( +upstream .*\n)+", upstream, text, instances)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    text = text.replace("http {\n", "http {\n" + paths)
    return f"user root;\ndaemon off;\npid {folder}/nginx.pid;\n{text}"


def _replaced(lines: str, line: str, text: str, instances: Mapping[str, Sequence[Instance]]) -> str:
    """The text with a line for each name in place of the lines of the deployed names."""
    own = ""
    for number, (name, servers) in enumerate(instances.items()):
        addresses = (f"server {one.url.removeprefix('http://')};" for one in servers)
        own += line.format(name=name, key=f"instance{number}", servers=" ".join(addresses))
    changed, count = re.subn(lines, own, text)
    assert count == 1
    return changed


def each(servers: Sequence[Instance]) -> dict[str, Sequence[Instance]]:
    """An instance for each of the names."""
    return {host: [server] for host, server in zip(HOSTS, servers, strict=True)}


@contextmanager
def running(folder: Path, port: int, address: str = "127.0.0.1") -> Iterator[None]:
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    with subprocess.Popen(command) as process:
        try:
            until = time.monotonic() + WAIT_S
            while True:
                try:
                    socket.create_connection((address, port), 5).close()
                    break
                except ConnectionRefusedError:
                    assert process.poll() is None and time.monotonic() < until
                    time.sleep(0.01)
            yield
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    certificate = write_certificate(folder / "tls.pem")
    keys = {host: make_key(folder / host) for host in HOSTS}
    with (
        Server(folder / HOSTS[0], "--demo") as one,
        Server(folder / HOSTS[1], "--demo") as other,
    ):
        (folder / "nginx.conf").write_text(configuration(folder, port, each([one, other])))
        with running(folder, port):
            yield Front(port, certificate, keys)


def test_every_projects_feedback_finds_its_decision(front: Front) -> None:
    for n, host in enumerate(HOSTS * 3):
        project = f"project-{n}"
        made = front.ask(host, "POST", "/v1/decide", json=decision(n, project=project))
        assert made.status_code == 200
        label = {"decision_id": made.json()["id"], "question": "animal", "label": "cat"}
        told = front.ask(host, "POST", "/v1/feedback", json=label)
        assert (told.status_code, told.json()["labels"]) == (200, 1)
        (other,) = set(HOSTS) - {host}
        assert front.ask(other, "POST", "/v1/feedback", json=label).status_code == 404


def test_a_key_is_good_for_its_own_instance_alone(front: Front) -> None:
    one, other = HOSTS
    assert front.ask(one, "GET", "/v1/models").status_code == 200
    assert front.ask(one, "GET", "/v1/models", key_of=other).status_code == 401
    assert front.ask(one, "GET", "/v1/models", key_of="nobody").status_code == 401


def test_a_name_that_no_instance_has_is_an_error_in_the_same_shape(front: Front) -> None:
    response = front.ask("initech.example", "GET", "/v1/models")
    assert response.status_code == 421
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["x-request-id"]
    assert response.headers["Strict-Transport-Security"]
    assert response.json()["error"]["type"] == "not_found"


def test_a_body_over_the_limit_is_refused_in_the_instances_words(front: Front) -> None:
    response = front.ask(HOSTS[0], "POST", "/v1/decide", data=b" " * (16 * 1024 * 1024 + 1))
    assert (response.status_code, response.json()["error"]["type"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("path", "headers", "status", "type_"),
    [
        ("/health?" + "x" * 9_000, {}, 413, "too_large"),
        ("/health", {"x": "x" * 9_000}, 413, "too_large"),
        ("/health", {"Content-Length": "many"}, 400, "invalid_json"),
        ("/too-large", {}, 404, "not_found"),
        ("/not-allowed", {}, 404, "not_found"),
        ("/unreadable", {}, 404, "not_found"),
    ],
)
def test_what_nginx_refuses_itself_is_an_error_in_the_same_shape(
    front: Front, path: str, headers: dict[str, str], status: int, type_: str
) -> None:
    response = front.ask(HOSTS[0], "GET", path, headers=headers)
    assert (response.status_code, response.json()["error"]["type"]) == (status, type_)
    assert response.headers["x-request-id"] and response.headers["Strict-Transport-Security"]


@pytest.mark.parametrize(
    ("encrypted", "line", "status", "type_"),
    [
        (True, b"TRACE /health HTTP/1.1", 405, "method_not_allowed"),
        (True, b"GET /health HTTP/3.0", 400, "invalid_json"),
        (True, b"GET /health HTTP/1.1\r\nTransfer-Encoding: other", 400, "invalid_json"),
        (True, b"\x01", 400, "invalid_json"),
        (False, b"GET /health HTTP/1.1", 400, "invalid_json"),
    ],
)
def test_what_nginx_cannot_read_is_an_error_in_the_same_shape(
    front: Front, encrypted: bool, line: bytes, status: int, type_: str
) -> None:
    answer = front.send(line + b"\r\nHost: acme.example\r\nConnection: close\r\n\r\n", encrypted)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body)["error"]["type"] == type_
    for header in (b"Content-Type: application/json", b"x-request-id: ", b"Strict-Transport-"):
        assert header in head


def test_one_address_does_not_get_every_thread_of_an_instance(front: Front) -> None:
    with contextlib.ExitStack() as stack:
        # More than 128: requests of the tests before may not be over yet, and have some refused.
        for _ in range(160):
            begun = b"POST /v1/decide HTTP/1.1\r\nHost: acme.example\r\nContent-Length: 9\r\n\r\n"
            stack.enter_context(front.connect()).sendall(begun)
        until(lambda: front.ask(HOSTS[0], "GET", "/health").status_code == 429)
        response = front.ask(HOSTS[0], "GET", "/health")
        assert response.json()["error"]["type"] == "rate_limited"
        assert response.headers["Retry-After"] == "5" and response.headers["x-request-id"]
    until(lambda: front.ask(HOSTS[0], "GET", "/health").status_code == 200)


def test_old_versions_of_tls_are_refused(front: Front) -> None:
    with pytest.warns(DeprecationWarning, match="TLSv1_1"), pytest.raises(ssl.SSLError):
        front.connect(ssl.TLSVersion.TLSv1_1)


def test_no_version_is_told_and_the_request_id_comes_back_once(front: Front) -> None:
    response = front.ask(HOSTS[0], "GET", "/health")
    assert not any(character.isdigit() for character in response.headers["Server"])
    assert "," not in response.headers["x-request-id"]


class Upstream(socketserver.ThreadingTCPServer):
    """An instance that deals with each connection as `handler` does."""

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.posts = self.came = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join(WAIT_S)
        self.server_close()


class Closing(socketserver.BaseRequestHandler):
    """Answers every GET, and closes the connection of a POST."""

    server: Upstream

    def handle(self) -> None:
        while data := self.request.recv(65_536):
            if data.startswith(b"POST"):
                self.server.posts += 1
                return
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_a_decision_is_never_sent_twice(tmp_path: Path) -> None:
    certificate, port = write_certificate(tmp_path / "tls.pem"), free_port()
    with Upstream(Closing) as instance:
        (tmp_path / "nginx.conf").write_text(
            configuration(tmp_path, port, each([instance, instance]))
        )
        with running(tmp_path, port):
            front = Front(port, certificate, {})
            assert front.ask(HOSTS[0], "GET", "/health").status_code == 200
            assert front.ask(HOSTS[0], "POST", "/v1/decide", json={}).status_code == 503
    assert instance.posts == 1


class Echo(socketserver.BaseRequestHandler):
    """Answers a request with its body, which ends with a line break."""

    server: Upstream

    def handle(self) -> None:
        came = bytearray()
        while not came.endswith(b"\n") or len(came) < LONG:
            came += self.request.recv(65_536)
            self.server.came = len(came)
        body = came.partition(b"\r\n\r\n")[2]
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def test_no_body_and_no_response_is_written_into_a_file(tmp_path: Path) -> None:
    certificate, port = write_certificate(tmp_path / "tls.pem"), free_port()
    body = b"state" * (LONG // 5) + b"\n"
    with Upstream(Echo) as instance:
        (tmp_path / "nginx.conf").write_text(configuration(tmp_path, port, each([instance] * 2)))
        with running(tmp_path, port), Front(port, certificate, {}).connect() as caller:
            # A caller that takes in little at a time.
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            # Where nginx would make files now lies a file.
            for folder in (tmp_path / "client_body", tmp_path / "proxy"):
                folder.rmdir()
                folder.touch()
            head = b"POST /v1/decide HTTP/1.1\r\nHost: acme.example\r\nConnection: close\r\n"
            sent = head + b"Content-Length: %d\r\n\r\n" % len(body)
            caller.sendall(sent + body[:LONG])
            until(lambda: instance.came >= LONG)
            caller.sendall(body[LONG:])
            answer = b"".join(iter(lambda: caller.recv(65_536), b""))
    assert answer.endswith(body)


@pytest.mark.parametrize("written_as", ["a name", "an address"])
def test_a_front_does_not_open_an_instance_without_keys(tmp_path: Path, written_as: str) -> None:
    certificate, port = write_certificate(tmp_path / "tls.pem"), free_port()
    with Server(tmp_path / "svc.db", "--demo") as server:
        text = configuration(tmp_path, port, each([server, server]))
        if written_as == "an address":
            text = text.replace("proxy_pass http://$instance;", f"proxy_pass {server.url};")
            assert server.url + ";" in text
        (tmp_path / "nginx.conf").write_text(text)
        with running(tmp_path, port):
            front = Front(port, certificate, {})
            assert front.ask(HOSTS[0], "GET", "/health").status_code == 200
            assert front.ask(HOSTS[0], "GET", "/v1/models").status_code == 403
            server.kill()
            response = front.ask(HOSTS[0], "GET", "/health")
            assert (response.status_code, response.json()["error"]["type"]) == (
                503,
                "internal_error",
            )
            assert json.loads(response.headers["Retry-After"]) == 5
