"""Real text through the whole way: messages to a bank, sorted by the demonstration model."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from benchmarks import callers, servers
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
    NotRun,
    Options,
    Result,
    running,
    temporary_directory,
)
from svc.store.database import Database
from svc.store.decisions import Decisions

VARIABLE = "SVC_TEST_DATA"  # the folder that holds the data set
INTENTS = 10  # the first ten that the data set lists
MESSAGES = 100  # the first hundred of each
CALLERS = 16


def _measure(options: Options) -> Result:
    pairs = messages(data_folder())
    bodies = [_body(text, pairs) for text, _ in pairs]
    with temporary_directory() as folder:
        database = Path(folder) / "svc.db"
        with running(servers.serve_command(database, "--demo")) as service:
            calls = callers.send(f"{service.url}/v1/decide", bodies, callers=CALLERS)
        decisions = [json.loads(body) for body in calls.bodies]
        _check_stored(database, decisions)
    right = sum(
        decision["answers"]["intent"]["choice"] == intent
        for decision, (_, intent) in zip(decisions, pairs, strict=True)
    )
    return Result(
        f"{calls.seconds:.1f} s, {calls.rate:,.0f}/s, {right / len(pairs):.1%} right, all stored"
    )


def data_folder() -> Path:
    """Where the data set is; raises `NotRun`."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise NotRun(f"needs {VARIABLE}, the folder of banking77-train.csv")
    return Path(folder)


def messages(folder: Path) -> list[tuple[str, str]]:
    """`(text, intent)` of every message that is sent."""
    intents = json.loads((folder / "banking77-categories.json").read_text())[:INTENTS]
    with (folder / "banking77-train.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found: list[tuple[str, str]] = []
    for intent in intents:
        texts = [row["text"] for row in rows if row["category"] == intent]
        found += [(text, intent) for text in texts[:MESSAGES]]
    return found


def _body(text: str, pairs: list[tuple[str, str]]) -> str:
    intents = dict.fromkeys(intent for _, intent in pairs)
    question = {
        "type": "choice",
        "instructions": "What does the customer write about?",
        "options": dict.fromkeys(intents, ""),
    }
    return json.dumps({"state": text, "questions": {"intent": question}})


def _check_stored(path: Path, decisions: list[dict[str, Any]]) -> None:
    """Raise `BenchmarkError` unless the database holds every decision as it was answered."""
    database = Database.open(path)
    try:
        stored = Decisions(database)
        for decision in decisions:
            found = stored.get(decision["id"])
            if found is None or found.answers != decision["answers"]:
                raise BenchmarkError(f"the database lacks {decision['id']} as it was answered")
    finally:
        database.close()


BENCHMARK = Benchmark(
    "banking77",
    f"{INTENTS * MESSAGES:,} messages, one choice of {INTENTS} intents, `--demo`, "
    f"{CALLERS} connections",
    "no error, all stored",
    _measure,
)
