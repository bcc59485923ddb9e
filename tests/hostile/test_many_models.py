"""Labels of as many answering models as there may be labels cost about what those of one do."""

from __future__ import annotations

import time

import numpy as np

from svc import limits
from svc.learning.fits import Fits
from svc.learning.labelled import Labelled
from svc.learning.options import by_option
from svc.questions import TYPES
from svc.stats import Fitted, Given, GroupedChangeTest, from_parameters

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
