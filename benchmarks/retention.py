"""Retention: what decisions that expire cost the requests beside them."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from benchmarks import decisions, servers
from benchmarks.harness import (
    Benchmark,
    Options,
    Process,
    Result,
    python_environment,
    running,
    temporary_directory,
)
from benchmarks.live import LIVE_MS, PER_SECOND, p99_ms
from benchmarks.s8_reports import record
from benchmarks.slow_provider import slow_provider
from svc.bootstrap import Shared
from svc.bulk.sweeping import sweep
from svc.settings import load
from svc.store import Database, Retentions, ids
from svc.store.decisions import Decisions

ROWS, QUICK = 1_000_000, 100_000

DAY_S = 86_400
KEPT_DAYS, AGE_S = 2, 5 * DAY_S

_COLUMNS = "SELECT name FROM pragma_table_info('decisions') WHERE name NOT IN ('seq', 'id', 'ref')"
_COPY = "INSERT INTO decisions (id, ref, {0}) SELECT ?, ?, {0} FROM decisions WHERE seq = 1"
_LEFT = "SELECT count(*) FROM decisions WHERE seq <= ?"


def _measure(options: Options) -> Result:
    rows = QUICK if options.quick else ROWS
    with temporary_directory() as folder:
        path = Path(folder) / "svc.db"
        _fill(path, rows)
        with slow_provider(LIVE_MS, questions=1) as provider, _service(path, provider) as service:
            p99_ms(service, 1.0)
            began = _left(path, rows)
            rounds = [_round(service, path, options.seconds) for _ in range(options.rounds)]
            deleted = began - _left(path, rows)
    alone, beside = (median(times) for times in zip(*rounds, strict=True))
    rate = deleted / options.seconds / options.rounds
    more = median(beside - alone for alone, beside in rounds)
    return Result(
        f"99% in {beside:.1f} ms; {rate:,.0f} of {rows:,} a second",
        f"99% in {alone:.1f} ms",
        f"{more:+.1f} ms",
    )


def _round(service: Process, path: Path, seconds: float) -> tuple[float, float]:
    """The 99th percentile of requests in milliseconds, alone and while decisions expire."""
    alone = p99_ms(service, seconds)
    with _expiring(path):
        return alone, p99_ms(service, seconds)


@contextmanager
def _expiring(path: Path) -> Iterator[None]:
    """Inside the block decisions are deleted, as the server's own process for it does so."""
    stop = multiprocessing.Event()
    sweeper = multiprocessing.Process(target=_sweep, args=(path, stop))
    with closing(Database.open(path)) as database:
        Retentions(database).set("default", KEPT_DAYS)
    sweeper.start()
    try:
        yield
    finally:
        stop.set()
        sweeper.join()
        with closing(Database.open(path)) as database:
            Retentions(database).remove("default")


def _sweep(path: Path, stop: threading.Event) -> None:
    sweep(load({"SVC_DB": str(path)}), Shared(), stop)


def _fill(path: Path, rows: int) -> None:
    """Store decisions with a ref each, copies of one, all of the same age."""
    then = time.time() - AGE_S
    with closing(Database.open(path)) as database:
        Decisions(database, lambda: then).add(record())
    with closing(sqlite3.connect(path)) as connection:
        (last,) = connection.execute("SELECT id FROM decisions").fetchone()
        columns = ", ".join(name for (name,) in connection.execute(_COLUMNS))
        new = ids.following(last, int(then * 1_000), rows - 1)
        copies = ((one, f"ticket {number * 7_919 % rows}") for number, one in enumerate(new))
        with connection:
            connection.executemany(_COPY.format(columns), copies)


def _left(path: Path, rows: int) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(_LEFT, (rows,)).fetchone()[0])


@contextmanager
def _service(path: Path, provider: str) -> Iterator[Process]:
    variables = {"SVC_PROVIDER_BENCH_URL": provider}
    command = servers.serve_command(path, "--model", f"@bench/{decisions.MODEL}")
    with running(command, {**python_environment(), **variables}) as server:
        yield server


BENCHMARK = Benchmark(
    "retention",
    f"{PER_SECOND:g} one-call decisions a second, provider at {LIVE_MS:g} ms, while {ROWS:,} "
    "decisions expire, and what that adds: 99%",
    "at most +25 ms",
    _measure,
)
