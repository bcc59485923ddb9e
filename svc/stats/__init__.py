"""The mathematics of learning from labels: pure numpy, without any input or output.

Throughout, `p` is a matrix of raw probabilities, a row for each labelled answer, and `truth` a
vector of whole numbers; `tasks.py` says what they mean for each kind of question.
"""

from __future__ import annotations

from svc.stats.acceptance import FOLDS, folds_of, held_out
from svc.stats.calibrators import Calibrator, Floats, Ints, from_parameters
from svc.stats.grouping import by_number, numbered
from svc.stats.intervals import Interval
from svc.stats.opinions import OpinionPool
from svc.stats.order_bias import OrderBias
from svc.stats.pooling import Fitted, fit_groups
from svc.stats.recency import Change, Given, GroupedChangeTest
from svc.stats.scores import (
    AUTOMATE_FROM,
    BINS,
    MOST_OPTIONS,
    expected_calibration_error,
    reliability,
)
from svc.stats.tasks import TASKS

__all__ = [
    "AUTOMATE_FROM",
    "BINS",
    "FOLDS",
    "MOST_OPTIONS",
    "TASKS",
    "Calibrator",
    "Change",
    "Fitted",
    "Floats",
    "Given",
    "GroupedChangeTest",
    "Interval",
    "Ints",
    "OpinionPool",
    "OrderBias",
    "by_number",
    "expected_calibration_error",
    "fit_groups",
    "folds_of",
    "from_parameters",
    "held_out",
    "numbered",
    "reliability",
]
