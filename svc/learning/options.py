"""How each option of a question does, as the calibration report has it."""

from __future__ import annotations

from svc.jsontext import JsonObject, leading
from svc.learning.labelled import Labelled, columns
from svc.learning.scored import scores_of
from svc.questions import Reading
from svc.stats import TASKS, Floats, scores

# Of the sets that the report says of each option how often they hold it.
COVERAGES = (0.8, 0.9, 0.95)


def by_option(rows: Labelled, p: Floats, most_bytes: int) -> JsonObject:
    """`options` and `confusion` of a report, of probabilities `p`; for questions with options.

    The confusion is cut at `most_bytes`.
    """
    names = rows.question.option_names
    if not names or not len(rows.truth):
        return {"options": [], "confusion": []}
    now = rows.current
    answers, truth = TASKS[rows.question.task].answers(p[now]), rows.truth[now]
    found = scores.by_option(columns(p[now]), answers, truth, rows.sampling_of(now))
    sets = _sets_by_option(rows, len(names))
    pairs = scores.confusion(answers, truth, len(names))
    named = (
        {**pair, "true": names[pair["true"]], "answer": names[pair["answer"]]} for pair in pairs
    )
    return {
        "options": [
            {"option": name, **entry, "sets": held}
            for name, entry, held in zip(names, found, sets, strict=True)
        ],
        "confusion": leading(named, most_bytes),
    }


def _sets_by_option(rows: Labelled, options: int) -> list[list[JsonObject]]:
    """How often the sets of some coverages hold each true option; none for a type without sets."""
    if not rows.question.candidates(Reading(tuple(rows.p[0].tolist()))):
        return [[] for _ in range(options)]
    scored = scores_of(rows)
    found = [scored.coverage_by_option(coverage, options) for coverage in COVERAGES]
    return [
        [
            {
                "coverage": coverage,
                "covered": None if one.covered is None else one.covered.as_json,
                "guaranteed": guaranteed,
            }
            for coverage, (one, guaranteed) in zip(COVERAGES, by_coverage, strict=True)
        ]
        for by_coverage in zip(*found, strict=True)
    ]
