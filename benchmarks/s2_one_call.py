"""S2: a decision of one provider call, nothing cached."""

from __future__ import annotations

from benchmarks.harness import Benchmark, Options, Result
from benchmarks.throughput import against_twin


def _measure(options: Options) -> Result:
    return against_twin("one_call", options, debias=False)


BENCHMARK = Benchmark("S2", "one-call decision, nothing cached ÷ twin B", "at least 0.70", _measure)
