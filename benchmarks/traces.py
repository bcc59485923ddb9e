"""Traces: S1's cached decisions with all traces sent to a collector, beside the same without."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import decisions, nginx, wrk
from benchmarks.harness import (
    Benchmark,
    Options,
    Process,
    Result,
    family,
    python_environment,
    require,
    running,
    seconds_of,
    temporary_directory,
)
from benchmarks.servers import serve_command
from benchmarks.throughput import CONNECTIONS

TURNS = 40  # of both servers, a burst each
BURST_S = 1.0
WARM_UPS = 2  # bursts of each server that count for nothing
BESIDE, TRACES = "svc-", "svc-traces"  # names of processes beside the workers
BODY = decisions.body(debias=True).replace(wrk.UNIQUE, "2041")


@dataclass(frozen=True, slots=True)
class _Burst:
    """Decisions a second, and processor seconds for each: the workers', and with the sender's."""

    rate: float
    answering: float
    altogether: float


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    with temporary_directory() as folder, ExitStack() as stack:
        provider = stack.enter_context(nginx.provider(decisions.completion()))
        off = stack.enter_context(_service(Path(folder) / "off.db", provider))
        # It answers whatever is sent there with 200, and so takes spans too.
        variables = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{provider}/chat/completions"}
        on = stack.enter_context(_service(Path(folder) / "on.db", provider, **variables))
        for _ in range(WARM_UPS):
            _turn(on, off)
        turns = [_turn(on, off) for _ in range(8 if options.quick else TURNS)]
    return _result(turns)


def _service(database: Path, provider: str, **variables: str) -> AbstractContextManager[Process]:
    environment = {**python_environment(), "SVC_PROVIDER_BENCH_URL": provider, **variables}
    return running(serve_command(database, "--model", f"@bench/{decisions.MODEL}"), environment)


def _turn(on: Process, off: Process) -> tuple[_Burst, _Burst]:
    done = {server.pid: _burst(server) for server in random.sample((on, off), 2)}
    return done[on.pid], done[off.pid]


def _burst(server: Process) -> _Burst:
    before = _spent(server.pid)
    url = f"{server.url}/v1/decide"
    load = wrk.load(url, BODY, connections=CONNECTIONS, seconds=BURST_S)
    answering, sending = (
        (now - then) / load.requests for now, then in zip(_spent(server.pid), before, strict=True)
    )
    return _Burst(load.rate, answering, answering + sending)


def _spent(pid: int) -> tuple[float, float]:
    """Processor seconds of the workers with their master, and of the process that sends spans."""
    answering = sending = 0.0
    for member in family(pid):
        # Others beside the workers come and go.
        with suppress(FileNotFoundError, ProcessLookupError):
            name = Path(f"/proc/{member}/comm").read_text().strip()
            answering += seconds_of(member) * (not name.startswith(BESIDE))
            sending += seconds_of(member) * (name == TRACES)
    return answering, sending


def _result(turns: list[tuple[_Burst, _Burst]]) -> Result:
    def ratio(of: Callable[[_Burst], float]) -> str:
        return f"{median(of(on) / of(off) for on, off in turns):.3f}"

    on, off = (f"{median(turn[which].rate for turn in turns):,.0f}/s" for which in (0, 1))
    rate, answering = ratio(lambda one: one.rate), ratio(lambda one: one.answering)
    costs = f"{answering}, with what sends {ratio(lambda one: one.altogether)}"
    return Result(on, off, f"{rate}; processor time of workers {costs}")


BENCHMARK = Benchmark(
    "traces",
    "cached decision with all traces ÷ without",
    "at least 0.97",
    _measure,
)
