"""A project key that does its worst, and what another key and `/health` notice of it."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import requests
from requests.adapters import HTTPAdapter

from svc.store import ApiKeys, Database
from tests.e2e.serving import WAIT_S, Server
from tests.hostile.client import Client
from tests.hostile.loads import PROJECT, SLOW_S
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, decision, reply_to

# Seconds of load, and of each measurement without it; from one measured request to the next; and
# how many of them are under way at most.
LOAD_S, SHORT_S, ALONE_S = 10.0, 3.0, 3.0
EVERY_S, UNDER_WAY = 0.1, 64

# The key's rate is the default; the other one is never limited.
RPM, OTHER_RPM = 600, 1_000_000

# What is promised is 3 times and 0.1 s, on a machine with nothing else to do. What fails a run is
# what no busy machine explains.
MOST_TIMES, MOST_S, MOST_HEALTH_S = 30.0, 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Beside:
    """Medians in seconds, without the hostile key and beside it; what it was answered."""

    name: str
    alone_s: float
    beside_s: float
    health_s: float
    longest_health_s: float
    measured: int
    statuses: Mapping[str, int]

    def __str__(self) -> str:
        got = ", ".join(f"{count} x {status}" for status, count in sorted(self.statuses.items()))
        return (
            f"beside a hostile key with {self.name}: {self.beside_s * 1000:.0f} ms for "
            f"{self.alone_s * 1000:.0f} ms alone ({self.beside_s / self.alone_s:.1f} times, "
            f"{self.measured} decisions), /health {self.health_s * 1000:.0f} ms, at most "
            f"{self.longest_health_s * 1000:.0f}; it got {got or 'no answer'}"
        )

    def problems(self) -> Iterator[str]:
        """What no busy machine explains."""
        if self.beside_s > max(MOST_S, MOST_TIMES * self.alone_s):
            yield f"another key waits {self.beside_s:.2f} s beside {self.name}"
        if self.health_s > MOST_HEALTH_S:
            yield f"/health takes {self.health_s:.2f} s beside {self.name}"


class Keys:
    """Two project keys, one of them hostile, at a new server for each load; a context manager."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self._folder, self._workers = folder, workers
        self._provider = ScriptedProvider(_reply)
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        self._provider.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._provider.__exit__()

    def beside(self, name: str, seconds: float) -> Beside:
        """Have the hostile key send what `name` says for so long, and measure the other one."""
        db = self._folder / f"keys-{next(self._numbers)}.db"
        hostile, other = _keys(db)
        with Client() as client, self._serving(db, client) as server:
            alone, _ = self._measure(server, other, ALONE_S)
            client.begin(server.url, hostile, name)
            decided, health = self._measure(server, other, seconds)
            statuses = client.end()
        median = statistics.median
        return Beside(
            name,
            median(alone),
            median(decided),
            median(health),
            max(health),
            len(decided),
            statuses,
        )

    def _serving(self, db: Path, client: Client) -> Server:
        """A server at which the hostile key has a provider of its own, and both have another."""
        settings = {
            "SVC_PROVIDER_OWN_URL": client.provider_url,
            "SVC_PROVIDER_ALL_URL": client.provider_url,
            "SVC_PROVIDER_ALL_KIND": "decisions",
            "SVC_PROVIDER_SHARED_URL": self._provider.url,
            "SVC_MODEL": "@shared/prompt",
            "SVC_MASTER_KEY": "for jobs",
        }
        return Server(db, "--workers", str(self._workers), **settings)

    def _measure(self, server: Server, key: str, seconds: float) -> tuple[list[float], list[float]]:
        """The times of new decisions of a key and of `/health`.

        One of each is due every `EVERY_S`, whether or not those before were answered, and its time
        counts from then: who waits for each answer before the next request measures the busy
        moments least ("coordinated omission").
        """
        with requests.Session() as session, ThreadPoolExecutor(UNDER_WAY) as threads:
            session.mount("http://", HTTPAdapter(pool_maxsize=UNDER_WAY))
            session.headers["Authorization"] = f"Bearer {key}"
            began = time.monotonic()
            decided, health = [], []
            for number in range(int(seconds / EVERY_S)):
                due = began + number * EVERY_S
                time.sleep(max(0.0, due - time.monotonic()))
                decided.append(threads.submit(self._decide, session, server.url, due))
                health.append(threads.submit(_look, session, server.url, due))
            return [done.result() for done in decided], [done.result() for done in health]

    def _decide(self, session: requests.Session, url: str, due: float) -> float:
        """Have something new decided; the seconds from when that was due."""
        body = decision(f"state {next(self._numbers)}", debias=False)
        response = session.post(f"{url}/v1/decide", json=body, timeout=WAIT_S)
        response.raise_for_status()
        return time.monotonic() - due


def _keys(db: Path) -> tuple[str, str]:
    """A hostile key and another one, in a new database."""
    database = Database.open(db)
    keys = ApiKeys(database)
    made = (keys.create("hostile", RPM, PROJECT), keys.create("other", OTHER_RPM, "two"))
    database.close()
    hostile, other = (key.text for key in made if key is not None)
    return hostile, other


def _look(session: requests.Session, url: str, due: float) -> float:
    """Ask for `/health`; the seconds from when that was due."""
    session.get(f"{url}/health", timeout=WAIT_S).raise_for_status()
    return time.monotonic() - due


def _reply(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    delay = SLOW_S if body["model"] == "slow" else 0.0
    return Reply(reply_to(PREFERS_CATS, body), delay=delay)
