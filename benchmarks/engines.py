"""Rows through Ray Data on this machine, beside the rate of the service that answers them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks import servers, wrk
from benchmarks.decisions import CATEGORY
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
    NotRun,
    Options,
    Process,
    Result,
    family,
    memory_mb,
    python_environment,
    temporary_directory,
)
from benchmarks.slow_provider import slow_provider
from benchmarks.throughput import CONNECTIONS, WARM_UP_S

PYTHON = "SVC_ENGINES_PYTHON"
PROVIDER_MS = 1.0
ROWS, QUICK = 1_000_000, 20_000
TARGET = 0.85
LOOK_S = 1.0  # seconds between two looks at the actors' memory
_TEXT = "I was charged twice for my order last week. Please refund it today."
_RULED = {**CATEGORY, "rules": [{"if": {"kind": "rule"}, "answer": "billing"}]}


@dataclass(frozen=True)
class Run:
    """What came of the rows of one run."""

    rate: float  # rows a second, from the first block to the last
    early_mb: float  # memory of an actor once a fifth of the rows was answered
    last_mb: float  # and at the end


def _measure(options: Options) -> Result:
    python = os.environ.get(PYTHON, "")
    if not python:
        raise NotRun(f"needs `make engines`, and {PYTHON}=.venv-engines/bin/python")
    rows = QUICK if options.quick else ROWS
    with slow_provider(PROVIDER_MS, questions=1) as provider, servers.service(provider) as service:
        _own_rate(service, WARM_UP_S)
        before = _own_rate(service, options.seconds)
        run = _through_ray(python, service, rows)
        own = mean([before, _own_rate(service, options.seconds)])
        service_mb = memory_mb(service.pid)
    return Result(
        f"{run.rate:,.0f} rows a second of {rows:,}; an actor {run.early_mb:.0f} MB after a fifth, "
        f"{run.last_mb:.0f} MB at the end; the service {service_mb:.0f} MB",
        f"{own:,.0f}/s",
        f"{run.rate / own:.2f}",
    )


def _own_rate(service: Process, seconds: float) -> float:
    """Decisions a second on the same rows from wrk, which costs next to nothing."""
    states = [
        {"kind": "rule", "text": f"Ticket {wrk.UNIQUE}: {_TEXT}"},
        {"kind": "cache", "text": _TEXT},
        {"kind": "model", "text": f"Ticket {wrk.UNIQUE}: {_TEXT}"},
    ]
    questions = {"category": _RULED}
    bodies = [json.dumps({"state": s, "questions": questions, "debias": False}) for s in states]
    url = f"{service.url}/v1/decide"
    return wrk.load(url, bodies, connections=CONNECTIONS, seconds=seconds, keyed=True).rate


def _through_ray(python: str, service: Process, rows: int) -> Run:
    # Ray's sockets lie in the folder, whose path has to be short for them.
    with temporary_directory() as folder, tempfile.TemporaryFile("w+") as words:
        command = [python, "-m", "benchmarks.ray_rows", service.url, str(rows), folder]
        # Left alone, Ray's workers give way to all else on the machine, which may have other work.
        environment = {**python_environment(), "RAY_worker_niceness": "0"}
        child = subprocess.Popen(
            command, env=environment, stdout=words, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            memory = list(_memory(child))
        finally:
            # Also what Ray has left behind, and all of it where the benchmark is interrupted.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        words.seek(0)
        said = words.read()
    if child.returncode:
        raise BenchmarkError(f"the program on Ray ended with {child.returncode}:\n{said[-2000:]}")
    found = json.loads(said.splitlines()[-1])
    if found["came"] != rows or found["failed"]:
        raise BenchmarkError(f"of {rows} rows {found['came']} came, {found['failed']} failed")
    return Run(found["rate"], max(memory[len(memory) // 5]), max(memory[-1]))


def _memory(child: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """What each actor takes, in MiB, again and again until the program has ended."""
    while child.poll() is None:
        # A thread or a process of the program may end while it is looked at.
        with contextlib.suppress(OSError):
            if sizes := [memory_mb(pid) for pid in _actors(child.pid)]:
                yield sizes
        time.sleep(LOOK_S)


def _actors(pid: int) -> list[int]:
    """The processes of a program's Ray that decide rows."""
    found = []
    for member in family(pid):
        try:
            words = Path(f"/proc/{member}/cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::") and b"DecidingActor" in words:
            found.append(member)
    return found


BENCHMARK = Benchmark(
    "ray",
    f"rows through Ray Data, two actors, a third each by rule, cache and a {PROVIDER_MS:.0f} ms "
    "provider (twin: the service's own rate on them, by wrk)",
    f"at least {TARGET:.0%} of the service's own rate, memory flat",
    _measure,
)
