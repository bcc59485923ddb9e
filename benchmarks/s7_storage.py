"""S7: decisions committed by the storage layer alone."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.harness import Benchmark, Options, Result, temporary_directory
from svc.records import Answer, AskedQuestion, Decision, Source
from svc.store.database import Database
from svc.store.decisions import Decisions

THREADS = 32
ROW_BYTES = 700  # of the twin, about what a decision takes


def _measure(options: Options) -> Result:
    pairs = [(_bare(options.seconds), _storage(options.seconds)) for _ in range(options.rounds)]
    bares, owns = zip(*pairs, strict=True)
    ratio = median(own / bare for bare, own in pairs)
    return Result(f"{median(owns):,.0f}/s", f"{median(bares):,.0f}/s", f"{ratio:.2f}")


def _storage(seconds: float) -> float:
    """Decisions a second that `THREADS` threads store, each waiting for its own commit."""
    with temporary_directory() as folder:
        database = Database.open(Path(folder) / "svc.db")
        decisions = Decisions(database)
        start = time.perf_counter()
        with ThreadPoolExecutor(THREADS) as pool:
            futures = [pool.submit(_add, decisions, start + seconds) for _ in range(THREADS)]
        count = sum(future.result() for future in futures)
        elapsed = time.perf_counter() - start
        database.close()
    return count / elapsed


def _add(decisions: Decisions, until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        decisions.add(_record())
        count += 1
    return count


def _record() -> Decision:
    """What the engine stores for the two questions of `benchmarks.decisions`."""
    probabilities = {"billing": 0.9, "shipping": 0.09, "none_of_these": 0.01}
    return Decision(
        project="default",
        api_key=None,
        state_hash=os.urandom(32),
        model="@bench/m",
        mode="logprobs",
        config="svc-1.2.0",
        privacy="standard",
        answers={
            "category": Answer(
                Source.MODELS,
                {
                    "choice": "billing",
                    "probabilities": probabilities,
                    "confidence": 0.9,
                    "calibrated": False,
                },
            ),
            "urgent": Answer(Source.MODELS, {"noul": 0.9, "calibrated": False}),
        },
        questions=(
            _asked("category", list(probabilities.values())),
            _asked("urgent", [0.9]),
        ),
        latency_ms=1.5,
        cost_usd=0.0,
        cached=False,
        images=(),
    )


def _asked(key: str, reading: list[float]) -> AskedQuestion:
    definition = f'{{"instructions":"{key}?"}}'
    return AskedQuestion(key, hashlib.sha256(definition.encode()).digest(), definition, reading)


def _bare(seconds: float) -> float:
    """Rows a second of one connection that commits `THREADS` of them at a time."""
    with temporary_directory() as folder:
        connection = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        connection.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE rows (id INTEGER PRIMARY KEY, hash BLOB, at INTEGER, body TEXT);"
            "CREATE INDEX by_hash ON rows (hash); CREATE INDEX by_time ON rows (at);"
        )
        start, count = time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            rows = [(os.urandom(32), count, "x" * ROW_BYTES) for _ in range(THREADS)]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO rows (hash, at, body) VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")
            count += len(rows)
        elapsed = time.perf_counter() - start
        connection.close()
    return count / elapsed


BENCHMARK = Benchmark(
    "S7",
    f"decisions stored, {THREADS} threads, synchronous FULL ÷ bare SQLite, "
    f"one thread, {THREADS} rows a transaction",
    "at least 10,000/s",
    _measure,
)
