"""Starting and stopping the server, and what it says when it cannot start."""

from __future__ import annotations

import contextlib
import signal
import socket
import sqlite3
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from svc import __version__
from tests.e2e.serving import GunicornServer, Server, run, stored
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, decision, reply_to, replying


class Gate:
    """A provider's handler that says when it was asked and answers when it is let."""

    def __init__(self) -> None:
        self.asked, self.open = threading.Event(), threading.Event()

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        self.asked.set()
        self.open.wait(30)
        return Reply(reply_to(PREFERS_CATS, body))


def refused(*arguments: str, **settings: str) -> str:
    """The one line that a refused start says."""
    ended = run(*arguments, **settings)
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


def wait_until_it_takes_nothing_more(server: Server) -> None:
    with contextlib.suppress(requests.RequestException):
        while True:
            requests.get(server.url + "/health", timeout=0.5)


def test_the_demonstration_needs_no_key_and_no_network(db: Path) -> None:
    with Server(db, "--demo") as server:
        assert server.get("/health").json() == {"status": "ok", "version": __version__}
        answered = server.post(decision()).json()
        assert answered["model"] == "@demo/lexical"
        assert answered["answers"]["animal"]["choice"] == "cat"
        assert server.stop() == 0
    assert list(stored(db)) == [answered["id"]]


def test_gunicorn_serves_the_same(db: Path) -> None:
    with ScriptedProvider(replying()) as provider:
        settings = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with (
            GunicornServer(db, **settings) as gunicorn,
            Server(db.with_name("other.db"), **settings) as serve,
        ):
            one, other = (server.post(decision()).json() for server in (gunicorn, serve))
            assert gunicorn.post({}).json() == serve.post({}).json()
            assert gunicorn.get("/v1/models").json() == serve.get("/v1/models").json()
            assert (gunicorn.stop(), serve.stop()) == (0, 0)
    for body in (one, other):
        del body["id"], body["latency_ms"]
    assert one == other


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_stopped_answers_what_is_under_way(
    db: Path, number: signal.Signals
) -> None:
    gate = Gate()
    with ScriptedProvider(gate) as provider, ThreadPoolExecutor(1) as threads:
        with Server(db, "--model", "@scripted/m", SVC_PROVIDER_SCRIPTED_URL=provider.url) as server:
            asked = threads.submit(server.post, decision())
            assert gate.asked.wait(10)
            server.send(number)
            wait_until_it_takes_nothing_more(server)
            gate.open.set()
            response = asked.result()
            assert server.wait() == 0
            assert "Traceback" not in server.log and "Exception" not in server.log
    assert response.status_code == 200
    assert list(stored(db)) == [response.json()["id"]]


def test_an_idle_connection_does_not_hold_up_the_stop(db: Path) -> None:
    with Server(db, "--demo") as server, requests.Session() as session:
        session.get(server.url + "/health")
        server.send(signal.SIGTERM)
        assert server.wait(10) == 0


def test_an_address_in_use_is_refused_in_one_line(db: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refused("--addr", address, "--db", str(db))
    assert "127.0.0.1" in line and "in use" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--addr", "nonsense"), "--addr"),
        (("--addr", "127.0.0.1:99999"), "--addr"),
        (("--cache-size", "-1"), "--cache-size"),
        (("--max-body-mb", "0"), "--max-body-mb"),
        (("--latest-config", "svc-9.9.9"), "svc-1.3.0"),
    ],
)
def test_a_bad_option_is_named_with_what_is_allowed(
    db: Path, arguments: tuple[str, ...], words: str
) -> None:
    line = refused("--db", str(db), *arguments)
    assert arguments[0] in line and words in line
    assert not db.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SVC_PROVIDER_OWN_TIMEOUT", "0.5"),
        ("SVC_PROVIDER_OWN_RPM", "many"),
        ("SVC_PROVIDER_OWN_PRICE", "1"),
        ("SVC_PROVIDER_OWN_URL", "ftp://example.org"),
        ("SVC_RPM", "0"),
        ("SVC_DAILY_LIMIT", "-3"),
        ("SVC_LOG", "xml"),
        ("SVC_LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_variable_is_named(db: Path, name: str, value: str) -> None:
    assert name in refused("--db", str(db), **{name: value})
    assert not db.exists()


def test_a_public_address_without_keys_is_refused(db: Path) -> None:
    line = refused("--addr", "0.0.0.0:0", "--db", str(db))
    assert "0.0.0.0" in line and "--no-auth" in line and "svc keys create" in line


def test_a_public_address_is_served_with_no_auth(db: Path) -> None:
    with Server(db, "--demo", "--no-auth", "--addr", "0.0.0.0:0") as server:
        assert server.url.startswith("http://0.0.0.0:")
        assert server.stop() == 0


def test_a_file_that_is_no_database_is_refused_and_untouched(db: Path) -> None:
    db.write_text("my notes, not a database\n" * 100)
    line = refused("--addr", "127.0.0.1:0", "--db", str(db))
    assert str(db) in line and "not a SQLite database" in line
    assert db.read_text() == "my notes, not a database\n" * 100


def test_a_database_of_another_program_is_refused_and_untouched(db: Path) -> None:
    connection = sqlite3.connect(db)
    connection.execute("CREATE TABLE songs (title)")
    connection.close()
    before = db.read_bytes()
    assert "another program" in refused("--addr", "127.0.0.1:0", "--db", str(db))
    assert db.read_bytes() == before


def test_a_database_of_a_newer_release_is_refused(db: Path) -> None:
    with Server(db, "--demo") as server:
        server.stop()
    connection = sqlite3.connect(db)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert "newer release" in refused("--addr", "127.0.0.1:0", "--db", str(db))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    line = refused("--addr", "127.0.0.1:0", "--db", str(tmp_path / "none" / "svc.db"))
    assert str(tmp_path / "none") in line


def test_gunicorn_says_the_same_in_one_line(db: Path) -> None:
    with pytest.raises(AssertionError, match="did not start") as refusal:
        with GunicornServer(db, SVC_RPM="0"):
            pass
    assert [line for line in str(refusal.value).splitlines() if "SVC_RPM" in line]
    assert "Traceback" not in str(refusal.value)
