"""Fifty connections that decide, label and read, and note what they are told."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from tests.chaos.clock import Clock
from tests.chaos.gate import Gate
from tests.chaos.journal import BROKEN, LIMITED, Journal, Outcome
from tests.chaos.questions import AGING, BOUNDED, LABELS, SHARES, any_request, request

CONNECTIONS = 50
TIMEOUT_S = 30.0  # seconds for one answer; far more than any fault lasts
AFTER_A_BREAK_S = 0.05  # seconds without a request when the connection broke
RENEW = 0.2  # share of requests that take a new connection
AGAIN = 0.1  # share of decisions that were made before
REMEMBERED = 50  # decisions of each caller that it may label or ask again

# What is read of each project, and of all.
PAGES = ("/v1/calibration?question=topic", "/v1/drift?question=urgent")
PAGES_OF_ALL = ("/metrics", "/v1/models", "/v1/budgets")
NONSENSE = (b"", b"{", b"[]", b'{"state": NaN}', b'{"state": "x", "questions": {}}', b"\xff\xfe")


class Said(NamedTuple):
    """What a request was answered."""

    status: int
    body: Any = None
    type: str = ""
    retry_after: str | None = None


class Load:
    """Callers that go on for as long as the block does."""

    def __init__(self, make: Callable[[], Caller], connections: int = CONNECTIONS) -> None:
        self._stop = threading.Event()
        callers = [make() for _ in range(connections)]
        self._threads = [
            threading.Thread(target=caller.run, args=(self._stop,), name="caller")
            for caller in callers
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Caller:
    """One connection, one request at a time."""

    def __init__(self, url: Callable[[], str], journal: Journal, clock: Clock, gate: Gate) -> None:
        """`url` is where the server is at the moment; `gate` is for what a budget pays."""
        self._url, self._journal, self._clock, self._gate = url, journal, clock, gate
        self._connection: http.client.HTTPConnection | None = None
        self._place = ""
        self._bodies: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        self._decided: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)

    def run(self, stop: threading.Event) -> None:
        """Ask until told to stop."""
        kinds = (self.decide, self.label, self.read_audit, self.read, self.send_nonsense)
        while not stop.is_set():
            (kind,) = random.choices(kinds, (70, 15, 5, 5, 5))
            if kind() == BROKEN:
                stop.wait(AFTER_A_BREAK_S)
        self.hang_up()

    def decide(self) -> int:
        """A new decision, now and then one that was made before."""
        again = self._bodies and random.random() < AGAIN
        body = random.choice(self._bodies) if again else any_request()
        if body["project"] != BOUNDED:
            return self.ask(body).status
        with self._gate.passing() as may:
            return self.ask(body if may else request()).status

    def ask(self, body: dict[str, Any]) -> Said:
        """A decision, noted in the journal."""
        said = self.send("decide", "POST", "/v1/decide", body)
        self._journal.decided(body, said.status, said.body)
        if said.status == 200:
            self._bodies.append(body)
            self._decided.append(said.body)
        return said

    def label(self) -> int:
        """A true answer for one of the own decisions, sometimes not the first."""
        if not self._decided:
            return self.decide()
        decision = random.choice(self._decided)
        questions = [key for key in decision["answers"] if key in LABELS]
        if not questions:
            return self.decide()
        key = random.choice(questions)
        return self.label_as(decision, key, LABELS[key]()).status

    def label_as(self, decision: Mapping[str, Any], key: str, label: Any) -> Said:
        """A label, noted in the journal."""
        body = {"decision_id": decision["id"], "question": key, "label": label}
        said = self.send("feedback", "POST", "/v1/feedback", body, of=decision)
        self._journal.labelled_as(decision["id"], key, label, said.status)
        return said

    def read_audit(self) -> int:
        """A page of the audit log, which has to be newest first."""
        project = random.choice(list(SHARES))
        said = self.send("audit", "GET", f"/v1/audit?limit=100&project={project}")
        if said.status == 200:
            ids = [entry["id"] for entry in said.body["entries"]]
            if ids != sorted(set(ids), reverse=True):
                self._journal.problem("an audit page is out of order")
        return said.status

    def read(self) -> int:
        pages = [f"{page}&project={project}" for page in PAGES for project in SHARES]
        return self.send("read", "GET", random.choice([*pages, *PAGES_OF_ALL])).status

    def send_nonsense(self) -> int:
        return self.send("nonsense", "POST", "/v1/decide", random.choice(NONSENSE)).status

    def send(
        self,
        what: str,
        method: str,
        path: str,
        body: Any = None,
        of: Mapping[str, Any] | None = None,
    ) -> Said:
        """One request, noted in the journal; `of` is the decision that it is about, if any."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        began = time.monotonic()
        said = self._exchange(method, path, data)
        if of is not None and of["project"] == AGING and self._clock.is_old(of["id"]):
            what = f"old {what}"
        outcome = Outcome(what, began, time.monotonic(), said.status, said.type)
        self._journal.outcomes.append(outcome)
        if said.status == LIMITED and int(said.retry_after or 0) < 1:
            self._journal.problem(f"429 with Retry-After: {said.retry_after}")
        return said

    def _exchange(self, method: str, path: str, data: bytes | None) -> Said:
        try:
            connection = self._connected()
            connection.request(method, path, data)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.hang_up()
            return Said(BROKEN, None, type(error).__name__)
        if response.getheader("Content-Type", "").startswith("text/plain"):  # metrics
            return Said(response.status)
        answer = json.loads(raw)
        error_type = answer.get("error", {}).get("type", "")
        return Said(response.status, answer, error_type, response.getheader("Retry-After"))

    def _connected(self) -> http.client.HTTPConnection:
        """A connection to where the server is now."""
        place = urlsplit(self._url()).netloc
        if self._connection is not None and (place != self._place or random.random() < RENEW):
            self.hang_up()
        if self._connection is None:
            self._place = place
            self._connection = http.client.HTTPConnection(place, timeout=TIMEOUT_S)
        return self._connection

    def hang_up(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
