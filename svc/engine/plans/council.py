"""`council`: all models answer, and their answers are blended.

Without labels the blend is the mean. Where labels taught how much each member of this very council
counts for this exact question, their pool takes its place (`svc/stats/opinions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from svc import limits
from svc.deadline import Deadline
from svc.engine.plans.base import Finding, Findings, Group, ModelResult, PlanKind, Team
from svc.errors import ApiError, together
from svc.questions import Question, Reading
from svc.records import Model


class CouncilPlan(PlanKind):
    """The mean of all members that answered, and how many agree with it."""

    name = "council"
    meaning = "All answer, and their answers are blended."
    help = "Models that answer together, blended."
    members = limits.COUNCIL

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        jobs = [team.job(model, group) for group in groups for model in team.models]
        outcomes = team.flows.run(jobs, deadline, team.caller)
        findings, size = Findings(), len(team.models)
        for index, group in enumerate(groups):
            group_outcomes = outcomes[index * size : (index + 1) * size]
            findings.add(_blended(team, group, group_outcomes))
        return findings


def _blended(team: Team, group: Group, outcomes: Sequence[ModelResult | ApiError]) -> Findings:
    seats = [outcome if isinstance(outcome, ModelResult) else None for outcome in outcomes]
    members = [
        (model, result)
        for model, result in zip(team.models, seats, strict=True)
        if result is not None
    ]
    if not members:
        raise together([outcome for outcome in outcomes if isinstance(outcome, ApiError)])
    findings = Findings(results=[result for _, result in members])
    for index, (key, question) in enumerate(group.questions.items()):
        readings = [None if result is None else result.readings[index] for result in seats]
        reading, agreement = _merged(team, question, readings)
        findings.by_key[key] = Finding(
            reading,
            tuple(model for model, _ in members),
            tuple(result.mode for _, result in members),
            members[0][1].original[index],
            {"agreement": round(agreement, 6)},
            _opinions(team.models, question, readings, reading),
            question.reversible and any(result.lopsided for _, result in members),
        )
    return findings


def _merged(
    team: Team, question: Question, readings: Sequence[Reading | None]
) -> tuple[Reading, float]:
    """The blend, and the share of members that agree with it."""
    pool = team.knowledge.pool(question, tuple(model.id for model in team.models))
    if pool is not None:
        return question.weigh(readings, pool)
    return question.blend([reading for reading in readings if reading is not None])


def _opinions(
    models: Sequence[Model],
    question: Question,
    readings: Sequence[Reading | None],
    blended: Reading,
) -> Mapping[str, Sequence[float] | None]:
    """What labels can teach of each member; of a model that is there twice nothing."""
    ids = [model.id for model in models]
    if not question.calibrates or len(set(ids)) < len(ids):
        return {}
    return {
        model: None if reading is None else question.opinion(reading, blended)
        for model, reading in zip(ids, readings, strict=True)
    }
