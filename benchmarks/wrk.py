"""Load from wrk: as many requests as the connections carry, each with a body of its own."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness import BenchmarkError, require

UNIQUE = "@unique@"  # in a body: replaced with something else in every request
_RUN = itertools.count()
_MARK = "wrk-result"
_SCRIPT = """
local bodies = {{{bodies}}}
local count, threads = 0, 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end
function request()
  count = count + 1
  local unique = "{run}-" .. number .. "-" .. count
  local body = bodies[count % #bodies + 1]
  if {keyed} then wrk.headers["Idempotency-Key"] = unique end
  return wrk.format(nil, nil, nil, table.concat(body, unique))
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
    body: str | Sequence[str],
    *,
    connections: int,
    seconds: float,
    key: str = "none",
    refused: bool = False,
    keyed: bool = False,
    threads: int = 1,
) -> Load:
    """POST `body` to `url` for `seconds`; without `UNIQUE` in it, always the same one.

    Several bodies are sent in turns. `key` is sent as an API key, and with `keyed` an
    `Idempotency-Key` with each request. One of wrk's `threads` is enough for 32 connections, and
    leaves the cores to the servers. Raises `BenchmarkError` when an answer is an error, or with
    `refused` when one is not; `NotRun` where wrk is absent.
    """
    require("wrk")
    bodies = [body] if isinstance(body, str) else body
    script = _SCRIPT.format(
        bodies=", ".join(_in_lua(one) for one in bodies),
        run=next(_RUN),
        mark=_MARK,
        key=key,
        keyed="true" if keyed else "false",
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        duration = f"{max(1, round(seconds))}s"
        size = [f"-t{threads}", f"-c{connections}"]
        command = ["wrk", *size, "-d", duration, "--timeout", "30s", "-s", file.name, url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"wrk failed: {done.stderr.strip()}")
    return parse(done.stdout, refused)


def _in_lua(body: str) -> str:
    """A table of the parts of a body, between which something else is put in each request."""
    before, found, after = body.partition(UNIQUE)
    return f"{{[==[{before}]==], [==[{after}]==]}}" if found else f"{{[==[{before}]==]}}"


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
