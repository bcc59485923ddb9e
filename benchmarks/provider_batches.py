"""`svc map --provider-batch` over very many lines, undisturbed and killed again and again.

    nice -n 10 python -m benchmarks.provider_batches       # 100,000 lines, 20 times `kill -9`
    nice -n 10 python -m benchmarks.provider_batches --lines 5000

No part of `make bench`. The provider is the tests' double of the Batch API, which counts how often
it carried out each call, lets a third of the first two batches expire, and loses some responses.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import servers
from benchmarks.harness import (
    BenchmarkError,
    ended,
    python_environment,
    run_program,
    temporary_directory,
)
from tests.batching import BatchDouble
from tests.scripted import Json, Reply, completion

LINES, KILLS = 100_000, 20
TAKES_S = 5.0  # seconds that the double takes for a batch
LOST = 0.3  # the share of creations and uploads after a kill whose response is lost
QUESTIONS = {"late": {"type": "noul", "instructions": "Is the parcel late?"}}
CHANGING = ("id", "latency_ms")


@dataclass(frozen=True, slots=True)
class Run:
    """What a run came to: its output, how it ended and what the provider did for it."""

    output: Path
    seconds: float
    processor_s: float
    memory_mb: float
    batches: int
    paid: Mapping[str, int]


def answer(body: Json, n: int, headers: Mapping[str, str]) -> Reply:
    """A reply that depends on the call alone."""
    p = 0.5 + zlib.crc32(json.dumps(body["messages"]).encode()) % 499 / 1_000
    return Reply(completion("yes", [{"yes": p, "no": 1 - p}]))


def measure(folder: Path, name: str, kills: int, longest_s: float) -> Run:
    """A run over the input in `folder`, killed at so many random points."""
    output = folder / name
    files = ["-q", folder / "q.json", "-o", output, folder / "in.jsonl"]
    options = ["--provider-batch", "--no-debias", "--model", "@bench/m"]
    command = [*servers.SVC, "map", *options, *map(str, files)]
    with BatchDouble(answer, takes_s=TAKES_S) as double:
        double.expiring = {0: 1 / 3, 1: 1 / 3}
        settings = {
            "SVC_PROVIDER_BENCH_URL": double.url,
            "SVC_PROVIDER_BENCH_BATCH": "1",
            "SVC_BATCH_POLL_S": "0.5",
        }
        started = time.perf_counter()
        for number in range(kills):
            child = subprocess.Popen(
                command, env={**python_environment(), **settings}, stderr=subprocess.DEVNULL
            )
            try:
                child.wait(random.uniform(0.5, longest_s))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            else:
                raise BenchmarkError(f"it had ended before kill {number + 1}")
            if random.random() < LOST:
                double.lost_creations.add(double.creations)
                double.lost_uploads.add(double.uploads)
        child = subprocess.Popen(command, env={**python_environment(), **settings})
        end = ended(child)
        if end.code:
            raise BenchmarkError(f"svc map ended with {end.code}")
        seconds = time.perf_counter() - started
        paid = dict(double.carried_out)
        return Run(output, seconds, end.processor_s, end.memory_mb, double.creations, paid)


def same(one: Path, other: Path) -> bool:
    """Whether two outputs are the same but for ids and times."""
    with one.open() as lines, other.open() as others:
        pairs = zip(lines, others, strict=True)
        return all(_steady(line) == _steady(another) for line, another in pairs)


def _steady(line: str) -> str:
    fields = json.loads(line)
    return json.dumps([(key, fields[key]) for key in fields if key not in CHANGING])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--kills", type=int, default=KILLS)
    chosen = parser.parse_args()
    with temporary_directory() as name:
        folder = Path(name)
        (folder / "q.json").write_text(json.dumps(QUESTIONS))
        with (folder / "in.jsonl").open("w") as file:
            file.writelines(f'"Parcel {n} has not come yet."\n' for n in range(chosen.lines))
        whole = measure(folder, "whole.jsonl", 0, 0.0)
        _tell("undisturbed", whole, chosen.lines)
        # All kills together come within some two thirds of the time of a run.
        longest_s = max(1.0, whole.seconds / chosen.kills * 4 / 3)
        killed = measure(folder, "killed.jsonl", chosen.kills, longest_s)
        _tell(f"killed {chosen.kills} times", killed, chosen.lines)
        print(f"output the same but for ids and times: {same(whole.output, killed.output)}")
    return 0


def _tell(name: str, run: Run, lines: int) -> None:
    twice = sum(count > 1 for count in run.paid.values())
    written = run.output.read_bytes().count(b"\n")
    print(
        f"{name}: {written:,} of {lines:,} lines, {len(run.paid):,} calls paid, {twice} of them "
        f"twice, {run.batches} batches, {run.seconds:,.0f} s, the last process "
        f"{run.processor_s:,.0f} s of processor and {run.memory_mb:.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(run_program(main))
