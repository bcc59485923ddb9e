"""A budget in dollars under load, while workers and the whole server are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from svc.store import NANO, Budget, Budgets, BudgetState, Database, Per, Scope
from tests.e2e.serving import Server
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, decision, reply_to

COST = 0.01
# By this price a call may cost 0.0112 dollars and a little.
PRICE = "0.01,700"
LIMIT = 6.0
AT_ONCE = 50
KILLS = 4


class Aggregator:
    """Says what each call cost, and counts the calls that came."""

    def __init__(self) -> None:
        self.calls, self._lock = 0, threading.Lock()

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        with self._lock:
            self.calls += 1
        whole = reply_to(PREFERS_CATS, body)
        whole["usage"]["cost"] = COST
        return Reply(whole, delay=0.05)


def states(db: Path) -> BudgetState:
    database = Database.open(db)
    (found,) = Budgets(database).states()
    database.close()
    return found


def ask(server: Server, caller: int, ended: threading.Event) -> list[int]:
    """Ask one decision after the other until the budget is spent; the statuses of the answers."""
    seen: list[int] = []
    number = 0
    while not ended.is_set() and seen[-3:] != [429] * 3:
        number += 1
        body = decision(f"cat {caller} {number}", debias=False, project="shop", model="vendor/m")
        try:
            seen.append(server.post(body).status_code)
        except requests.RequestException:
            # A worker was killed.
            time.sleep(0.05)
    return seen


def test_no_kill_lets_a_call_through_beyond_the_limit(db: Path) -> None:
    database = Database.open(db)
    Budgets(database).set(Budget(Scope.PROJECT, "shop", Per.MONTH, round(LIMIT * NANO)))
    database.close()
    handler, ended = Aggregator(), threading.Event()
    with ScriptedProvider(handler) as provider:
        settings = {
            "SVC_PROVIDER_URL": provider.url,
            "SVC_RPM": "1000000",
            "SVC_PROVIDER_OPENROUTER_PRICE": PRICE,
        }
        with Server(db, "--workers", "2", **settings) as server:
            with ThreadPoolExecutor(AT_ONCE) as callers:
                asked = [callers.submit(ask, server, n, ended) for n in range(AT_ONCE)]
                for _ in range(KILLS):
                    time.sleep(0.3)
                    os.kill(min(server.workers), signal.SIGKILL)
                statuses = [status for one in asked for status in one.result(120)]
            calls = handler.calls
            late = [
                server.post(decision(f"late {n}", project="shop", model="vendor/m"))
                for n in range(5)
            ]
            assert {answer.status_code for answer in late} == {429}
            assert handler.calls == calls
            assert server.stop() == 0
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) > LIMIT / COST / 2
    # No call came to the provider that did not fit.
    assert calls * COST <= LIMIT
    state = states(db)
    assert statuses.count(200) * COST <= (state.spent + state.reserved) / NANO <= LIMIT
    # What killed workers had: their calls under way, and a hundredth of what was left.
    assert state.reserved / NANO <= KILLS * (AT_ONCE * 0.012 + LIMIT / 100)
