"""The kinds of plans, one file each; nothing but this table knows them by name."""

from __future__ import annotations

from svc.engine.plans.base import (
    Finding,
    Findings,
    Group,
    ModelResult,
    Plan,
    PlanKind,
    PlanOption,
    Team,
    grouped,
)
from svc.engine.plans.cascade import BELOW, CascadePlan
from svc.engine.plans.chain import ChainPlan
from svc.engine.plans.council import CouncilPlan
from svc.engine.plans.race import RacePlan

CHAIN = ChainPlan.name
KINDS: dict[str, PlanKind] = {}


def register(kind: PlanKind) -> None:
    """Make a kind known: to requests, to the documentation and to the command line."""
    KINDS[kind.name] = kind


register(ChainPlan())
register(CouncilPlan())
register(CascadePlan())
register(RacePlan())


def named_kinds() -> list[PlanKind]:
    """The kinds that are asked for by name, as a member of `model`."""
    return [kind for kind in KINDS.values() if kind.name != CHAIN]


__all__ = [
    "BELOW",
    "CHAIN",
    "KINDS",
    "CascadePlan",
    "CouncilPlan",
    "Finding",
    "Findings",
    "Group",
    "ModelResult",
    "Plan",
    "PlanKind",
    "PlanOption",
    "Team",
    "grouped",
    "named_kinds",
    "register",
]
