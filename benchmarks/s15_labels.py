"""S15: how many labels a second are taken in bulk over HTTP, each durable before the answer."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks import servers
from benchmarks.harness import Benchmark, Options, Result, running, temporary_directory
from benchmarks.s8_reports import OPTIONS, THREADS, record
from svc import limits
from svc.store.database import Database
from svc.store.decisions import Decisions

# Requests, of so many labels each as one may have.
REQUESTS, QUICK = 8, 2


def _run(options: Options) -> Result:
    requests = QUICK if options.quick else REQUESTS
    with temporary_directory() as folder:
        path = Path(folder) / "svc.db"
        database = Database.open(path)
        decisions = Decisions(database)
        count = requests * limits.BULK_LABELS
        with ThreadPoolExecutor(THREADS) as pool:
            add = decisions.add
            ids = list(pool.map(lambda n: add(replace(record(), ref=str(n))), range(count)))
        database.close()
        with running(servers.serve_command(path)) as server:
            by_id = _rate(server.url, [{"id": one} for one in ids])
            by_ref = _rate(server.url, [{"ref": str(number)} for number in range(count)])
    return Result(f"{by_id:,.0f} / {by_ref:,.0f} a second")


def _rate(url: str, places: list[dict[str, str]]) -> float:
    """Labels a second, in the median request."""
    lines = [{**place, "labels": {"q": random.choice(OPTIONS)}} for place in places]
    starts = range(0, len(lines), limits.BULK_LABELS)
    return median(_send(url, lines[start : start + limits.BULK_LABELS]) for start in starts)


def _send(url: str, lines: list[dict[str, object]]) -> float:
    body = json.dumps({"labels": lines}).encode()
    start = time.perf_counter()
    with urllib.request.urlopen(f"{url}/v1/feedback/bulk", body) as response:
        answer = json.load(response)
    took = time.perf_counter() - start
    assert answer["taken"] == len(lines), answer
    return len(lines) / took


BENCHMARK = Benchmark(
    "S15",
    f"labels in bulk over HTTP, {limits.BULK_LABELS:,} a request: new by id / again by ref",
    "at least 5,000 a second",
    _run,
)
