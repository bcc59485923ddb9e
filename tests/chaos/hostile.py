"""A project key that does its worst, and what another key and `/health` notice of it."""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import requests
from requests.adapters import HTTPAdapter

from svc.store import ApiKeys, Database
from tests.e2e.serving import WAIT_S, Server
from tests.hostile.bodies import BODIES
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, decision, reply_to

# What the hostile key sends: all bodies in turn, one of them by its name, decisions of a model that
# takes `SLOW_S`, or so many questions at once that nobody asked before, in a body of 35 KB.
MIXED, SLOW, NEW = "all bodies in turn", "a slow model", "650 new questions"
SLOW_S = 50.0
QUESTIONS = 650
CALLERS = 20

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
    """A server with two project keys, one of them hostile; a context manager."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self._db, self._workers = folder / "keys.db", workers
        self._ended = threading.Event()
        self._stack = contextlib.ExitStack()
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        provider = self._stack.enter_context(ScriptedProvider(self._reply))
        settings = {
            "SVC_PROVIDER_OWN_URL": provider.url,
            "SVC_PROVIDER_ALL_URL": provider.url,
            "SVC_PROVIDER_ALL_KIND": "decisions",
            "SVC_MODEL": "@own/prompt",
        }
        database = Database.open(self._db)
        keys = ApiKeys(database)
        made = (keys.create("hostile", RPM, "one"), keys.create("other", OTHER_RPM, "two"))
        database.close()
        self._hostile, self._other = (_bearer(key.text) for key in made if key is not None)
        workers = ("--workers", str(self._workers))
        self._make_server = lambda: Server(self._db, *workers, **settings)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def beside(self, name: str, seconds: float) -> Beside:
        """Have the hostile key send what `name` says for so long, and measure the other one.

        The server ends before the callers, most of whom wait for a turn.
        """
        bodies = [make().encode() for key, make in BODIES.items() if name in (key, MIXED)]
        path = "/v1/decisions" if name == NEW else "/v1/decide"
        sends = {SLOW: self._slow, NEW: self._new}.get(name) or in_turn(bodies)
        statuses: Counter[str] = Counter()
        stop = threading.Event()
        with ThreadPoolExecutor(CALLERS) as threads, self._make_server() as server:
            alone, _ = self._measure(server, ALONE_S)
            for _ in range(CALLERS):
                threads.submit(self._load, server.url + path, sends, stop, statuses)
            try:
                decided, health = self._measure(server, seconds)
            finally:
                stop.set()
                self._ended.set()
        self._ended.clear()
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

    def _reply(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if "questions" in body:
            answer = {"type": "predicate", "probability": 0.5}
            answers = [answer] * len(body["questions"])
            return Reply({"model": "m", "answers": answers, "usage": {}})
        if body["model"] == "slow":
            self._ended.wait(SLOW_S)
        return Reply(reply_to(PREFERS_CATS, body))

    def _load(
        self,
        url: str,
        sends: Callable[[], bytes],
        stop: threading.Event,
        statuses: Counter[str],
    ) -> None:
        """One caller of the hostile key; refused ones come back at once."""
        with requests.Session() as session:
            while not stop.is_set():
                with contextlib.suppress(requests.RequestException):
                    response = session.post(url, sends(), headers=self._hostile, timeout=2 * SLOW_S)
                    statuses[str(response.status_code)] += 1

    def _slow(self) -> bytes:
        body = decision(f"slow {next(self._numbers)}", model="@own/slow", debias=False)
        return json.dumps(body).encode()

    def _new(self) -> bytes:
        first = next(self._numbers) * QUESTIONS
        asked = {"type": "noul", "instructions": "Is it so?"}
        questions = {f"q{first + number}": asked for number in range(QUESTIONS)}
        body = {"model": "@all/m", "project": "one", "input": f"{first}", "questions": questions}
        return json.dumps(body).encode()

    def _measure(self, server: Server, seconds: float) -> tuple[list[float], list[float]]:
        """The times of new decisions of the other key and of `/health`.

        One of each is due every `EVERY_S`, whether or not those before were answered, and its time
        counts from then: who waits for each answer before the next request measures the busy
        moments least ("coordinated omission").
        """
        with requests.Session() as session, ThreadPoolExecutor(UNDER_WAY) as threads:
            session.mount("http://", HTTPAdapter(pool_maxsize=UNDER_WAY))
            began = time.monotonic()
            decided, health = [], []
            for number in range(int(seconds / EVERY_S)):
                due = began + number * EVERY_S
                time.sleep(max(0.0, due - time.monotonic()))
                decided.append(threads.submit(self._decide, session, server.url, due))
                health.append(threads.submit(_look, session, server.url, due))
            return [done.result() for done in decided], [done.result() for done in health]

    def _decide(self, session: requests.Session, url: str, due: float) -> float:
        """Have the other key decide something new; the seconds from when that was due."""
        body = decision(f"state {next(self._numbers)}", debias=False)
        headers = self._other
        response = session.post(f"{url}/v1/decide", json=body, headers=headers, timeout=WAIT_S)
        response.raise_for_status()
        return time.monotonic() - due


def _look(session: requests.Session, url: str, due: float) -> float:
    """Ask for `/health`; the seconds from when that was due."""
    session.get(f"{url}/health", timeout=WAIT_S).raise_for_status()
    return time.monotonic() - due


def in_turn(bodies: list[bytes]) -> Callable[[], bytes]:
    """Each of the bodies in turn, for many threads."""
    turns = itertools.count()
    return lambda: bodies[next(turns) % len(bodies)]


def _bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}
