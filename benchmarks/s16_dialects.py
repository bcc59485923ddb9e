"""S16: one decision in the words of OpenAI's and Google's clients, and in the service's own."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks import decisions, nginx, servers
from benchmarks.harness import Benchmark, Options, Process, Result, require
from benchmarks.throughput import WARM_UP_S, Burst, burst

BURSTS = 40  # of each of them, in an order that is drawn anew for each turn
BURST_S = 1.0
_CATEGORY, _URGENT = decisions.CATEGORY, decisions.URGENT
_OPTIONS: dict[str, str] = dict(_CATEGORY["options"])
_PREDICATE = {"type": "predicate", "instructions": _URGENT["instructions"]}
_LISTED = [
    {
        "type": "choice",
        "instructions": _CATEGORY["instructions"],
        "choices": [{"value": key, "description": words} for key, words in _OPTIONS.items()],
        "escape": True,
    },
    _PREDICATE,
]
_MAPPED = {
    "category": {
        "type": "choice",
        "instructions": _CATEGORY["instructions"],
        "criteria": _OPTIONS,
        "escape": True,
    },
    "urgent": _URGENT,
}


@dataclass(frozen=True, slots=True)
class _Way:
    route: str
    body: str


def _dialect(questions: Any) -> _Way:
    fields = {"model": "any", "input": decisions.STATE, "questions": questions, "debias": False}
    return _Way("/v1/decisions", json.dumps(fields))


OWN = _Way("/v1/decide", decisions.body(debias=False))
DIALECTS = (_dialect(_LISTED), _dialect(_MAPPED))


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    with (
        nginx.provider(decisions.completion()) as provider,
        servers.service(provider) as service,
    ):
        ways = (OWN, *DIALECTS)
        for way in ways:
            burst(service, way.body, WARM_UP_S, way.route)
        turns = [_turn(service, ways) for _ in range(4 if options.quick else BURSTS)]
    return _result(turns)


def _turn(service: Process, ways: tuple[_Way, ...]) -> dict[_Way, Burst]:
    return {
        way: burst(service, way.body, BURST_S, way.route) for way in random.sample(ways, len(ways))
    }


def _result(turns: list[dict[_Way, Burst]]) -> Result:
    rates = [f"{median(turn[way].rate for turn in turns):,.0f}/s" for way in DIALECTS]
    faster = [median(turn[way].rate / turn[OWN].rate for turn in turns) for way in DIALECTS]
    costs = [median(turn[way].cost / turn[OWN].cost for turn in turns) for way in DIALECTS]
    return Result(
        " / ".join(rates),
        f"{median(turn[OWN].rate for turn in turns):,.0f}/s",
        f"{_ratios(faster)}; processor time {_ratios(costs)}",
    )


def _ratios(values: list[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


BENCHMARK = Benchmark(
    "S16",
    "one-call decision, `/v1/decisions` in OpenAI's / Google's words ÷ `/v1/decide`",
    "at least 0.97",
    _measure,
)
