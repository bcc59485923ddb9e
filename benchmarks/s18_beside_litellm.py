"""S18: one-call decisions beside the LiteLLM proxy, which forwards a chat completion as it is."""

from __future__ import annotations

import json
import os
import random
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import decisions, nginx, servers
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
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

# The variable that names the proxy's program.
PROGRAM = "SVC_LITELLM"
WORKERS = (1, 2)

# Seconds. In a shorter burst the slower of the two would make too few calls.
BURST_S = 2.0

# Seconds. The proxy's imports alone take ten on an idle machine.
START_S = 90.0
ROUTE = "/v1/chat/completions"

# What the proxy's documentation advises for production, but no database, which would slow it down.
_CONFIG = """
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "{provider}", api_key: none}}
litellm_settings: {{telemetry: false, set_verbose: false, num_retries: 0, request_timeout: 600}}
"""
_VARIABLES = {
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    # Neither of the two servers asks for a key here.
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    # It would look for prices on the network before it starts.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
_BODY = json.dumps(
    {
        "model": decisions.MODEL,
        "messages": [
            {"role": "system", "content": "Answer each question with the letter of its option."},
            {"role": "user", "content": decisions.STATE},
        ],
        "temperature": 0,
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": decisions.ALTERNATIVES,
    }
)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A burst of each server: the proxy's and ours."""

    theirs: Burst
    ours: Burst


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    program = os.environ.get(PROGRAM, "")
    if not program:
        raise NotRun(f"needs `pip install 'litellm[proxy]'`, and {PROGRAM}=.../bin/litellm")
    count = 4 if options.quick else round(options.rounds * options.seconds / BURST_S)
    measured = [_turns(program, workers, count) for workers in WORKERS]
    return Result(
        " / ".join(f"{_rate([turn.ours for turn in turns]):,.0f}/s" for turns in measured),
        " / ".join(f"{_rate([turn.theirs for turn in turns]):,.0f}/s" for turns in measured),
        f"{_over(measured, 'rate')}; ours on two ÷ theirs on one {_two_over_one(measured):.2f}; "
        f"processor time {_over(measured, 'cost')}",
    )


def _turns(program: str, workers: int, count: int) -> list[_Turn]:
    """Load both servers on so many workers, in an order that is drawn anew for each turn."""
    own = decisions.body(debias=False)
    with (
        temporary_directory() as folder,
        nginx.provider(decisions.completion()) as provider,
        _proxy(program, Path(folder), provider, workers) as proxy,
        servers.service_on(Path(folder) / "svc.db", provider, workers=workers) as service,
    ):
        calls = {proxy: (_BODY, ROUTE), service: (own, "/v1/decide")}
        for server, (body, route) in calls.items():
            _first(f"{server.url}{route}", body)
            burst(server, body, 2 * WARM_UP_S, route)
        turns = []
        for _ in range(count):
            done = {}
            for server in random.sample(list(calls), len(calls)):
                body, route = calls[server]
                done[server] = burst(server, body, BURST_S, route)
            turns.append(_Turn(done[proxy], done[service]))
        return turns


@contextmanager
def _proxy(program: str, folder: Path, provider: str, workers: int) -> Iterator[Process]:
    config, port = folder / "litellm.yaml", nginx.free_port()
    config.write_text(_CONFIG.format(model=decisions.MODEL, provider=provider))
    address = ("--host", "127.0.0.1", "--port", str(port))
    command = [program, "--config", str(config), *address, "--num_workers", str(workers)]
    environment = {**python_environment(), **_VARIABLES, "PYTHONPATH": ""}
    with running(command, environment, url=f"http://127.0.0.1:{port}", start_s=START_S) as server:
        yield server


def _first(url: str, body: str) -> None:
    """Make one call, which may take long: the proxy makes its client then."""
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    request = urllib.request.Request(url, body.encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=START_S).close()
    except urllib.error.HTTPError as error:
        words = error.read(2_000).decode(errors="replace")
        raise BenchmarkError(f"{url} answered {error.code}: {words}") from error


def _rate(bursts: Sequence[Burst]) -> float:
    return median(one.rate for one in bursts)


def _two_over_one(measured: Sequence[Sequence[_Turn]]) -> float:
    one, two = measured
    return _rate([turn.ours for turn in two]) / _rate([turn.theirs for turn in one])


def _over(measured: Sequence[Sequence[_Turn]], what: str) -> str:
    """The median ratio of our figure to theirs, for each number of workers."""
    ratios = [
        median(getattr(turn.ours, what) / getattr(turn.theirs, what) for turn in turns)
        for turns in measured
    ]
    return " / ".join(f"{ratio:.2f}" for ratio in ratios)


BENCHMARK = Benchmark(
    "S18",
    "one-call decision ÷ a chat completion forwarded by the LiteLLM proxy, both on one worker / "
    "on two",
    "at least 4 / 8",
    _measure,
)
