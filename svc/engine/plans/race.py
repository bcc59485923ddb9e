"""`race`: all models are asked at once, and the first valid answer counts."""

from __future__ import annotations

from collections.abc import Sequence

from svc.deadline import Deadline
from svc.engine.plans.base import Findings, Group, ModelResult, PlanKind, Team, found_by
from svc.errors import together


class RacePlan(PlanKind):
    """The first valid answer; the other calls are cut off.

    An answer that is remembered is the first, and nobody is asked.
    """

    name = "race"
    meaning = "All are asked at once, and the first valid answer counts."
    help = "All asked at once, the first answer wins."

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        findings, asked = Findings(), list[Group]()
        for group in groups:
            kept = _kept(team, group)
            if kept is None:
                asked.append(group)
            else:
                findings.add(kept)
        races = [[team.job(model, group) for model in team.models] for group in asked]
        outcomes = team.flows.race(races, _answers, deadline, team.caller)
        for group, race in zip(asked, outcomes, strict=True):
            if race.winner is None:
                raise together(race.failures)
            index, result = race.winner
            findings.add(found_by(group, team.models[index], result))
        return findings


def _kept(team: Team, group: Group) -> Findings | None:
    """What the first of the models that is remembered answered to a group."""
    for model in team.models:
        result = team.asker.kept(model, group)
        if result is not None and _answers(result):
            return found_by(group, model, result)
    return None


def _answers(result: ModelResult) -> bool:
    return result.answers
