"""A kind of plan of the tests: the models in turn, the last one first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from svc.deadline import Deadline
from svc.engine.plans import KINDS, Findings, Group, PlanKind, Team, register
from svc.engine.plans.chain import ChainPlan


class BackwardsPlan(PlanKind):
    """A fallback chain that begins at its end."""

    name = "backwards"
    meaning = "A fallback chain from its last model to its first."
    help = "A fallback chain from its end."

    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        return ChainPlan().ask(replace(team, models=team.models[::-1]), groups, deadline)


@contextmanager
def known() -> Iterator[None]:
    """Have the kind among the others for a while."""
    register(BackwardsPlan())
    try:
        yield
    finally:
        del KINDS[BackwardsPlan.name]
