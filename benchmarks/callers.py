"""Load from threads: an exact number of requests, as fast as they go or at a steady pace."""

from __future__ import annotations

import http.client
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from benchmarks.harness import BenchmarkError

TIMEOUT_S = 60.0  # seconds for one answer


@dataclass(frozen=True, slots=True)
class Calls:
    """What all requests together came to; bodies and latencies in the order of the requests."""

    bodies: list[bytes]
    latencies_s: list[float]
    seconds: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.bodies) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the latencies, in milliseconds."""
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] * 1000


def send(url: str, bodies: Sequence[str], *, callers: int, per_second: float = 0.0) -> Calls:
    """POST every body once, from `callers` connections.

    With `per_second` each request has its own due time, and its latency counts from there, so
    that a server that falls behind cannot hide it. Raises `BenchmarkError` when an answer is an
    error.
    """
    start = time.perf_counter() + 0.1  # seconds, for the callers to be ready
    work: SimpleQueue[tuple[int, float, str]] = SimpleQueue()
    for index, body in enumerate(bodies):
        work.put((index, start + index / per_second if per_second else 0.0, body))
    with ThreadPoolExecutor(callers) as pool:
        futures = [pool.submit(_caller, url, work, start) for _ in range(callers)]
    answers = sorted(answer for future in futures for answer in future.result())
    seconds = time.perf_counter() - start
    return Calls([body for _, _, body in answers], [took for _, took, _ in answers], seconds)


def _caller(
    url: str, work: SimpleQueue[tuple[int, float, str]], start: float
) -> list[tuple[int, float, bytes]]:
    """Send what is waiting over one connection: the index, latency and body of each answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    answers: list[tuple[int, float, bytes]] = []
    _sleep_until(start)
    while True:
        try:
            index, due, body = work.get_nowait()
        except Empty:
            connection.close()
            return answers
        _sleep_until(due)
        sent = due or time.perf_counter()
        answer = _post(connection, parts.path, body)
        answers.append((index, time.perf_counter() - sent, answer))


def _post(connection: http.client.HTTPConnection, path: str, body: str) -> bytes:
    connection.request("POST", path, body.encode(), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200:
        raise BenchmarkError(f"an answer was {response.status}: {answer[:300]!r}")
    return answer


def _sleep_until(moment: float) -> None:
    wait = moment - time.perf_counter()
    if wait > 0:
        time.sleep(wait)
