"""Labelled questions: read, sampled, scored, saved, compared and shown."""

from __future__ import annotations

from svc.evals.asking import results_of
from svc.evals.budget import FREE_CALLS, calls_text, check_agreed, most_calls
from svc.evals.candidates import Candidate, candidates_for, examples, split
from svc.evals.figures import Figures, figures_of, wilson
from svc.evals.holdout import check_both_sides, hold_out
from svc.evals.probing import QUESTIONS, Probed, Tried, Verdict, probe
from svc.evals.proposals import STYLES
from svc.evals.runs import Run, Saved, plan_text
from svc.evals.scoring import Scored, score
from svc.evals.sets import SUFFIX, EvalRow, EvalSet, load_sets
from svc.evals.steadiness import (
    ProbeJob,
    Steadiness,
    Told,
    WordingProbe,
    probes,
    steadiness_of,
    tell,
)
from svc.evals.trials import accuracy, ranked
from svc.evals.tuning import Found, Search, search
from svc.evals.variants import Words

__all__ = [
    "FREE_CALLS",
    "QUESTIONS",
    "STYLES",
    "SUFFIX",
    "Candidate",
    "EvalRow",
    "EvalSet",
    "Figures",
    "Found",
    "ProbeJob",
    "Probed",
    "Run",
    "Saved",
    "Scored",
    "Search",
    "Steadiness",
    "Told",
    "Tried",
    "Verdict",
    "WordingProbe",
    "Words",
    "accuracy",
    "calls_text",
    "candidates_for",
    "check_agreed",
    "check_both_sides",
    "examples",
    "figures_of",
    "hold_out",
    "load_sets",
    "most_calls",
    "plan_text",
    "probe",
    "probes",
    "ranked",
    "results_of",
    "score",
    "search",
    "split",
    "steadiness_of",
    "tell",
    "wilson",
]
