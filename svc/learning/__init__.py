"""What labels teach: calibrators, prediction sets, and the reports on both."""

from __future__ import annotations

from svc.learning.answered import Answered, Answers, normal, spoken
from svc.learning.comparison import Comparison, Side, compared
from svc.learning.fits import calibrator_kind
from svc.learning.knowledge import Knowledge, Library, nothing_known
from svc.learning.learner import Learner
from svc.learning.rates import RateReporter
from svc.learning.reports import Reporter
from svc.learning.review import ReviewDesk
from svc.learning.reviewers import Reviewers

__all__ = [
    "Answered",
    "Answers",
    "Comparison",
    "Knowledge",
    "Learner",
    "Library",
    "RateReporter",
    "Reporter",
    "ReviewDesk",
    "Reviewers",
    "Side",
    "calibrator_kind",
    "compared",
    "normal",
    "nothing_known",
    "spoken",
]
