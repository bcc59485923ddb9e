"""The soak: very many decisions, and a label for a tenth of them, on one server and one file.

    python -m benchmarks.soak                       # 500,000 decisions; writes SOAK.md and soak.svg
    python -m benchmarks.soak --decisions 20000

No part of `make bench`. Whether memory stays, the file grows evenly, and nothing gets slower.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import sys
import time
from dataclasses import dataclass
from datetime import date
from itertools import cycle
from pathlib import Path

from benchmarks import callers, decisions, machine, nginx, panels, servers
from benchmarks.harness import (
    ROOT,
    BenchmarkError,
    memory_mb,
    require,
    run_program,
    temporary_directory,
)

DECISIONS = 500_000
SLICES = 50  # of the run, each with a sample at its end
LABELLED = 10  # every tenth decision gets a label
CALLERS = 16
FOLDER = ROOT / "benchmarks"
COLUMNS = (
    *("decisions", "memory, MB", "file, MB", "decisions/s"),
    *("median, ms", "99%, ms", "labels 99%, ms"),
)
PAGE, PLOT = "SOAK.md", "soak.svg"
MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """What a slice of the run came to."""

    decisions: int  # so far
    memory_mb: float
    file_mb: float  # of the database with its log
    rate: float  # decisions a second
    median_ms: float  # of a decision
    slow_ms: float  # 99% of them were faster
    label_ms: float  # 99% of the labels were faster


def main() -> int:
    """Run, write the table and the plot; 1 when the file does not hold what was answered."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--decisions", type=int, default=DECISIONS)
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder of table and plot")
    given = parser.parse_args()
    require("nginx")
    given.to.mkdir(parents=True, exist_ok=True)  # before the run, not after it
    began = time.monotonic()
    with temporary_directory() as name, nginx.provider(decisions.completion(1)) as provider:
        database = Path(name) / "svc.db"
        samples = _soak(database, provider, given.decisions)
        found = _found(database)
    seconds = time.monotonic() - began
    wanted = (samples[-1].decisions, samples[-1].decisions // LABELLED, "ok")
    if found != wanted:
        sys.stderr.write(f"the file holds {found} instead of {wanted}\n")
    (given.to / PAGE).write_text(_page(samples, seconds))
    _draw(given.to / PLOT, samples)
    return int(found != wanted)


def _soak(database: Path, provider: str, count: int) -> list[Sample]:
    """One sample for each slice of the run, taken at its end."""
    samples: list[Sample] = []
    size = max(LABELLED, count // SLICES // LABELLED * LABELLED)
    with servers.service_on(database, provider) as service:
        for end in range(size, count + 1, size):
            samples.append(_slice(service.url, service.pid, database, size, end))
            last = samples[-1]
            sys.stderr.write(f"{end:,} decisions, {last.rate:.0f}/s, {last.memory_mb:.0f} MB\n")
    return samples


def _slice(url: str, pid: int, database: Path, size: int, end: int) -> Sample:
    made = callers.send(
        f"{url}/v1/decide",
        decisions.bodies(size, debias=False, questions=1),
        callers=CALLERS,
    )
    labels = [
        json.dumps({"decision_id": json.loads(body)["id"], "question": "category", "label": truth})
        for body, truth in zip(
            made.bodies[::LABELLED], cycle(("billing", "shipping")), strict=False
        )
    ]
    labelled = callers.send(f"{url}/v1/feedback", labels, callers=CALLERS)
    return Sample(
        end,
        memory_mb(pid),
        sum(file.stat().st_size for file in database.parent.glob("svc.db*")) / MB,
        made.rate,
        made.percentile_ms(50),
        made.percentile_ms(99),
        labelled.percentile_ms(99),
    )


def _found(database: Path) -> tuple[int, int, str]:
    """Decisions and labels in the file, and what SQLite says of it."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM decisions), (SELECT count(*) FROM labels)"
        ).fetchone()
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
    if not counts:
        raise BenchmarkError("the file cannot be counted")
    return (*counts, sound)


def _page(samples: list[Sample], seconds: float) -> str:
    facts = [date.today().isoformat(), f"{seconds / 60:.0f} minutes", *machine.description()]
    rows = [
        f"| {s.decisions:,} | {s.memory_mb:.0f} | {s.file_mb:.0f} | {s.rate:.0f} "
        f"| {s.median_ms:.1f} | {s.slow_ms:.1f} | {s.label_ms:.1f} |"
        for s in samples[:: max(1, len(samples) // 10)] + samples[-1:]
    ]
    return "\n".join(
        [
            "# Soak",
            f"Made by `python -m benchmarks.soak`: one worker, {CALLERS} connections, one-call",
            f"decisions of one question on an nginx provider, a label for every {LABELLED}th.",
            "",
            *(f"- {fact}" for fact in facts),
            "",
            f"| {' | '.join(COLUMNS)} |",
            "|---:|---:|---:|---:|---:|---:|---:|",
            *dict.fromkeys(rows),
            "",
            f"![memory, file size, latency over decisions]({PLOT})",
            "",
        ]
    )


def _draw(path: Path, samples: list[Sample]) -> None:
    curves = {
        "memory of all processes, MB": {"memory": [s.memory_mb for s in samples]},
        "database file with its log, MB": {"file": [s.file_mb for s in samples]},
        "milliseconds of an answer": {
            "median": [s.median_ms for s in samples],
            "99%": [s.slow_ms for s in samples],
            "labels, 99%": [s.label_ms for s in samples],
        },
        "decisions a second": {"rate": [s.rate for s in samples]},
    }
    title = f"{samples[-1].decisions:,} decisions, {samples[-1].decisions // LABELLED:,} labels"
    panels.write(path, title, [float(s.decisions) for s in samples], curves)


if __name__ == "__main__":
    run_program(main)
