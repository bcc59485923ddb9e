"""Asks a plan for every answer that can be had, where one question alone would fail them all."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from svc.deadline import Deadline
from svc.engine.plans import Findings, Group, PlanKind, Team
from svc.errors import NoAnswer, OutOfCalls

# How many times groups of questions are asked again for one stage.
FURTHER_ASKS = 16


def ask(kind: PlanKind, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    """What `kind` finds; questions to which no model gave a valid answer have no finding.

    A group without a valid answer is asked again in halves, so that one question which fails is
    found in few steps. Raises what `PlanKind.ask` raises, also where no question was answered.
    """
    try:
        return kind.ask(team, groups, deadline)
    except NoAnswer as error:
        # Groups that were answered come from the cache when they are asked again.
        found = _in_parts(kind, team, groups, deadline)
        if not found.by_key:
            raise error from None
        return found


def _in_parts(kind: PlanKind, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    found = Findings()
    waiting = deque(groups if len(groups) > 1 else _halves(groups[0]))
    for _ in range(len(groups) + FURTHER_ASKS):
        if not waiting:
            break
        group = waiting.popleft()
        try:
            found.add(kind.ask(team, [group], deadline))
        except OutOfCalls:
            # The groups that are left may still come from the cache.
            continue
        except NoAnswer:
            waiting.extend(_halves(group))
    return found


def _halves(group: Group) -> list[Group]:
    """Two groups of half the questions each; none of a question that stands alone."""
    rows = list(group.questions.items())
    if len(rows) == 1:
        return []
    middle = len(rows) // 2
    return [Group(dict(half), group.think) for half in (rows[:middle], rows[middle:])]
