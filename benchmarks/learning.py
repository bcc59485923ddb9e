"""Calibration on real text: 600 labelled decisions of an overconfident model, then 600 fresh ones.

Also how fast labels are taken in.
"""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import bayes, callers, reliability, servers
from benchmarks.banking import CALLERS, data_folder
from benchmarks.harness import Benchmark, BenchmarkError, Options, Result, temporary_directory
from svc.stats import scores
from svc.stats.tasks import TASKS

INTENTS = 10  # the most frequent ones
LABELLED, FRESH = 600, 600  # decisions
SEED = 7
COVERAGE = 0.9
PLOT = Path(__file__).with_name("reliability.svg")

Row = tuple[str, str]  # text and intent


def _measure(options: Options) -> Result:
    known, labelled, fresh = _rows(data_folder())
    intents = sorted({intent for _, intent in known})
    with (
        temporary_directory() as folder,
        bayes.serving(bayes.NaiveBayes(known)) as provider,
        servers.service_on(Path(folder) / "svc.db", provider) as service,
    ):
        first = _decide(service.url, labelled, intents)
        rate = _give_labels(service.url, first, labelled)
        taught = _decide(service.url, fresh, intents)
        untaught = _decide(service.url, fresh, intents, project="untaught")
    if not all(one["calibrated"] for one in taught):
        raise BenchmarkError(f"an answer after {LABELLED} labels was not calibrated")
    raw, calibrated = _summary(untaught, fresh, intents), _summary(taught, fresh, intents)
    series = {"before": raw["bins"], f"after {LABELLED} labels": calibrated["bins"]}
    reliability.write(PLOT, f"{INTENTS} banking intents, naive Bayes", series)
    return Result(
        f"ECE {calibrated['ece']:.3f}, {calibrated['accuracy']:.1%} right, sets cover "
        f"{_covered(taught, fresh):.1%}; labels {rate:,.0f}/s",
        f"ECE {raw['ece']:.3f}, {raw['accuracy']:.1%} right",
        f"{calibrated['ece'] / raw['ece']:.2f}",
    )


def _rows(folder: Path) -> tuple[list[Row], list[Row], list[Row]]:
    """What the model is trained on, what is labelled, and what is fresh."""
    with (folder / "banking77-train.csv").open(newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    frequent = {intent for intent, _ in Counter(intent for _, intent in rows).most_common(INTENTS)}
    chosen = [row for row in rows if row[1] in frequent]
    random.Random(SEED).shuffle(chosen)
    return chosen[LABELLED + FRESH :], chosen[:LABELLED], chosen[LABELLED : LABELLED + FRESH]


def _decide(
    url: str, rows: list[Row], intents: list[str], project: str = "taught"
) -> list[dict[str, Any]]:
    """The answer to each row, with its decision's id."""
    question = {
        "type": "choice",
        "instructions": "What does the customer write about?",
        "options": dict.fromkeys(intents, ""),
        "escape": False,
        "coverage": COVERAGE,
    }
    fixed = {"questions": {"intent": question}, "project": project}
    bodies = [json.dumps({"state": text, **fixed}) for text, _ in rows]
    calls = callers.send(f"{url}/v1/decide", bodies, callers=CALLERS)
    decisions = [json.loads(body) for body in calls.bodies]
    return [{"id": decision["id"], **decision["answers"]["intent"]} for decision in decisions]


def _give_labels(url: str, answers: list[dict[str, Any]], rows: list[Row]) -> float:
    """Labels a second."""
    bodies = [
        json.dumps({"decision_id": answer["id"], "question": "intent", "label": intent})
        for answer, (_, intent) in zip(answers, rows, strict=True)
    ]
    return callers.send(f"{url}/v1/feedback", bodies, callers=CALLERS).rate


def _summary(answers: list[dict[str, Any]], rows: list[Row], intents: list[str]) -> dict[str, Any]:
    """Accuracy, calibration error and reliability bins of the answers as they were returned."""
    p = np.array([[answer["probabilities"][intent] for intent in intents] for answer in answers])
    return scores.summary(TASKS["classes"], p, np.array([intents.index(i) for _, i in rows]))


def _covered(answers: list[dict[str, Any]], rows: list[Row]) -> float:
    """The share of prediction sets that hold the truth."""
    held = [intent in answer["set"] for answer, (_, intent) in zip(answers, rows, strict=True)]
    return sum(held) / len(held)


BENCHMARK = Benchmark(
    "learning",
    f"{LABELLED} labelled decisions of {INTENTS} banking intents, then {FRESH} fresh ones; "
    "naive Bayes as the provider",
    "ECE at most half, no accuracy lost, sets cover 87 to 100%, labels 500/s",
    _measure,
)
