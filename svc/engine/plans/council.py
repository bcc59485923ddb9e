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
        seats = [(group, model) for group in groups for model in team.models]
        outcomes = team.flows.run([team.job(model, group) for group, model in seats], deadline)
        findings, size = Findings(), len(team.models)
        for index, group in enumerate(groups):
            seated = outcomes[index * size : (index + 1) * size]
            findings.add(_blended(team, group, seated))
        return findings


def _blended(team: Team, group: Group, outcomes: Sequence[ModelResult | ApiError]) -> Findings:
    seats = [outcome if isinstance(outcome, ModelResult) else None for outcome in outcomes]
    members = [
        (model, asked) for model, asked in zip(team.models, seats, strict=True) if asked is not None
    ]
    if not members:
        raise together([outcome for outcome in outcomes if isinstance(outcome, ApiError)])
    findings = Findings(asked=[asked for _, asked in members])
    for index, (key, question) in enumerate(group.questions.items()):
        said = [None if asked is None else asked.readings[index] for asked in seats]
        reading, agreement = _merged(team, question, said)
        findings.by_key[key] = Finding(
            reading,
            tuple(model for model, _ in members),
            tuple(asked.mode for _, asked in members),
            members[0][1].original[index],
            {"agreement": round(agreement, 6)},
            _opinions(team.models, question, said, reading),
        )
    return findings


def _merged(
    team: Team, question: Question, said: Sequence[Reading | None]
) -> tuple[Reading, float]:
    """The blend, and the share of members that agree with it."""
    pool = team.knowledge.pool(question, tuple(model.id for model in team.models))
    if pool is not None:
        return question.weigh(said, pool)
    return question.blend([reading for reading in said if reading is not None])


def _opinions(
    models: Sequence[Model], question: Question, said: Sequence[Reading | None], blended: Reading
) -> Mapping[str, Sequence[float] | None]:
    """What labels can teach of each member; of a model that is there twice nothing."""
    ids = [model.id for model in models]
    if not question.calibrates or len(set(ids)) < len(ids):
        return {}
    return {
        model: None if reading is None else question.opinion(reading, blended)
        for model, reading in zip(ids, said, strict=True)
    }
