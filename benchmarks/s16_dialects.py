"""S16: one decision in the words of OpenAI's and Google's clients, and in the service's own."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks import decisions, nginx, servers, wrk
from benchmarks.harness import Benchmark, Options, Process, Result, processor_s, require
from benchmarks.throughput import CONNECTIONS, WARM_UP_S

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


@dataclass(frozen=True, slots=True)
class _Burst:
    rate: float  # decisions a second
    cost: float  # processor seconds of a decision


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
            _burst(service, way, WARM_UP_S)
        turns = [_turn(service, ways) for _ in range(4 if options.quick else BURSTS)]
    return _result(turns)


def _turn(service: Process, ways: tuple[_Way, ...]) -> dict[_Way, _Burst]:
    return {way: _burst(service, way, BURST_S) for way in random.sample(ways, len(ways))}


def _burst(service: Process, way: _Way, seconds: float) -> _Burst:
    before = processor_s(service.pid)
    url = f"{service.url}{way.route}"
    load = wrk.load(url, way.body, connections=CONNECTIONS, seconds=seconds)
    return _Burst(load.rate, (processor_s(service.pid) - before) / load.requests)


def _result(turns: list[dict[_Way, _Burst]]) -> Result:
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
