"""Workers on one database, on a machine of many cores: decisions a second of one and of more.

    python -m benchmarks.scaling                # 1, 2, 4 … workers, as many as there are processors
    python -m benchmarks.scaling --workers 1 8  # these only

No part of `make bench`: what it asks needs more than the two cores that its rows are measured on. A
table for each load, cached decisions first; the twin is the bare server of S1 or S2 with as many
workers. wrk and nginx run beside them, so the last rows share their cores with these.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import decisions, machine, nginx, servers, wrk
from benchmarks.harness import (
    Process,
    memory_mb,
    processor_s,
    require,
    run_program,
    temporary_directory,
)
from svc import processors

CONNECTIONS_PER_WORKER = 32
HELPERS = 4  # threads of wrk and processes of nginx at most
WARM_UP_S = 2.0
HEAD = """
| workers | decisions/s | times one worker | median, p99 | processor time | memory | twin | ratio |
|---:|---:|---:|---:|---:|---:|---:|---:|"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A load, and the twin that does the least of it."""

    name: str
    twin: str
    debias: bool
    cached: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """What some workers came to."""

    loads: Sequence[wrk.Load]
    processor_ms: float  # of one decision
    memory_mb: float

    @property
    def rate(self) -> float:
        """The median of the rounds."""
        return median(load.rate for load in self.loads)


KINDS = (
    Kind("out of the cache (S1)", "constant", debias=True, cached=True),
    Kind("one provider call each (S2)", "one_call", debias=False, cached=False),
)


def measure(server: Process, body: str, workers: int, rounds: int, seconds: float) -> Measured:
    """Load a server of so many workers."""
    helpers = min(workers, HELPERS)

    def load(duration: float) -> wrk.Load:
        return wrk.load(
            f"{server.url}/v1/decide",
            body,
            connections=CONNECTIONS_PER_WORKER * workers,
            seconds=duration,
            threads=helpers,
        )

    load(WARM_UP_S)
    before = processor_s(server.pid)
    loads = [load(seconds) for _ in range(rounds)]
    spent = processor_s(server.pid) - before
    return Measured(loads, 1e3 * spent / sum(one.requests for one in loads), memory_mb(server.pid))


def rows(kind: Kind, counts: Sequence[int], rounds: int, seconds: float) -> Iterator[str]:
    """A row of the table for each number of workers."""
    body = decisions.body(debias=kind.debias)
    if kind.cached:
        body = body.replace(wrk.UNIQUE, "2041")
    of_one = 0.0
    for workers in counts:
        with nginx.provider(decisions.completion(), min(workers, HELPERS)) as provider:
            with (
                temporary_directory() as folder,
                servers.service_on(Path(folder) / "svc.db", provider, workers=workers) as service,
            ):
                own = measure(service, body, workers, rounds, seconds)
            with servers.twin(kind.twin, provider, workers=workers) as twin:
                bare = measure(twin, body, workers, rounds, seconds)
        of_one = of_one or own.rate / workers
        middle = sorted(own.loads, key=lambda load: load.rate)[len(own.loads) // 2]
        yield (
            f"| {workers} | {own.rate:,.0f} | {own.rate / of_one:.2f} | {middle.median_ms:.0f}, "
            f"{middle.p99_ms:.0f} ms | {own.processor_ms:.2f} ms | {own.memory_mb:.0f} MB | "
            f"{bare.rate:,.0f} | {own.rate / bare.rate:.2f} |"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, nargs="+", default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    chosen = parser.parse_args()
    require("nginx", "wrk")
    counts = chosen.workers or [2**power for power in range(processors.usable().bit_length())]
    print("\n".join(machine.description()), flush=True)
    for kind in KINDS:
        print(f"\n{kind.name}\n{HEAD}", flush=True)
        for row in rows(kind, counts, chosen.rounds, chosen.seconds):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
