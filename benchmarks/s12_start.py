"""S12: how long a person waits for the command line, and for the server."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks import servers
from benchmarks.harness import Benchmark, Options, Result, python_environment, temporary_directory

RUNS = 7  # whole processes


def _measure(options: Options) -> Result:
    with temporary_directory() as folder:
        database = Path(folder) / "svc.db"
        shown = _median_s(lambda: _run([*servers.SVC, "--help"]))
        up = _median_s(lambda: _serve(database))
    bare_shown = _median_s(lambda: _run([sys.executable, "-c", "import click"]))
    bare_up = _median_s(_serve_twin)
    ratios = f"{shown / bare_shown:.1f} / {up / bare_up:.1f}"
    return Result(f"{shown:.2f} / {up:.2f} s", f"{bare_shown:.2f} / {bare_up:.2f} s", ratios)


def _run(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=python_environment())
    return time.perf_counter() - start


def _serve(database: Path) -> float:
    start = time.perf_counter()
    with servers.service_on(database, "http://127.0.0.1:9/v1"):
        return time.perf_counter() - start


def _serve_twin() -> float:
    start = time.perf_counter()
    with servers.twin("constant"):
        return time.perf_counter() - start


def _median_s(run: Callable[[], float]) -> float:
    run()  # once for the caches of the disk and of Python
    return median(run() for _ in range(RUNS))


BENCHMARK = Benchmark(
    "S12",
    "`svc --help` / server answering `/health` after its start (twins: `import click`, twin A)",
    "0.3 / 1.2 s",
    _measure,
)
