"""Challengers of a really started server, set while it runs by the command."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from svc.limits import SHUTDOWN_GRACE_S
from svc.store import ChallengerRecord, Challengers, Database
from tests.e2e.serving import WAIT_S, Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, error
from tests.web.models import PREFERS_CATS, decision, reply_to

WHICH = ("--project", "default", "--question", "animal")


class Models:
    """The usual model answers at once, and its rival once it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()
        # Of the rival alone.
        self.answered = 0

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if body["model"] == "rival":
            self.let.wait()
            self.answered += 1
        return Reply(reply_to(PREFERS_CATS, body))


@pytest.fixture
def models() -> Iterator[Models]:
    made = Models()
    yield made
    made.let.set()


def challenged(db: Path) -> tuple[ChallengerRecord, int]:
    """The challenger, and how many pairs it has."""
    database = Database.open(db)
    stored = Challengers(database)
    (found,) = stored.all()
    pairs = stored.pairs(found.challenger.id, 1_000)
    database.close()
    return found, len(pairs)


def until(holds: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < give_up_at
        time.sleep(0.1)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hanging_challenger_costs_live_decisions_nothing(
    tmp_path: Path, models: Models, workers: str
) -> None:
    db = tmp_path / "svc.db"
    with ScriptedProvider(models) as provider:
        settings = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with Server(db, "--workers", workers, **settings) as server:
            assert server.post(decision("the first one")).status_code == 200
            arguments = (*WHICH, "--model", "@scripted/rival", "--share", "1", "--db", str(db))
            said = CliRunner().invoke(main, ["challenger", "set", *arguments])
            assert said.exit_code == 0, said.output
            numbers = count()

            def many_more() -> bool:
                for number in islice(numbers, 50):
                    assert server.post(decision(f"cat {number}")).status_code == 200
                return challenged(db)[0].dropped > 0

            until(many_more)
            # The server ends as well while the rival has answered nobody.
            assert server.stop() == 0
            assert models.answered == 0
        models.let.set()
    assert challenged(db)[1] == 0


def test_what_a_challenger_answers_is_kept(tmp_path: Path, models: Models) -> None:
    db = tmp_path / "svc.db"
    models.let.set()
    with ScriptedProvider(models) as provider:
        settings = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with Server(db, **settings) as server:
            assert server.post(decision("the first one")).status_code == 200
            arguments = (*WHICH, "--model", "@scripted/rival", "--share", "1", "--db", str(db))
            assert CliRunner().invoke(main, ["challenger", "set", *arguments]).exit_code == 0
            numbers = count()

            def asked() -> bool:
                assert server.post(decision(f"cat {next(numbers)}")).status_code == 200
                return challenged(db)[1] > 0

            until(asked)


def test_a_challenger_whose_provider_is_busy_holds_up_no_stop(tmp_path: Path) -> None:
    """It would wait for a minute, twice as long as a stop may take."""
    db = tmp_path / "svc.db"

    def answer(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if body["model"] == "rival":
            asked.set()
            return Reply(error("slow down"), 429, {"Retry-After": "60"})
        return Reply(reply_to(PREFERS_CATS, body))

    asked = threading.Event()
    with ScriptedProvider(answer) as provider:
        settings = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with Server(db, **settings) as server:
            assert server.post(decision("the first one")).status_code == 200
            arguments = (*WHICH, "--model", "@scripted/rival", "--share", "1", "--db", str(db))
            said = CliRunner().invoke(main, ["challenger", "set", *arguments])
            assert said.exit_code == 0, said.output
            numbers = count()
            until(lambda: server.post(decision(f"cat {next(numbers)}")) and asked.is_set())
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < SHUTDOWN_GRACE_S / 2
