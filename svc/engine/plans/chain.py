"""`chain`: the next model is asked when one fails."""

from __future__ import annotations

from collections.abc import Sequence

from svc.deadline import Deadline
from svc.engine.plans.base import Findings, Group, PlanKind, Team, ask_each, found_by
from svc.errors import ENDING, ApiError, together


class ChainPlan(PlanKind):
    """A fallback chain; a single model is a chain of one."""

    name = "chain"
    meaning = "A fallback chain: the next one is asked when one fails."
    help = "A model, or a fallback chain: A,B,C."

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        return ask_each(team, groups, deadline, _first_that_answers)


def _first_that_answers(team: Team, group: Group, deadline: Deadline) -> Findings:
    failures: list[ApiError] = []
    empty: Findings | None = None
    for model in team.models:
        try:
            result = team.asker.ask(model, group, deadline)
        except ENDING:
            raise
        except ApiError as error:
            failures.append(error)
            continue
        findings = found_by(group, model, result)
        if result.answers:
            return findings
        empty = empty or findings
    if empty is not None:
        return empty
    raise together(failures)
