"""Fifty connections that decide, label and read, and note what they are told."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.chaos.behaviours import GOOD, TWISTS
from tests.chaos.journal import BROKEN, Journal, Outcome

CONNECTIONS = 50
TIMEOUT_S = 30.0  # seconds for one answer; far more than any fault lasts
AFTER_A_BREAK_S = 0.05  # seconds without a request when the connection broke
RENEW = 0.2  # share of requests that take a new connection
AGAIN = 0.1  # share of decisions that were made before
REMEMBERED = 50  # decisions of each caller that it may label or ask again

QUESTIONS: dict[str, dict[str, Any]] = {
    "topic": {
        "type": "choice",
        "instructions": "What is the ticket about?",
        "options": {"billing": "charges and refunds", "shipping": "where an order is"},
    },
    "urgent": {"type": "noul", "instructions": "Does the customer want an answer today?"},
    "mood": {"type": "score", "instructions": "How angry?", "levels": ["calm", "cross", "angry"]},
    "tags": {"type": "multi", "instructions": "Which apply?", "options": {"vip": "", "eu": ""}},
    "sum": {"type": "number", "instructions": "Which sum?", "nullable": True},
    "name": {"type": "text", "instructions": "Which name?", "nullable": True, "think": True},
}
LABELS: dict[str, Callable[[], Any]] = {
    "topic": lambda: random.choice(["billing", "shipping", "none_of_these"]),
    "urgent": lambda: random.choice([True, False]),
    "mood": lambda: random.randrange(3),
    "tags": lambda: random.choice([[], ["vip"], ["eu", "vip"]]),
}
PAGES = ("/v1/calibration?question=topic", "/v1/drift?question=urgent", "/metrics", "/v1/models")
NONSENSE = (b"", b"{", b"[]", b'{"state": NaN}', b'{"state": "x", "questions": {}}', b"\xff\xfe")
WORDS = ("refund", "order", "parcel", "charge", "today", "angry", "Berlin", "12.50", "EUR")

_numbers = itertools.count()  # makes every state another one


class Load:
    """Callers that go on for as long as the block does."""

    def __init__(self, url: Callable[[], str], journal: Journal, connections: int = CONNECTIONS):
        """`url` is where the server is at the moment."""
        self._stop = threading.Event()
        callers = [Caller(url, journal) for _ in range(connections)]
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

    def __init__(self, url: Callable[[], str], journal: Journal) -> None:
        self._url, self._journal = url, journal
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
        return self.ask(random.choice(self._bodies) if again else request())

    def ask(self, body: dict[str, Any]) -> int:
        """A decision, noted in the journal; its status."""
        status, answer = self.send("decide", "POST", "/v1/decide", body)
        self._journal.decided(body["state"], status, answer)
        if status == 200:
            self._bodies.append(body)
            self._decided.append(answer)
        return status

    def label(self) -> int:
        """A true answer for one of the own decisions, sometimes not the first."""
        if not self._decided:
            return self.decide()
        decision = random.choice(self._decided)
        questions = [key for key in decision["answers"] if key in LABELS]
        if not questions:
            return self.decide()
        key = random.choice(questions)
        body = {"decision_id": decision["id"], "question": key, "label": LABELS[key]()}
        status, _ = self.send("feedback", "POST", "/v1/feedback", body)
        self._journal.labelled_as(decision["id"], key, body["label"], status)
        return status

    def read_audit(self) -> int:
        """A page of the audit log, which has to be newest first."""
        status, page = self.send("audit", "GET", "/v1/audit?limit=100")
        if status == 200:
            ids = [entry["id"] for entry in page["entries"]]
            if ids != sorted(set(ids), reverse=True):
                self._journal.problem("an audit page is out of order")
        return status

    def read(self) -> int:
        return self.send("read", "GET", random.choice(PAGES))[0]

    def send_nonsense(self) -> int:
        return self.send("nonsense", "POST", "/v1/decide", random.choice(NONSENSE))[0]

    def send(self, what: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, noted in the journal: its status and its JSON, if any."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        began = time.monotonic()
        status, answer, kind = self._exchange(method, path, data)
        self._journal.outcomes.append(Outcome(what, began, time.monotonic(), status, kind))
        return status, answer

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, Any, str]:
        try:
            connection = self._connected()
            connection.request(method, path, data)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.hang_up()
            return BROKEN, None, type(error).__name__
        if response.getheader("Content-Type", "").startswith("text/plain"):  # metrics
            return response.status, None, ""
        answer = json.loads(raw)
        return response.status, answer, answer.get("error", {}).get("type", "")

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


def request() -> dict[str, Any]:
    """A decision request that is well formed, about a state that nobody asked about before."""
    keys = random.sample(sorted(QUESTIONS), random.randint(1, 3))
    words = " ".join(random.choices(WORDS, k=20))
    return {
        "state": f"{next(_numbers)}: {words}",
        "questions": {key: QUESTIONS[key] for key in keys},
        "model": plan(),
        "debias": random.choice([True, False, "auto"]),
        "mode": random.choice(["auto", "auto", "verbal"]),
    }


def plan() -> Any:
    """Mostly one good model; else a bad one, or several."""
    good, bad = f"@odd/{GOOD}", f"@odd/{random.choice(sorted(TWISTS))}"
    forms = (
        good,
        bad,
        "@refused/m",
        "@tls/m",
        [bad, good],
        {"council": [good, bad]},
        {"race": [bad, good]},
        {"cascade": [bad, good]},
    )
    (form,) = random.choices(forms, (55, 20, 3, 3, 8, 4, 4, 3))
    return form
