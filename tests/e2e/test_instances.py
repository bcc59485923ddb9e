"""Two instances of one database file behind nginx, one of which is killed while both are asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from svc.client import Client, YesNo
from tests.deploy.test_nginx import NGINX, configuration, free_port, make_key, running
from tests.e2e.serving import Server, stored
from tests.e2e.tls import write_certificate
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, reply_to

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
# An address of this machine for which the client takes the certificates of its environment.
ADDRESS = "127.0.0.2"
# Of so many rows under way when an instance is killed, each may cost a call more: 1% of all.
ROWS, AT_ONCE = 800, 8
CATS = {"cats": YesNo("Is it about cats?")}
ONCE = {"debias": False}


def quick(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    return Reply(reply_to(PREFERS_CATS, body), delay=0.01)


@dataclass
class World:
    url: str
    key: str
    db: Path
    provider: ScriptedProvider
    instances: tuple[Server, Server]

    def client(self) -> Client:
        return Client(self.url, self.key, retries=8)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    db, port = tmp_path / "svc.db", free_port()
    certificate = write_certificate(tmp_path / "tls.pem", ADDRESS)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    key = make_key(db)
    with ScriptedProvider(quick) as provider:
        settings = {"SVC_MODEL": "@own/m", "SVC_PROVIDER_OWN_URL": provider.url}
        with Server(db, **settings) as one, Server(db, **settings) as other:
            text = configuration(tmp_path, port, {ADDRESS: [one, other]}, ADDRESS)
            (tmp_path / "nginx.conf").write_text(text)
            with running(tmp_path, port, ADDRESS):
                yield World(f"https://{ADDRESS}:{port}", key, db, provider, (one, other))


@pytest.mark.slow
def test_an_instance_that_is_killed_loses_no_row_and_hardly_a_call(world: World) -> None:
    killed = threading.Event()

    def kill(done: int) -> None:
        if done == ROWS // 3:
            world.instances[0].kill()
            killed.set()

    with world.client() as client:
        states = (f"Row {n} is about cats." for n in range(ROWS))
        answers = list(client.decide_many(states, CATS, more=ONCE, progress=kill))
    assert killed.is_set()
    assert len({one.id for one in answers}) == len(answers) == ROWS
    assert {one.id for one in answers} <= set(stored(world.db))
    assert len({one.cats.noul for one in answers}) == 1
    assert ROWS <= len(world.provider.bodies) <= ROWS * 1.01


def test_a_repeat_finds_the_answer_that_the_other_instance_has_given(world: World) -> None:
    def decided(client: Client) -> list[str]:
        keys = {f"Row {n}.": f"row {n}" for n in range(30)}
        return [
            client.decide(state, CATS, more=ONCE, idempotency_key=key).id
            for state, key in keys.items()
        ]

    with world.client() as client:
        first = decided(client)
        assert all(one.log.count("path=/v1/decide") > 5 for one in world.instances)
        world.instances[0].kill()
        assert decided(client) == first
    assert len(world.provider.bodies) == 30
