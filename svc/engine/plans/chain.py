"""`chain`: the next model is asked when one fails."""

from __future__ import annotations

from collections.abc import Sequence

from svc.deadline import Deadline
from svc.engine.plans.base import Findings, Group, PlanKind, Team, found_by, joined
from svc.errors import ENDING, ApiError, together
from svc.flows import Job


class ChainPlan(PlanKind):
    """A fallback chain; a single model is a chain of one."""

    name = "chain"
    meaning = "A fallback chain: the next one is asked when one fails."
    help = "A model, or a fallback chain: A,B,C."

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        def job(group: Group) -> Job[Findings]:
            return lambda lane: _first_that_answers(team, group, lane)

        return joined(team.flows.run([job(group) for group in groups], deadline))


def _first_that_answers(team: Team, group: Group, deadline: Deadline) -> Findings:
    failures: list[ApiError] = []
    empty: Findings | None = None
    for model in team.models:
        try:
            asked = team.asking.ask(model, group, deadline)
        except ENDING:
            raise
        except ApiError as error:
            failures.append(error)
            continue
        found = found_by(group, model, asked)
        if asked.answers:
            return found
        empty = empty or found
    if empty is not None:
        return empty
    raise together(failures)
