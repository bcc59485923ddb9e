"""Challengers of a really started server, set while it runs by the command."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from svc.store import ChallengerRecord, Challengers, Database
from tests.e2e.serving import WAIT_S, Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, decision, reply_to

WHICH = ("--project", "default", "--question", "animal")
# What a decision may take on a busy machine; a hanging challenger takes ten times as long.
USUAL_S = 5.0


class Models:
    """The usual model answers at once, and its rival once it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if body["model"] == "rival":
            self.let.wait(10 * USUAL_S)
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
            slowest = 0.0
            for number in range(100):
                began = time.monotonic()
                assert server.post(decision(f"cat {number}")).status_code == 200
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < USUAL_S
            until(lambda: challenged(db)[0].dropped > 0)
            models.let.set()
            until(lambda: challenged(db)[1] > 0)
    record, pairs = challenged(db)
    assert record.dropped + pairs + record.refused <= 100
