"""What a project's labels tell about the questions of a request: calibrators, prediction sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from svc import limits
from svc.engine.plans import Finding
from svc.learning import councils, fits
from svc.learning.scored import NO_SCORES, Asked, ScoredQuestions, Scores, share_of_each
from svc.questions import DECIMALS, Opinions, Question, Reading, to_digits
from svc.stats import Calibrator, conformal
from svc.store import CalibrationState, Labels
from svc.terms import CoveragePer

ScoresOf = Callable[[Question, CalibrationState], Scores]
UnreadOf = Callable[[Question, CalibrationState], int]


def _none_unread(question: Question, state: CalibrationState) -> int:
    return 0


def _no_scores(question: Question, state: CalibrationState) -> Scores:
    return NO_SCORES


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known about the questions of one request; by default nothing.

    `states` are by digest of the question. `scores` gives the scores of a question's labels, and
    `unread` how many labels would have to be read for them.
    """

    states: Mapping[bytes, CalibrationState] = field(default_factory=dict)
    scores: ScoresOf = _no_scores
    unread: UnreadOf = _none_unread

    def labels_to_read(self, questions: Iterable[Question]) -> int:
        """About how many labels are to be read for the prediction sets of these questions."""
        return sum(self.unread(*one) for one in _with_sets(questions, self.states))

    def calibrator(self, question: Question, finding: Finding) -> Calibrator | None:
        """The calibrator that is in effect for this exact question and who answered it."""
        state = self.states.get(question.digest)
        if state is None or state.calibrator is None:
            return None
        return fits.parsed(state.calibrator).of(finding.answered_by)

    def pool(self, question: Question, models: tuple[str, ...]) -> Opinions | None:
        """What labels taught of these models' say on this exact question, as one council."""
        state = self.states.get(question.digest)
        return None if state is None else councils.in_effect(state.pools, models)

    def calibrated(self, question: Question, finding: Finding) -> Reading:
        """The finding's reading as the calibrator changes it, if there is one."""
        reading, calibrator = finding.reading, self.calibrator(question, finding)
        if calibrator is None or not reading.answered:
            return reading
        if question.extracts and not any(reading.probabilities):
            # Nothing is known of how sure a value is that came without a confidence.
            return reading
        # A calibrator knows options by the order of the definition, a reading by the request's.
        # Labels know probabilities as they are stored.
        p = to_digits(reading.probabilities)
        order = [int(place) for place in question.in_definition_order(range(len(p)))]
        found = dict(zip(order, calibrator.one([p[place] for place in order]), strict=True))
        return replace(reading, probabilities=tuple([found[place] for place in range(len(p))]))

    def confidence(self, question: Question, finding: Finding) -> float:
        """How sure the calibrated reading is of its top answer, rounded as callers see it."""
        return round(question.confidence(self.calibrated(question, finding)), DECIMALS)

    def coverage(self, question: Question, finding: Finding) -> Mapping[str, Any]:
        """The answer fields for the requested coverage, with the set that holds the true answer."""
        if question.coverage is None:
            return {}
        state = self.states.get(question.digest)
        # Rounded as they are stored, so that a probability equals the score that was made of it.
        reading = finding.reading
        rounded = replace(reading, probabilities=to_digits(reading.probabilities))
        candidates = question.candidates(rounded)
        if state is None or state.labels < limits.MIN_LABELS or not candidates:
            return question.unguaranteed
        scores, best = self.scores(question, state), question.named(question.top(rounded))
        if question.coverage_per is CoveragePer.OPTION:
            return _covered_by_option(question, finding, scores, candidates, best)
        limit = scores.limit(finding.answered_by, question.coverage)
        if limit is None:
            return question.unguaranteed
        members = _within(candidates, [limit] * len(candidates), best)
        return {"coverage": question.coverage, "guaranteed": True, "set": members}


def _covered_by_option(
    question: Question,
    finding: Finding,
    scores: Scores,
    candidates: Sequence[tuple[str, float]],
    best: str,
) -> Mapping[str, Any]:
    """The set of options that are within a limit of their own each."""
    names = question.option_names
    assert question.coverage is not None
    found = scores.option_limits(finding.answered_by, question.coverage, len(names))
    if found is None:
        return question.unguaranteed
    by_name = dict(zip(names, found, strict=True))
    own = [by_name[name] for name, _ in candidates]
    kept = [name for (name, _), one in zip(candidates, own, strict=True) if one.guaranteed]
    return {
        "coverage": question.coverage,
        "guaranteed": len(kept) == len(candidates),
        "guaranteed_options": kept,
        "set": _within(candidates, [one.limit for one in own], best),
    }


def _within(
    candidates: Sequence[tuple[str, float]], highest: Sequence[float], best: str
) -> list[str]:
    """The candidates whose score is at most the highest that it may be, or `best` alone."""
    names = [name for name, _ in candidates]
    chosen = conformal.options_within([p for _, p in candidates], highest, names.index(best))
    return [names[place] for place in chosen]


NOTHING_KNOWN = Knowledge()


def _with_sets(
    questions: Iterable[Question], states: Mapping[bytes, CalibrationState]
) -> list[tuple[Question, CalibrationState]]:
    """The questions that ask for a prediction set and have the labels for one."""
    asking = [(one, states.get(one.digest)) for one in questions if one.coverage is not None]
    return [
        (one, state)
        for one, state in asking
        if state is not None and state.labels >= limits.MIN_LABELS
    ]


def nothing_known(
    project: str, questions: Iterable[Question], caller: str | None = None
) -> Knowledge:
    """Stands in for `Library.knowledge` where there are no labels."""
    return NOTHING_KNOWN


class Library:
    """Looks up what is known; remembered scores are used as long as no label changed them."""

    def __init__(self, labels: Labels) -> None:
        self._labels, self._scored = labels, ScoredQuestions(labels)

    def knowledge(
        self, project: str, questions: Iterable[Question], caller: str | None = None
    ) -> Knowledge:
        """What the project's labels tell about `questions`: at most one indexed read.

        What is remembered of them takes room of the `caller`'s, None where nobody knows who asks.
        Raises `StorageError`.
        """
        asked_for = list(questions)
        states = self._labels.states(project, {question.digest for question in asked_for})
        if not states:
            return NOTHING_KNOWN

        share = share_of_each([state.labels for _, state in _with_sets(asked_for, states)])
        scored, asked = self._scored, Asked(project, caller, share)
        return Knowledge(states, partial(scored.scores, asked), partial(scored.unread, asked))
