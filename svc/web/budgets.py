"""`GET /v1/budgets`."""

from __future__ import annotations

import time
from collections.abc import Callable

from flask import Blueprint, g

from svc.jsontext import JsonObject
from svc.schemas import ResponseSchema, Shown
from svc.shapes import AMOUNT, COUNT, FLAG, PROBABILITY, TEXT, array, one_of
from svc.store import NANO, Budgets, BudgetState, Per, Scope
from svc.web.auth import Access
from svc.web.decorators import report, response


class BudgetSchema(ResponseSchema):
    """A budget, and what of its present period is spent; amounts are in dollars."""

    scope = Shown(one_of([Scope.PROJECT, Scope.KEY]), "Whose calls it bounds.")
    subject = Shown(TEXT, "The name of the project, or the id of the API key.")
    per = Shown(one_of([Per.DAY, Per.MONTH]), "Days and months are those of UTC.")
    limit_usd = Shown(AMOUNT)
    spent_usd = Shown(AMOUNT, "What calls of this period cost.")
    reserved_usd = Shown(AMOUNT, "For calls under way, and what killed processes had reserved.")
    left_usd = Shown(AMOUNT, "What is neither spent nor reserved.")
    hard = Shown(FLAG, "Whether calls beyond the limit are refused; else they are only counted.")
    warn_at = Shown(PROBABILITY, "The share of the limit at which it warns.")
    warns = Shown(FLAG, "Whether that much is spent or reserved.")
    renews_at = Shown(COUNT, "When the next period begins, in milliseconds since the epoch.")


class BudgetsSchema(ResponseSchema):
    """Budgets of projects, and of API keys."""

    budgets = Shown(array(BudgetSchema))


def blueprint(stored: Budgets, now: Callable[[], float] = time.time) -> Blueprint:
    """The route that lists budgets; `now` is in unix seconds."""
    routes = Blueprint("budgets", __name__)

    @routes.get("/v1/budgets")
    @report
    @response(BudgetsSchema)
    def budgets() -> JsonObject:
        """List the budgets in dollars, and what is spent of them.

        A key that is for one project sees its own budgets and those of its project. What was spent
        in the last seconds may still be counted as reserved.
        """
        access = g.access
        seen = [state for state in stored.states() if _sees(access, state)]
        return {"budgets": [_shown(state, now()) for state in seen]}

    return routes


def _sees(access: Access, state: BudgetState) -> bool:
    budget = state.budget
    if budget.scope is Scope.PROJECT:
        return access.sees(budget.subject)
    return access.only is None or budget.subject == access.key_id


def _shown(state: BudgetState, now: float) -> JsonObject:
    budget = state.budget
    return {
        "scope": budget.scope,
        "subject": budget.subject,
        "per": budget.per,
        "limit_usd": budget.limit / NANO,
        "spent_usd": state.spent / NANO,
        "reserved_usd": max(0, state.reserved) / NANO,
        "left_usd": max(0, budget.limit - state.taken) / NANO,
        "hard": budget.hard,
        "warn_at": budget.warn_at,
        "warns": state.taken >= budget.warn_at * budget.limit,
        "renews_at": int(budget.per.renews_at(now) * 1000),
    }
