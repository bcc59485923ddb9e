"""`cascade`: the cheapest model is asked first; questions it is unsure of go on to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from svc.deadline import Deadline
from svc.engine.plans.base import Findings, Group, PlanKind, PlanOption, Team, ask_each, found_by
from svc.errors import ENDING, ApiError, together
from svc.questions import NumberField

BELOW = "escalate_below"
DEFAULT_BELOW = 0.8


class CascadePlan(PlanKind):
    """Only the questions that are still unsure go on to the next model."""

    name = "cascade"
    meaning = f"Cheapest first; questions with a confidence below `{BELOW}` go on."
    help = "Cheapest first, unsure questions go on."
    options = {  # noqa: RUF012 - a ClassVar, as its base says
        BELOW: PlanOption(
            NumberField(0, 1), DEFAULT_BELOW, "Confidence below which a cascade goes on.", "below"
        )
    }

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        return ask_each(team, groups, deadline, _escalated)


def _escalated(team: Team, group: Group, deadline: Deadline) -> Findings:
    findings, failures = Findings(), list[ApiError]()
    unsure = dict(group.questions)
    for model in team.models:
        step = Group(unsure, group.think)
        try:
            result = team.asker.ask(model, step, deadline)
        except ENDING:
            raise
        except ApiError as error:
            failures.append(error)
            continue
        step_findings = found_by(step, model, result)
        for key, finding in step_findings.by_key.items():
            if finding.reading.answered or key not in findings.by_key:
                findings.by_key[key] = replace(finding, extra={"answered_by": model.id})
        findings.results.append(result)
        unsure = {
            key: question
            for key, question in unsure.items()
            if _is_unsure(team, key, findings, group)
        }
        if not unsure:
            break
    if not findings.by_key:
        raise together(failures)
    return findings


def _is_unsure(team: Team, key: str, findings: Findings, group: Group) -> bool:
    reading = findings.by_key[key].reading
    return team.knowledge.confidence(group.questions[key], reading) < team.options[BELOW]
