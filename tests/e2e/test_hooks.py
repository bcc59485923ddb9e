"""Hooks of a really started server, whose processes are killed at any instant."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from svc.demo import DemoServer
from svc.hooks import new_secret, parsed
from svc.hooks.delivering import OF_A_HOOK
from svc.store import (
    NANO,
    Account,
    Budget,
    Budgets,
    Claim,
    Database,
    HookEvents,
    HookKind,
    Hooks,
    NewEvent,
    OpenedHook,
    Per,
    Scope,
)
from tests.e2e.serving import Server
from tests.e2e.test_jobs import KEY, done, settings, submitted
from tests.hooks.receiver import Received, Receiver
from tests.store.holding import until

KILLS = 20
# Before each kill so many events of so many subjects are added.
SUBJECTS, EVENTS = 5, 40
END_S = 90.0


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoServer]:
    with DemoServer() as model:
        yield model


def add_hook(db: Path, url: str, secret: str) -> int:
    """A hook for everything that happens to the default project; its row."""
    with closing(Database.open(db)) as database:
        opened = OpenedHook(url, secret, allow_private=True)
        hooks = Hooks(database, KEY["SVC_MASTER_KEY"])
        hook_id = hooks.add("default", set(HookKind), parsed(url).place, opened)
        return int(database.rows("SELECT seq FROM hooks WHERE id = ?", hook_id)[0][0])


def eventually(found: Callable[[], bool], server: Server) -> None:
    give_up_at = time.monotonic() + END_S
    while not found():
        assert time.monotonic() < give_up_at, server.log
        time.sleep(0.05)


def happened(db: Path, hook: int, first: int) -> list[tuple[str, int]]:
    """Events of several subjects, numbered; what stands in their bodies."""
    numbered = [(f"s{n % SUBJECTS}", n) for n in range(first, first + EVENTS)]
    with closing(Database.open(db)) as database:
        HookEvents(database).add(
            NewEvent(hook, f"{one} {n}", one, f'{{"subject": "{one}", "n": {n}}}', 0)
            for one, n in numbered
        )
    return numbered


@pytest.mark.slow
def test_every_event_arrives_in_order_however_often_processes_are_killed(
    tmp_path: Path, demo: DemoServer
) -> None:
    db, secret, chance = tmp_path / "svc.db", new_secret(), random.Random(7)

    def answer(received: Received, n: int, handler: BaseHTTPRequestHandler) -> int:
        # Killed in here, the event was received, and nobody has noted it.
        time.sleep(chance.random() * 0.05)
        return 200

    with Receiver(answer) as receiver:
        hook = add_hook(db, receiver.url, secret)
        expected: list[tuple[str, int]] = []
        jobs: set[str] = set()
        for kills in range(0, KILLS, 2):
            with Server(db, **settings(demo)) as server:
                jobs.add(submitted(server, rows=1))
                for end in (kill_hooks_process, Server.kill):
                    expected += happened(db, hook, len(expected))
                    eventually(lambda: server.hooks_process is not None, server)
                    time.sleep(chance.random() * 0.6)
                    assert waiting(db) > 0, f"nothing was under way before kill {kills}"
                    end(server)
        with Server(db, **settings(demo)) as server:
            for job_id in jobs:
                done(server, job_id)
            eventually(lambda: waiting(db) == 0 and jobs <= told(receiver), server)
    assert_all_came_in_order(receiver, expected, secret)


def kill_hooks_process(server: Server) -> None:
    pid = server.hooks_process
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def waiting(db: Path) -> int:
    with closing(Database.open(db)) as database:
        return Hooks(database).all()[0].waiting


def told(receiver: Receiver) -> set[str]:
    """The jobs of which the receiver was told that they ended."""
    events = [received.event for received in list(receiver.journal)]
    return {one["data"]["id"] for one in events if one.get("type") == "batch.done"}


def assert_all_came_in_order(
    receiver: Receiver, expected: list[tuple[str, int]], secret: str
) -> None:
    by_subject: dict[str, list[int]] = defaultdict(list)
    ids: dict[str, bytes] = {}
    for received in receiver.journal:
        event: Any = received.verified(secret)
        assert ids.setdefault(received.id, received.body) == received.body
        if "subject" in event:
            by_subject[event["subject"]].append(event["n"])
    for numbers in by_subject.values():
        # One may come again before the next one, and never after it.
        assert numbers == sorted(numbers)
    assert {(one, n) for one, numbers in by_subject.items() for n in numbers} == set(expected)
    # At each kill no more than those under way were sent in vain.
    assert len(receiver.journal) - len(ids) <= KILLS * OF_A_HOOK


def test_jobs_and_budgets_are_told_by_a_server_that_runs(tmp_path: Path, demo: DemoServer) -> None:
    db, secret = tmp_path / "svc.db", new_secret()
    with Receiver() as receiver:
        add_hook(db, receiver.url, secret)
        with Server(db, "--workers", "2", **settings(demo)) as server:
            job_id = submitted(server, rows=3)
            overspend(db)
            eventually(lambda: len(receiver.journal) >= 3, server)
            assert server.stop() == 0
        events = [one.verified(secret) for one in receiver.journal]
    kinds = sorted(one["type"] for one in events)
    assert kinds == ["batch.done", "budget.warning", "budget.warning"]
    levels = [one["data"]["level"] for one in events if one["type"] == "budget.warning"]
    assert levels == ["warning", "exhausted"]
    (ended,) = [one["data"] for one in events if one["type"] == "batch.done"]
    assert (ended["id"], ended["status"], ended["answered"]) == (job_id, "done", 3)
    assert "rosebud" not in server.log and secret not in server.log


def overspend(db: Path) -> None:
    with closing(Database.open(db)) as database:
        budgets = Budgets(database)
        budgets.set(Budget(Scope.PROJECT, "default", Per.DAY, 10 * NANO))
        period = Per.DAY.period(time.time())
        account = Account(Scope.PROJECT, "default", Per.DAY, period)
        budgets.claim([Claim(account, 11 * NANO, 0)])


def test_of_several_servers_one_tells(tmp_path: Path, demo: DemoServer) -> None:
    db, secret = tmp_path / "svc.db", new_secret()
    with Receiver() as receiver:
        add_hook(db, receiver.url, secret)
        with Server(db, **settings(demo)) as one, Server(db, **settings(demo)) as other:
            until(lambda: (one.hooks_process is None) != (other.hooks_process is None))
            jobs = {submitted(server, rows=1) for server in (one, other) for _ in range(3)}
            eventually(lambda: jobs <= told(receiver), one)
            time.sleep(1.0)
        assert len(receiver.journal) == len(jobs)
