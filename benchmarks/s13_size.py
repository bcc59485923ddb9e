"""S13: how much of the database file one decision takes."""

from __future__ import annotations

from pathlib import Path

from benchmarks import callers, decisions, nginx, servers
from benchmarks.harness import Benchmark, Options, Result, temporary_directory

DECISIONS = 10_000
CALLERS = 16


def _measure(options: Options) -> Result:
    bodies = decisions.bodies(DECISIONS, debias=False, questions=1)
    with temporary_directory() as folder, nginx.provider(decisions.completion(1)) as provider:
        database = Path(folder) / "svc.db"
        with servers.service_on(database, provider) as service:
            callers.send(f"{service.url}/v1/decide", bodies, callers=CALLERS)
        # The server has ended: its last act was a checkpoint, and all of the log is in the file.
        size = sum(file.stat().st_size for file in database.parent.glob("svc.db*"))
    return Result(f"{size / DECISIONS:,.0f}")


BENCHMARK = Benchmark(
    "S13",
    f"database bytes per decision with one three-option choice, {DECISIONS:,} decisions",
    "at most 1,000",
    _measure,
)
