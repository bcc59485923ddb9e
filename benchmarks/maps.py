"""`svc map` as a user runs it: its memory over a long input, and its rate."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import servers
from benchmarks.decisions import CATEGORY, MODEL
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
    Options,
    Result,
    ended,
    python_environment,
    temporary_directory,
)
from benchmarks.slow_provider import slow_provider

LINES, QUICK, FEW = 1_000_000, 100_000, 1_000
PROVIDER_MS = 50.0
CONCURRENCY = 64
ROWS = 6_000  # some five seconds at the ideal rate
SKIPPED = {**CATEGORY, "when": {"vip": True}}  # of no line: no model's time is in the way


def _measure_memory(options: Options) -> Result:
    many = QUICK if options.quick else LINES
    with temporary_directory() as folder:
        few_mb, _ = _map(Path(folder), FEW, SKIPPED, ["--demo"])
        many_mb, seconds = _map(Path(folder), many, SKIPPED, ["--demo"])
    rate = f"{many / seconds:,.0f} lines a second"
    return Result(f"{many_mb:.0f} MB over {many:,}, {rate}", f"{few_mb:.0f} MB over {FEW:,}")


def _measure_rate(options: Options) -> Result:
    ideal = CONCURRENCY / (PROVIDER_MS / 1000)
    arguments = ["--model", f"@bench/{MODEL}", "--concurrency", str(CONCURRENCY)]
    with slow_provider(PROVIDER_MS, questions=1) as url, temporary_directory() as folder:
        once = _rate(Path(folder), [*arguments, "--no-debias"], url)
        twice = _rate(Path(folder), arguments, url)
    measured = f"{once:,.0f} / {twice:,.0f} lines a second"
    return Result(measured, f"{ideal:,.0f}", f"{once / ideal:.2f} / {twice / ideal:.2f}")


def _rate(folder: Path, arguments: list[str], url: str) -> float:
    """Lines a second, without the start of the process."""
    _, start = _map(folder, 1, CATEGORY, arguments, url)
    _, seconds = _map(folder, ROWS, CATEGORY, arguments, url)
    return ROWS / (seconds - start)


def _map(
    folder: Path, lines: int, question: object, arguments: list[str], url: str = ""
) -> tuple[float, float]:
    """Largest resident MiB and seconds of a run over `lines` lines."""
    (folder / "questions.json").write_text(json.dumps({"category": question}))
    with (folder / "in.jsonl").open("w") as file:
        file.writelines(f'{{"ticket": {n}, "text": "Where is my refund?"}}\n' for n in range(lines))
    files = ["-q", folder / "questions.json", "-o", folder / "out.jsonl", folder / "in.jsonl"]
    command = [*servers.SVC, "map", "--restart", *arguments, *map(str, files)]
    environment = {**python_environment(), **({"SVC_PROVIDER_BENCH_URL": url} if url else {})}
    start = time.perf_counter()
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        end = ended(child)
    if end.code:
        raise BenchmarkError(f"svc map ended with {end.code}")
    return end.memory_mb, time.perf_counter() - start


MEMORY = Benchmark(
    "S11",
    f"`svc map`, largest memory over {LINES:,} lines (twin: over {FEW:,})",
    "does not grow with the input",
    _measure_memory,
)
RATE = Benchmark(
    "map",
    f"`svc map --concurrency {CONCURRENCY}`, provider at {PROVIDER_MS:.0f} ms, lines a second, "
    "`--no-debias` / debiased (twin: the ideal rate)",
    "at least 85% of the ideal rate",
    _measure_rate,
)
