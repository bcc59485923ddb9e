"""S17: what a program pays for importing the client."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from statistics import median

from benchmarks.harness import Benchmark, Options, Result, python_environment

RUNS = 40  # whole processes of each, in an order that is drawn anew for each pair
_BARE, _OURS = "import requests", "import svc.client"


def _measure(options: Options) -> Result:
    pairs = [_pair() for _ in range(5 if options.quick else RUNS)]
    ours, bare = (median(pair[program] for pair in pairs) for program in (_OURS, _BARE))
    more = median(pair[_OURS] - pair[_BARE] for pair in pairs)
    return Result(f"{ours * 1000:.0f} ms", f"{bare * 1000:.0f} ms", f"+{more * 1000:.0f} ms")


def _pair() -> dict[str, float]:
    return {program: _took(program) for program in random.sample((_BARE, _OURS), 2)}


def _took(program: str) -> float:
    start = time.perf_counter()
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True, capture_output=True, env=python_environment())
    return time.perf_counter() - start


BENCHMARK = Benchmark(
    "S17", "`import svc.client`, a whole process, over `import requests`", "30 ms more", _measure
)
