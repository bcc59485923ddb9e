"""S3: a decision of two provider calls, one in each option order."""

from __future__ import annotations

from benchmarks.harness import Benchmark, Options, Result
from benchmarks.throughput import against_twin


def _measure(options: Options) -> Result:
    return against_twin("two_calls", options, debias=True)


BENCHMARK = Benchmark("S3", "debiased decision ÷ twin C", "at least 0.70", _measure)
