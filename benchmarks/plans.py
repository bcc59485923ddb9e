"""What stages, councils and races cost, beside the provider calls that they cannot avoid."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import callers, servers
from benchmarks.decisions import CATEGORY, MODEL
from benchmarks.harness import Benchmark, Options, Process, Result, temporary_directory
from benchmarks.slow_provider import slow_provider

PROVIDER_MS = 100.0
SLOWER_MS = 1000.0  # the other models of the race
STAGES = 8
DECISIONS = 10  # one after the other
FAST, SLOW = f"@bench/{MODEL}", f"@slow/{MODEL}"
_NUMBERS = itertools.count()


def _body(model: Any, stages: int) -> str:
    questions: dict[str, dict[str, Any]] = {}
    for number in range(stages):  # each in its own words: equal asks would share one call
        worded = {**CATEGORY, "instructions": f"What is part {number} of the ticket about?"}
        needs = [f"q{number - 1}"] if number else []
        questions[f"q{number}"] = {**worded, "depends_on": needs}
    state = f"Ticket plan-{next(_NUMBERS)}: where is my refund?"
    return json.dumps({"state": state, "questions": questions, "model": model, "debias": False})


def _measuring(model: Any, stages: int, calls: int) -> Callable[[Options], Result]:
    """Median time of a decision against that of the bare provider calls one after the other."""

    def measure(options: Options) -> Result:
        with (
            slow_provider(PROVIDER_MS, questions=1) as provider,
            slow_provider(SLOWER_MS, questions=1) as slower,
            temporary_directory() as folder,
            servers.service_on(Path(folder) / "svc.db", provider, slow=slower) as service,
        ):
            bare = _milliseconds(f"{provider}/chat/completions", lambda: "{}") * calls
            own = _milliseconds(_url(service), lambda: _body(model, stages))
        return Result(f"{own:.0f} ms", f"{bare:.0f} ms", f"{own / bare:.2f}")

    return measure


def _url(service: Process) -> str:
    return f"{service.url}/v1/decide"


def _milliseconds(url: str, body: Callable[[], str]) -> float:
    bodies = [body() for _ in range(1 + DECISIONS)]  # the first opens connections
    return median(callers.send(url, bodies, callers=1).latencies_s[1:]) * 1000


STAGED = Benchmark(
    "stages",
    f"{STAGES} stages, provider at 100 ms ÷ {STAGES} bare calls",
    "at most 1.15",
    _measuring(FAST, STAGES, calls=STAGES),
)
COUNCIL = Benchmark(
    "council",
    "council of five, provider at 100 ms ÷ one bare call",
    "one latency",
    _measuring({"council": [FAST] * 5}, 1, calls=1),
)
RACE = Benchmark(
    "race",
    "race of two models at 1,000 ms and one at 100 ms ÷ one bare call at 100 ms",
    "its fastest member",
    _measuring({"race": [SLOW, FAST, SLOW]}, 1, calls=1),
)
