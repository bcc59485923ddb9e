"""Challengers: what asking them costs the live requests beside them."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks import decisions, servers
from benchmarks.harness import (
    Benchmark,
    Options,
    Process,
    Result,
    python_environment,
    temporary_directory,
)
from benchmarks.live import LIVE_MS, PER_SECOND, p99_ms
from benchmarks.slow_provider import slow_provider

# How long a challenger takes that is ten times slower, in milliseconds.
SLOW_MS = 10 * LIVE_MS

# The seconds after which every process knows what a command has set.
KNOWN_S = 1.5

_SHOP = ("--project", "default", "--question", "category")


def _measure(options: Options) -> Result:
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_directory())
        providers = {
            "dead": stack.enter_context(_bound(listens=False)),
            "hanging": stack.enter_context(_bound(listens=True)),
            "slow": stack.enter_context(slow_provider(SLOW_MS, questions=1)),
        }
        live, database = slow_provider(LIVE_MS, questions=1), Path(folder) / "svc.db"
        served = servers.service_on(database, stack.enter_context(live), **providers)
        service = stack.enter_context(served)
        p99_ms(service, 1.0)
        more = {name: _more_ms(service, database, name, options) for name in providers}
    shown = ", ".join(f"{name} {ms:+.1f} ms" for name, ms in more.items())
    return Result(f"the slowest 1%: {shown}")


def _more_ms(service: Process, database: Path, name: str, options: Options) -> float:
    """How much longer the 99th percentile takes beside a challenger: the median of the rounds."""
    return median(_round(service, database, name, options.seconds) for _ in range(options.rounds))


def _round(service: Process, database: Path, name: str, seconds: float) -> float:
    alone = p99_ms(service, seconds)
    _command("set", database, "--model", f"@{name}/{decisions.MODEL}", "--share", "1")
    time.sleep(KNOWN_S)
    beside = p99_ms(service, seconds)
    _command("remove", database)
    time.sleep(KNOWN_S)
    return beside - alone


def _command(name: str, database: Path, *options: str) -> None:
    command = [*servers.SVC, "challenger", name, *_SHOP, *options, "--db", str(database)]
    environment = python_environment()
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)


@contextmanager
def _bound(listens: bool) -> Iterator[str]:
    """The base URL of a provider that never answers, and takes no connections unless it listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        if listens:
            bound.listen()
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


BENCHMARK = Benchmark(
    "challenger",
    f"{PER_SECOND:g} one-call decisions a second, provider at {LIVE_MS:g} ms, beside a challenger "
    "of all of them that is dead, hangs or is ten times slower, and what that adds: 99%",
    "at most 1 ms more",
    _measure,
)
