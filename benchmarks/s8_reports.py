"""S8: what the reports cost when a million decisions are stored; S9: and 5,000 labels."""

from __future__ import annotations

import hashlib
import os
import random
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks import servers
from benchmarks.harness import Benchmark, Options, Result, running, temporary_directory
from svc.learning.learner import Learner
from svc.questions import TYPES
from svc.records import Answer, AskedQuestion, Decision, Source
from svc.schemas.feedback import Feedback
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.labels import Labels
from svc.store.question_versions import QuestionVersions

DECISIONS, QUICK = 1_000_000, 50_000
WEEKS = 53
LABELS = 5_000
THREADS = 64
TIMES = 15  # that each is measured; the median counts
OPTIONS = [f"option_{number}" for number in range(10)]
QUESTION = TYPES["choice"].load(
    {
        "type": "choice",
        "instructions": "Which?",
        "options": dict.fromkeys(OPTIONS, ""),
        "escape": False,
    }
)


class _Clock:
    """Goes through 53 weeks while the decisions are stored."""

    def __init__(self, decisions: int) -> None:
        self._now = time.time() - (WEEKS - 1) * 7 * 86_400
        self._step = (WEEKS - 1) * 7 * 86_400 / decisions

    def __call__(self) -> float:
        self._now += self._step
        return min(self._now, time.time())


def _s8(options: Options) -> Result:
    count = QUICK if options.quick else DECISIONS
    with temporary_directory() as folder:
        path = Path(folder) / "svc.db"
        database = Database.open(path)
        # Called once for each transaction, of up to THREADS decisions.
        ids = _fill(Decisions(database, _Clock(count // THREADS)), count)
        middle = Decisions(database)
        by_id = _milliseconds(lambda: middle.get(random.choice(ids)))
        database.close()
        with running(servers.serve_command(path)) as server:
            audit = _milliseconds(lambda: _get(f"{server.url}/v1/audit?limit=1000"))
            drift = _milliseconds(lambda: _get(f"{server.url}/v1/drift?question=q&weeks=53"))
            year = _milliseconds(lambda: _get(f"{server.url}/v1/activity?last=year"))
            health = _milliseconds(lambda: _get(f"{server.url}/health"))
    return Result(
        f"{audit:.1f} / {drift:.1f} / {year:.1f} / {by_id:.2f} ms", f"GET /health {health:.1f} ms"
    )


def _s9(options: Options) -> Result:
    with temporary_directory() as folder:
        path = Path(folder) / "svc.db"
        database = Database.open(path)
        decisions, labels = Decisions(database), Labels(database)
        learner = Learner(decisions, QuestionVersions(database), labels)
        _label(decisions, learner, _fill(decisions, LABELS))
        refit = _milliseconds(lambda: learner.fit(("default", QUESTION.digest)))
        learner.close()
        database.close()
        with running(servers.serve_command(path)) as server:
            report = _milliseconds(lambda: _get(f"{server.url}/v1/calibration?question=q"))
    return Result(f"{report:.0f} / {refit:.0f} ms")


def _fill(decisions: Decisions, count: int) -> list[str]:
    with ThreadPoolExecutor(THREADS) as pool:
        parts = pool.map(lambda _: _add(decisions, count // THREADS), range(THREADS))
        return [decision_id for part in parts for decision_id in part]


def _add(decisions: Decisions, count: int) -> list[str]:
    return [decisions.add(record()) for _ in range(count)]


def record() -> Decision:
    """A decision on the one question, with probabilities that are drawn."""
    weights = [random.random() ** 4 for _ in OPTIONS]
    p = [round(weight / sum(weights), 6) for weight in weights]
    top = max(range(len(p)), key=p.__getitem__)
    answer = {
        "choice": OPTIONS[top],
        "probabilities": dict(zip(OPTIONS, p, strict=True)),
        "confidence": p[top],
        "calibrated": False,
    }
    exact = ("q", QUESTION.digest, QUESTION.definition_json)
    return Decision(
        project="default",
        api_key=None,
        state_hash=hashlib.sha256(os.urandom(8)).digest(),
        model="@bench/m",
        mode="logprobs",
        config="svc-1.2.0",
        privacy="standard",
        answers={"q": Answer(Source.MODELS, answer)},
        questions=(AskedQuestion(*exact, {"p": p}, OPTIONS[top], p[top]),),
        latency_ms=1.5,
        cost_usd=0.0,
        cached=False,
        images=(),
    )


def _label(decisions: Decisions, learner: Learner, ids: list[str]) -> None:
    """True answers of a model that is surer than it should be."""

    def give(decision_id: str) -> None:
        found = decisions.get(decision_id)
        assert found is not None
        p = found.readings["q"].reading["p"]
        truth = random.choices(OPTIONS, [value**0.5 for value in p])[0]
        learner.label(Feedback(decision_id, "q", truth))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(give, ids))


def _get(url: str) -> None:
    with urllib.request.urlopen(url) as response:
        response.read()


def _milliseconds(action: Callable[[], object]) -> float:
    took = []
    for _ in range(TIMES):
        start = time.perf_counter()
        action()
        took.append((time.perf_counter() - start) * 1000)
    return median(took)


S8 = Benchmark(
    "S8",
    f"with {DECISIONS:,} decisions stored: audit page of 1,000 / drift over {WEEKS} weeks / "
    "a year of activity / one decision by id",
    "40 / 10 / 50 / 1 ms",
    _s8,
)
S9 = Benchmark(
    "S9",
    f"calibration report / refit over {LABELS:,} labels of a choice of {len(OPTIONS)}",
    "150 / 60 ms",
    _s9,
)
