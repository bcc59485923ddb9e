"""`council`: all models answer, and their answers are blended."""

from __future__ import annotations

from collections.abc import Sequence

from svc import limits
from svc.deadline import Deadline
from svc.engine.plans.base import Finding, Findings, Group, ModelResult, PlanKind, Team
from svc.errors import ApiError, together
from svc.records import Model


class CouncilPlan(PlanKind):
    """The mean of all members that answered, and how many agree with it."""

    name = "council"
    meaning = "All answer, and their answers are blended."
    help = "Models that answer together, blended."
    members = limits.COUNCIL

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        jobs = [team.job(model, group) for group in groups for model in team.models]
        outcomes = team.flows.run(jobs, deadline)
        findings, size = Findings(), len(team.models)
        for index, group in enumerate(groups):
            group_outcomes = outcomes[index * size : (index + 1) * size]
            findings.add(_blended(group, team.models, group_outcomes))
        return findings


def _blended(
    group: Group, models: Sequence[Model], outcomes: Sequence[ModelResult | ApiError]
) -> Findings:
    members = [
        (model, outcome)
        for model, outcome in zip(models, outcomes, strict=True)
        if isinstance(outcome, ModelResult)
    ]
    if not members:
        raise together([outcome for outcome in outcomes if isinstance(outcome, ApiError)])
    findings = Findings(results=[result for _, result in members])
    for index, (key, question) in enumerate(group.questions.items()):
        reading, agreement = question.blend([result.readings[index] for _, result in members])
        findings.by_key[key] = Finding(
            reading,
            tuple(model for model, _ in members),
            tuple(result.mode for _, result in members),
            members[0][1].original[index],
            {"agreement": round(agreement, 6)},
        )
    return findings
