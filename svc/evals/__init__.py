"""Labelled questions: read, sampled, scored, saved, compared and shown."""

from __future__ import annotations

from svc.evals.asking import asked
from svc.evals.candidates import Candidate, accuracy, candidates_for, examples, ranked, split
from svc.evals.figures import Figures, figures_of, wilson
from svc.evals.probing import QUESTIONS, Probed, Tried, Verdict, probe
from svc.evals.runs import Run, Saved, plan_text
from svc.evals.scoring import Scored, score
from svc.evals.sets import SUFFIX, EvalRow, EvalSet, load_sets

__all__ = [
    "QUESTIONS",
    "SUFFIX",
    "Candidate",
    "EvalRow",
    "EvalSet",
    "Figures",
    "Probed",
    "Run",
    "Saved",
    "Scored",
    "Tried",
    "Verdict",
    "accuracy",
    "asked",
    "candidates_for",
    "examples",
    "figures_of",
    "load_sets",
    "plan_text",
    "probe",
    "ranked",
    "score",
    "split",
    "wilson",
]
