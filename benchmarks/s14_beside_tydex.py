"""S14: one-call decisions on two workers beside tydex, another typed-decision server."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import decisions, nginx, servers
from benchmarks.harness import (
    Benchmark,
    NotRun,
    Options,
    Process,
    Result,
    python_environment,
    require,
    running,
    temporary_directory,
)
from benchmarks.throughput import WARM_UP_S, Burst, burst

VERSION = "0.1.3"
CONNECTIONS = 16
_QUESTION = {
    "id": "category",
    "type": "choice",
    "options": [*decisions.CATEGORY["options"], "none_of_these"],
    "question": decisions.CATEGORY["instructions"],
}


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    if importlib.util.find_spec("tydex") is None:
        raise NotRun(f"needs `pip install tydex=={VERSION}`")
    theirs = json.dumps({"state": decisions.STATE, "questions": [_QUESTION]})
    ours = decisions.body(debias=False, questions=1)

    def loaded(server: Process, path: str, body: str, seconds: float) -> Burst:
        return burst(server, body, seconds, path, CONNECTIONS)

    with (
        temporary_directory() as folder,
        nginx.provider(decisions.completion(questions=1)) as provider,
        running(
            [sys.executable, "-m", "benchmarks.tydex_server", provider], python_environment()
        ) as other,
        servers.service_on(Path(folder) / "svc.db", provider, workers=2) as service,
    ):
        calls = ((other, "/evaluate", theirs), (service, "/v1/decide", ours))
        for call in calls:
            loaded(*call, WARM_UP_S)
        pairs = [[loaded(*call, options.seconds) for call in calls] for _ in range(options.rounds)]
    return _result(pairs)


def _result(pairs: Sequence[Sequence[Burst]]) -> Result:
    ratio = median(own.rate / other.rate for other, own in pairs)
    cost = median(own.cost / other.cost for other, own in pairs)
    others, services = ([one.rate for one in side] for side in zip(*pairs, strict=True))
    return Result(
        f"{median(services):,.0f}/s",
        f"{median(others):,.0f}/s",
        f"{ratio:.2f}; processor time {cost:.2f}",
    )


BENCHMARK = Benchmark(
    "S14",
    f"one-call decisions, two workers, {CONNECTIONS} connections ÷ tydex {VERSION}",
    "at least 1.2",
    _measure,
)
