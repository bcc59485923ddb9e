"""Labels of as many answering models as there may be labels cost about what those of one do."""

from __future__ import annotations

import json
import time
from itertools import combinations, islice

import numpy as np

from svc import limits
from svc.learning import councils
from svc.learning.fits import Fits
from svc.learning.labelled import Labelled
from svc.learning.options import by_option
from svc.questions import TYPES
from svc.stats import FOLDS, Fitted, Given, GroupedChangeTest, from_parameters
from svc.store import CalibrationState, TrainingData

PROCESSOR_S = 1.0
MODELS = np.array([f"@p/{number} logprobs" for number in range(limits.LABELS_READ)])
RANDOM = np.random.default_rng(3)


def test_to_look_for_changes_of_each_model_costs_little() -> None:
    numbers = np.arange(len(MODELS))
    given, scores = Given(numbers, numbers, numbers), RANDOM.exponential(size=len(MODELS))
    before = time.thread_time()
    assert GroupedChangeTest().latest(given, MODELS, scores) == {}
    assert time.thread_time() - before < PROCESSOR_S / 2


def test_a_report_on_each_option_costs_little() -> None:
    options, labels = limits.CHOICE_OPTIONS[1], len(MODELS)
    question = TYPES["choice"].load(
        {
            "type": "choice",
            "instructions": "?",
            "options": {f"o{number}": "" for number in range(options)},
            "escape": False,
        }
    )
    p = RANDOM.dirichlet(np.ones(options), size=labels)
    truth = RANDOM.integers(0, options, labels)
    rows = Labelled(question, p, truth, MODELS.tolist(), None, None, {})
    fits = Fits(Fitted(from_parameters({"kind": "temperature", "t": 2.0}), labels))
    before = time.thread_time()
    after = rows.calibrated(fits)
    rows.held_out(Fits(fits.pooled, dict.fromkeys(rows.groups, fits.pooled)))
    assert len(by_option(rows, after, limits.PAGE_BYTES)["options"]) == options
    assert time.thread_time() - before < 2 * PROCESSOR_S


def test_labels_of_as_many_councils_as_have_a_pool_cost_little_to_merge() -> None:
    """Their pools are too long to be remembered, so that it matters how often they are parsed."""
    seated = list(islice(combinations(MODELS[:24].tolist(), 5), limits.LABELS_READ))
    pools = json.dumps(
        [
            {
                "models": sorted(council),
                "kind": "arithmetic",
                "weights": [0.2] * 5,
                "held_out": [[0.2] * 5] * FOLDS,
                "labels": limits.MIN_LABELS,
            }
            for council in seated[: limits.LABELS_READ // limits.MIN_LABELS]
        ]
    )
    numbers = list(range(len(seated)))
    said = [{model: [0.9, 0.1] for model in council} for council in seated]
    state = CalibrationState(len(seated), len(seated), 0, None, None, 1, pools)
    p, truth = [[0.9, 0.1]] * len(seated), [0] * len(seated)
    data = TrainingData(state, p, truth, said, [], [], [], [], [], numbers, numbers)
    before = time.thread_time()
    assert councils.merged(data, pools).p == p
    assert time.thread_time() - before < PROCESSOR_S
