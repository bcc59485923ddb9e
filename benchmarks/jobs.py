"""Jobs: what they cost requests beside them, how fast they are, and what handing one in costs."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import decisions, servers
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
    Options,
    Process,
    Result,
    family,
    memory_mb,
    most_memory_mb,
    processor_s,
    python_environment,
    running,
    temporary_directory,
)
from benchmarks.live import LIVE_MS, PER_SECOND, p99_ms
from benchmarks.slow_provider import slow_provider

MOST, QUICK = 100_000, 10_000

# Rows of a measured job at each time of the provider, in milliseconds.
RATES = {1.0: 4_000, 50.0: 4_000}

# The pause between two looks at a job, in seconds.
LOOK_S = 0.2
RUNNER, BESIDE = "svc-jobs", ("svc-jobs", "svc-sweep")


def _measure_beside(options: Options) -> Result:
    """Requests alone and beside a job, in turn."""
    with slow_provider(LIVE_MS, questions=1) as provider, _service(provider) as service:
        p99_ms(service, 1.0)
        rounds = [_round(service, options.seconds) for _ in range(options.rounds)]
    alone, beside = (median(times) for times in zip(*rounds, strict=True))
    ratio = median(beside / alone for alone, beside in rounds)
    return Result(f"99% in {beside:.1f} ms", f"99% in {alone:.1f} ms", f"{ratio:.2f}")


def _round(service: Process, seconds: float) -> tuple[float, float]:
    """The 99th percentile of requests in milliseconds, alone and beside a job."""
    alone = p99_ms(service, seconds)
    job = _submit(service, _rows(MOST), _JSON)
    # The process that runs jobs has to be there.
    _wait(service, job, 1)
    beside = p99_ms(service, seconds)
    _call(service, f"/v1/batch/{job}/cancel", b"", "")
    time.sleep(2 * LIVE_MS / 1000)
    return alone, beside


def _measure_rate(options: Options) -> Result:
    """Rows a second, and the memory of the process that runs a long job."""
    rates = []
    for milliseconds, rows in RATES.items():
        with slow_provider(milliseconds, questions=1) as provider, _service(provider) as service:
            job = _submit(service, _rows(rows), _JSON)
            began = time.perf_counter()
            _wait(service, job, rows)
            rates.append(rows / (time.perf_counter() - began))
    few, many = _memory(options)
    shown = " / ".join(f"{rate:,.0f}" for rate in rates)
    return Result(f"{shown} rows a second; {many:.0f} MB", f"{few:.0f} MB at the first 1,000 rows")


def _memory(options: Options) -> tuple[float, float]:
    """MiB of the process that runs a job, after its first rows and the most until its last."""
    rows = QUICK if options.quick else MOST
    with slow_provider(1.0, questions=1) as provider, _service(provider) as service:
        job = _submit(service, _rows(rows, rule=True), _LINES, rule=True)
        _wait(service, job, 1_000)
        few = _runner_mb(service)
        most = few
        while not _has_settled(service, job, rows):
            most = max(most, _runner_mb(service) or most)
            time.sleep(LOOK_S)
    return few, most


def _runner_mb(service: Process) -> float:
    """MiB of the youngest process of jobs, 0 where there is none."""
    found = [pid for pid in family(service.pid) if _name(pid) == RUNNER]
    try:
        return memory_mb(found[-1]) if len(found) > 1 else 0.0
    except OSError:
        return 0.0


def _measure_submit(options: Options) -> Result:
    """Processor time and memory of the worker for one submission, as JSON and as JSON lines."""
    shown = []
    for media in (_JSON, _LINES):
        with slow_provider(1.0, questions=1) as provider, _service(provider) as service:
            (worker,) = (pid for pid in family(service.pid)[1:] if _name(pid) not in BESIDE)
            _submit(service, _rows(10), media)
            used_s, before_mb = processor_s(worker), most_memory_mb(worker)
            _submit(service, _rows(MOST), media)
            used_s, grown = processor_s(worker) - used_s, most_memory_mb(worker) - before_mb
            shown.append(f"{used_s:.2f} s, {grown:.0f} MB")
    return Result(" / ".join(shown))


_JSON, _LINES = "application/json", "application/x-ndjson"


@contextmanager
def _service(provider: str) -> Iterator[Process]:
    with temporary_directory() as folder:
        variables = {"SVC_PROVIDER_BENCH_URL": provider, "SVC_MASTER_KEY": "bench"}
        options = ("--model", f"@bench/{decisions.MODEL}")
        command = servers.serve_command(Path(folder) / "svc.db", *options)
        with running(command, {**python_environment(), **variables}) as server:
            yield server


def _rows(count: int, rule: bool = False) -> list[dict[str, Any]]:
    bodies = decisions.bodies(count, debias=False, questions=1)
    states = (json.loads(body)["state"][:80] for body in bodies)
    return [
        {"id": f"row-{n}", "state": {"text": state} if rule else state, "ref": f"ref-{n}"}
        for n, state in enumerate(states)
    ]


def _submit(
    service: Process, rows: Sequence[dict[str, Any]], media: str, rule: bool = False
) -> str:
    question = dict(decisions.CATEGORY)
    if rule:
        question["when"] = {"vip": True}
    shared = {"questions": {"category": question}, "debias": False}
    lines = [json.dumps(row) for row in rows]
    if media == _LINES:
        sent = "\n".join([json.dumps(shared), *lines])
    else:
        sent = json.dumps(shared)[:-1] + f', "rows": [{",".join(lines)}]}}'
    return str(_call(service, "/v1/batch", sent.encode(), media)["id"])


def _wait(service: Process, job: str, rows: int) -> None:
    while not _has_settled(service, job, rows):
        time.sleep(LOOK_S)


def _has_settled(service: Process, job: str, rows: int) -> bool:
    found = _call(service, f"/v1/batch/{job}")
    if found["failed"] or found["status"] == "failed":
        raise BenchmarkError(f"rows of a job failed: {found}")
    return bool(found["answered"] >= rows)


def _call(service: Process, path: str, body: bytes | None = None, media: str = "") -> Any:
    request = urllib.request.Request(f"{service.url}{path}", body, {"Content-Type": media})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


BESIDE = Benchmark(
    "jobs-beside",
    f"{PER_SECOND:g} one-call decisions a second, provider at {LIVE_MS:g} ms, beside a job that "
    "runs ÷ alone: 99%",
    "at most 1.10",
    _measure_beside,
)
RATE = Benchmark(
    "jobs-rate",
    "rows of a job a second, provider at 1 ms / 50 ms; most memory of the process that runs "
    f"{MOST:,} rows",
    "memory does not grow with the rows",
    _measure_rate,
)
SUBMIT = Benchmark(
    "jobs-submit",
    f"handing in {MOST:,} rows as JSON / as JSON lines: processor time and memory of the worker",
    "1 s, 200 MB",
    _measure_submit,
)
