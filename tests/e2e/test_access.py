"""Keys and access on started servers, with the command line at work on the same database."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from gunicorn.arbiter import Arbiter

from svc.store import Database
from tests.e2e.serving import ROOT, WAIT_S, GunicornServer, Server, environment, run, stored
from tests.scripted import ScriptedProvider
from tests.web.models import decision, replying

# Those that come with wrong keys, and how many requests on each. Most are refused at once, and the
# rest half a second later.
CONNECTIONS, REQUESTS = 16, 125


def svc(*arguments: str, db: Path) -> str:
    """What a command prints; it has to end well."""
    ended = subprocess.run(
        [sys.executable, "-m", "svc.cli.main", *arguments, "--db", str(db)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def make_key(db: Path, name: str, *options: str) -> tuple[str, str]:
    """The id and the text of a new key."""
    made = svc("keys", "create", "--name", name, *options, db=db)
    found = re.fullmatch(r"id:  (\S+)\nkey: (\S+)\n", made)
    assert found
    return found[1], found[2]


def ask(server: Server, key: str | None = None, **fields: Any) -> requests.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return requests.post(
        f"{server.url}/v1/decide", json=decision(**fields), headers=headers, timeout=WAIT_S
    )


def public_address() -> str:
    """An address of this machine that is not its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but its loopback")
        return str(sock.getsockname()[0])


class PublicGunicorn(GunicornServer):
    """On every address of this machine, past the check of what it listens on."""

    def _start(self, *pass_fds: int) -> None:
        with socket.create_server(("0.0.0.0", 0)) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._command += ["--bind", f"fd://{listener.fileno()}"]
            Server._start(self, listener.fileno())
        self._listening.set()

    def from_outside(self, host: str = "localhost") -> requests.Response:
        url = f"http://{public_address()}:{urlsplit(self.url).port}/v1/models"
        return requests.get(url, headers={"Host": host}, timeout=WAIT_S)


def test_keys_that_the_command_line_makes_and_revokes_count_at_once(db: Path) -> None:
    with Server(db, "--demo") as server:
        assert ask(server).status_code == 200
        key_id, key = make_key(db, "ada", "--project", "shop")
        assert ask(server).status_code == 401
        assert ask(server, key).json()["project"] == "shop"
        assert ask(server, key, project="bank").status_code == 403
        svc("keys", "revoke", key_id, db=db)
        assert ask(server, key).status_code == 401
        assert server.get("/health").status_code == 200
        assert server.stop() == 0
        assert key not in server.log


def test_a_key_counts_no_more_once_another_file_is_in_place_of_the_database(db: Path) -> None:
    """As when a backup from before, in which the key is revoked, is put back under the server."""
    key_id, key = make_key(db, "ada")
    restored = db.with_name("restored.db")
    shutil.copy(db, restored)
    svc("keys", "revoke", key_id, db=restored)
    with Server(db, "--demo") as server:
        assert ask(server, key).status_code == 200
        for found in db.parent.glob(f"{db.name}*"):
            found.unlink(missing_ok=True)
        restored.rename(db)
        assert {ask(server, key).status_code for _ in range(3)} == {500}
        assert server.get("/health").status_code == 200
        assert server.stop() == 0
        assert "another file is in the place of the database file" in server.log
    assert stored(db) == {}


@pytest.mark.parametrize(("workers", "replaced"), [("1", False), ("2", True)])
def test_a_worker_that_starts_later_never_serves_without_the_keys_of_before(
    db: Path, workers: str, replaced: bool
) -> None:
    """The master starts it in the place of one that died, when the file is not there any more."""
    _, key = make_key(db, "ada")
    other = db.with_name("other.db")
    Database.open(other).close()
    with Server(db, "--demo", "--workers", workers) as server:
        assert ask(server, key).status_code == 200
        for found in db.parent.glob(f"{db.name}*"):
            found.unlink(missing_ok=True)
        if replaced:
            other.rename(db)
        os.kill(min(server.workers), signal.SIGKILL)
        statuses = set()
        give_up_at = time.monotonic() + WAIT_S
        while server.runs and time.monotonic() < give_up_at:
            with contextlib.suppress(requests.RequestException):
                statuses.add(ask(server).status_code)
        assert server.wait() == Arbiter.APP_LOAD_ERROR
    assert statuses <= {401, 500}
    assert "another file is in" in server.log if replaced else "was deleted" in server.log
    assert "Traceback" not in server.log
    assert db.exists() == replaced


def test_a_server_that_requires_keys_does_not_start_on_a_database_without(db: Path) -> None:
    refused = run("--db", str(db), "--addr", "127.0.0.1:0", "--require-keys")
    assert refused.returncode == 1
    assert "has no API keys" in refused.stderr
    _, key = make_key(db, "ada")
    with Server(db, "--demo", SVC_REQUIRE_KEYS="1") as server:
        assert ask(server).status_code == 401
        assert ask(server, key).status_code == 200


