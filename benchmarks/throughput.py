"""Service and twin under the same load, taking turns so that both meet the same machine."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from benchmarks import decisions, nginx, servers, wrk
from benchmarks.harness import Options, Process, Result, processor_s, require

CONNECTIONS = 32
WARM_UP_S = 1.0  # seconds of load that count for nothing: threads and connections come up


@dataclass(frozen=True, slots=True)
class Burst:
    """What a server did under load for a short time."""

    rate: float  # decisions a second
    cost: float  # processor seconds of a decision


def burst(
    server: Process,
    body: str,
    seconds: float,
    route: str = "/v1/decide",
    connections: int = CONNECTIONS,
) -> Burst:
    """Load a server for `seconds`."""
    before = processor_s(server.pid)
    load = wrk.load(f"{server.url}{route}", body, connections=connections, seconds=seconds)
    return Burst(load.rate, (processor_s(server.pid) - before) / load.requests)


def against_twin(twin_name: str, options: Options, *, debias: bool, cached: bool = False) -> Result:
    """Decisions a second of the service and of a twin; the ratio is the median over the rounds.

    With `cached` all requests are the same one.
    """
    require("nginx", "wrk")
    body = decisions.body(debias=debias)
    if cached:
        body = body.replace(wrk.UNIQUE, "2041")

    def rate(server: Process, seconds: float) -> float:
        url = f"{server.url}/v1/decide"
        return wrk.load(url, body, connections=CONNECTIONS, seconds=seconds).rate

    with (
        nginx.provider(decisions.completion()) as provider,
        servers.twin(twin_name, provider) as twin,
        servers.service(provider) as service,
    ):
        for server in (twin, service):
            rate(server, WARM_UP_S)
        pairs = [
            (rate(twin, options.seconds), rate(service, options.seconds))
            for _ in range(options.rounds)
        ]
    twins, services = zip(*pairs, strict=True)
    ratio = median(own / bare for bare, own in pairs)
    return Result(f"{median(services):,.0f}/s", f"{median(twins):,.0f}/s", f"{ratio:.2f}")
