"""Load from wrk: as many requests as the connections carry, each with a body of its own."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from dataclasses import dataclass

from benchmarks.harness import BenchmarkError, require

UNIQUE = "@unique@"  # in a body: replaced with something else in every request
WRK_THREADS = 1  # one is enough for 16 to 32 connections, and leaves the cores to the servers
_RUN = itertools.count()
_MARK = "wrk-result"
_SCRIPT = """
local before, after = [==[{before}]==], [==[{after}]==]
local count = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
function request()
  count = count + 1
  local mark = {unique} and "{run}-" .. count or ""
  return wrk.format(nil, nil, nil, before .. mark .. after)
end
function done(summary, latency, requests)
  local e = summary.errors
  local lost = e.connect + e.read + e.write + e.timeout
  print("{mark}", summary.requests, summary.duration, e.status, lost,
    latency:percentile(50), latency:percentile(99))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run under load came to."""

    requests: int
    seconds: float
    median_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


def load(
    url: str,
    body: str,
    *,
    connections: int,
    seconds: float,
    key: str = "none",
    refused: bool = False,
) -> Load:
    """POST `body` to `url` for `seconds`; without `UNIQUE` in it, always the same one.

    `key` is sent as an API key. Raises `BenchmarkError` when an answer is an error, or with
    `refused` when one is not; `NotRun` where wrk is absent.
    """
    require("wrk")
    before, found, after = body.partition(UNIQUE)
    unique = "true" if found else "false"
    script = _SCRIPT.format(
        before=before, after=after, unique=unique, run=next(_RUN), mark=_MARK, key=key
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        duration = f"{max(1, round(seconds))}s"
        threads, conns = f"-t{WRK_THREADS}", f"-c{connections}"
        command = ["wrk", threads, conns, "-d", duration, "--timeout", "30s", "-s", file.name, url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"wrk failed: {done.stderr.strip()}")
    return parse(done.stdout, refused)


def parse(output: str, refused: bool = False) -> Load:
    """Read the line that the script prints.

    Raises `BenchmarkError` for errors under load, or with `refused` for anything else.
    """
    lines = [line.split() for line in output.splitlines() if line.startswith(_MARK)]
    if not lines:
        raise BenchmarkError(f"wrk printed no result: {output.strip()}")
    requests, microseconds, errors, lost, median, p99 = (float(field) for field in lines[-1][1:])
    if errors != (requests if refused else 0) or lost or not requests:
        raise BenchmarkError(
            f"of {requests:.0f} answers {errors:.0f} were errors; {lost:.0f} requests were lost"
        )
    return Load(int(requests), microseconds / 1e6, median / 1e3, p99 / 1e3)