def test_a_public_address_is_served_once_there_is_a_key(db: Path) -> None:
    _, key = make_key(db, "ada")
    with Server(db, "--demo", "--addr", "0.0.0.0:0") as server:
        assert ask(server).status_code == 401
        assert ask(server, key).status_code == 200


@pytest.mark.slow
def test_two_servers_and_the_command_line_use_one_database_at_the_same_time(db: Path) -> None:
    _, key = make_key(db, "ada", "--rpm", "1000000")
    with ScriptedProvider(replying()) as provider:
        settings = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with Server(db, **settings) as one, Server(db, **settings) as other:
            with ThreadPoolExecutor(9) as threads:
                asked = [
                    threads.submit(ask, server, key, state=f"cat {n}")
                    for n in range(60)
                    for server in (one, other)
                ]
                for n in range(4):
                    key_id, text = make_key(db, f"n{n}")
                    assert {ask(server, text).status_code for server in (one, other)} == {200}
                    svc("keys", "revoke", key_id, db=db)
                    assert {ask(server, text).status_code for server in (one, other)} == {401}
                answers = [future.result() for future in asked]
            assert {answer.status_code for answer in answers} == {200}
            assert (one.stop(), other.stop()) == (0, 0)
            assert "locked" not in one.log + other.log
    assert {answer.json()["id"] for answer in answers} <= stored(db).keys()


@pytest.mark.slow
def test_those_with_wrong_keys_do_not_starve_those_with_right_ones(db: Path) -> None:
    _, key = make_key(db, "ada", "--rpm", "1000000")

    def knock(server: Server) -> set[int]:
        with requests.Session() as session:
            session.headers["Authorization"] = "Bearer svc_wrong"
            url = f"{server.url}/v1/decide"
            return {
                session.post(url, json=decision(), timeout=WAIT_S).status_code
                for _ in range(REQUESTS)
            }

    with Server(db, "--demo") as server, ThreadPoolExecutor(CONNECTIONS) as threads:
        knocking = [threads.submit(knock, server) for _ in range(CONNECTIONS)]
        answers: list[int] = []
        while not all(future.done() for future in knocking):
            answers.append(ask(server, key).status_code)
        assert [future.result() for future in knocking] == [{401}] * CONNECTIONS
        assert len(answers) >= 5 and set(answers) == {200}


def test_without_keys_only_this_machine_is_answered_whatever_the_socket(db: Path) -> None:
    with PublicGunicorn(db) as server:
        assert server.get("/v1/models").status_code == 200
        refused = server.from_outside()
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "forbidden")
        assert "svc keys create" in refused.json()["error"]["message"]


def test_with_no_auth_every_machine_is_answered(db: Path) -> None:
    with PublicGunicorn(db, SVC_NO_AUTH="1") as server:
        assert server.from_outside("svc.example.org").status_code == 200


def gunicorn(db: Path, bind: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """`gunicorn wsgi:app` to its end, for starts that are refused."""
    return subprocess.run(
        [sys.executable, "-m", "gunicorn", "-b", bind, "wsgi:app"],
        cwd=ROOT,
        env=environment(SVC_DB=str(db), **settings),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def test_gunicorn_does_not_start_on_a_public_address_without_keys(db: Path) -> None:
    ended = gunicorn(db, "0.0.0.0:0")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "0.0.0.0" in line and "svc keys create" in line


def test_gunicorn_does_not_start_on_a_name_that_there_is_not(db: Path) -> None:
    ended = gunicorn(db, "nowhere.invalid:0")
    assert ended.returncode == 1
    assert ended.stderr == "Error: cannot listen on 'nowhere.invalid': there is no such host\n"


class NamedGunicorn(GunicornServer):
    """Bound to a name."""

    def _start(self, *pass_fds: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._command += ["--bind", f"localhost:{port}"]
        Server._start(self)
        while self._process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), WAIT_S).close()
                break
        self._listening.set()


def test_gunicorn_starts_on_the_name_of_this_machine_without_keys(db: Path) -> None:
    with NamedGunicorn(db) as server:
        assert server.get("/v1/models").status_code == 200
        assert server.stop() == 0


class UnixGunicorn(GunicornServer):
    """On a Unix socket beside the database."""

    def __init__(self, db: Path) -> None:
        super().__init__(db)
        self._path = str(db.with_suffix(".sock"))

    def _start(self, *pass_fds: int) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen()
            self._command += ["--bind", f"fd://{listener.fileno()}"]
            Server._start(self, listener.fileno())
        self._listening.set()

    def get(self, path: str, host: str = "localhost") -> requests.Response:
        connection = http.client.HTTPConnection(host, timeout=WAIT_S)
        response = requests.Response()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(self._path)
            connection.sock = sock
            connection.request("GET", path)
            response.status_code = connection.getresponse().status
        return response


def test_a_unix_socket_is_of_this_machine(db: Path) -> None:
    with UnixGunicorn(db) as server:
        assert server.get("/v1/models").status_code == 200
        assert server.get("/v1/models", "svc.example.org").status_code == 403
