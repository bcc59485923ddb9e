"""By how much callers with wrong keys slow down those with right ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks import decisions, nginx, servers, wrk
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
    Options,
    Result,
    require,
    temporary_directory,
)
from svc import limits
from svc.store.database import Database
from svc.store.keys import ApiKeys

RIGHT, WRONG = 4, 16  # connections
WARM_UP_S = 1.0


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    with temporary_directory() as folder, nginx.provider(decisions.completion()) as provider:
        path = Path(folder) / "svc.db"
        key = _key(path)
        with servers.service_on(path, provider) as service:
            url = f"{service.url}/v1/decide"
            _right(url, key, WARM_UP_S)
            rounds = [_round(url, key, options.seconds) for _ in range(options.rounds)]
    alone, beside, wrong = zip(*rounds, strict=True)
    ratio = median(b.rate / a.rate for a, b, _ in rounds)
    refused = sum(load.requests for load in wrong)
    return Result(
        f"{_shown(beside)}; {refused:,} refused at {median(load.rate for load in wrong):,.0f}/s",
        _shown(alone),
        f"{ratio:.2f}",
    )


def _round(url: str, key: str, seconds: float) -> tuple[wrk.Load, wrk.Load, wrk.Load]:
    """Right keys alone, right keys beside wrong ones, and the wrong ones."""
    alone = _right(url, key, seconds)
    with ThreadPoolExecutor(1) as pool:
        wrong = pool.submit(_wrong, url, seconds + 1)  # so that they are there to the end
        beside = _right(url, key, seconds)
    return alone, beside, wrong.result()


def _right(url: str, key: str, seconds: float) -> wrk.Load:
    body = _body()
    return wrk.load(url, body, connections=RIGHT, seconds=seconds, key=key)


def _wrong(url: str, seconds: float) -> wrk.Load:
    body = _body()
    return wrk.load(url, body, connections=WRONG, seconds=seconds, key="svc_wrong", refused=True)


def _body() -> str:
    return decisions.body(debias=True).replace(wrk.UNIQUE, "2041")


def _key(path: Path) -> str:
    """The text of a key that may ask as often as it likes."""
    database = Database.open(path)
    made = ApiKeys(database).create("bench", limits.RPM[1])
    database.close()
    if made is None:
        raise BenchmarkError("the new database has a key already")
    return made.text


def _shown(loads: tuple[wrk.Load, ...]) -> str:
    rate, p99 = median(load.rate for load in loads), median(load.p99_ms for load in loads)
    return f"{rate:,.0f}/s, 99% in {p99:.0f} ms"


BENCHMARK = Benchmark(
    "wrong-keys",
    f"cached decisions with a right key, {RIGHT} connections, beside {WRONG} connections "
    "with a wrong one ÷ alone",
    "every right one answered",
    _measure,
)
