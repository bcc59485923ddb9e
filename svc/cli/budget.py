"""`svc budget`: what the calls of projects and keys may cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from svc import limits
from svc.cli import database
from svc.cli.groups import Suggesting
from svc.cli.options import with_options
from svc.cli.tables import dollars, echo_json, json_option, table
from svc.errors import SettingsError
from svc.jsontext import JsonObject
from svc.store import (
    NANO,
    ApiKeys,
    Budget,
    Budgets,
    BudgetState,
    Database,
    Per,
    Scope,
    TooManyBudgets,
)

F = TypeVar("F", bound=Callable[..., Any])

_HEAD = ("of", "per", "limit", "spent", "reserved", "used", "at the limit", "warns at")
# The places of the columns that hold words.
_TEXT = {0, 1, 6}

EXAMPLES = """\b
Examples:
  svc budget set --project shop --usd 50 --per day
  svc budget set --key ID --usd 300 --per month --warn-at 90
  svc budget set --project shop --usd 1000 --per month --warn-only
  svc budget list
  svc budget remove --project shop --per day
"""

_WHOSE = (
    click.option("--project", metavar="P", help="The project whose calls count."),
    click.option("--key", metavar="ID", help="The API key whose calls count."),
    click.option(
        "--per",
        type=click.Choice([Per.DAY.value, Per.MONTH.value]),
        required=True,
        help="Days and months are those of UTC.",
    ),
)


def _whose_options(function: F) -> F:
    return with_options(_WHOSE, function)  # type: ignore[no-any-return]


@click.group("budget", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Bound what calls to models may cost, in dollars.

    Changes apply to a running server within a second. A request beyond a limit gets 429, which says
    when the budget renews.
    """


@command.command("set", epilog="Example: svc budget set --project shop --usd 50 --per day")
@_whose_options
@click.option(
    "--usd", "amount", type=float, required=True, metavar="N", help="Dollars in each period."
)
@click.option("--warn-only", is_flag=True, help="Count and warn, but refuse nothing.")
@click.option(
    "--warn-at",
    type=click.IntRange(1, 100),
    default=round(limits.BUDGET_WARNS_AT * 100),
    show_default=True,
    metavar="PERCENT",
    help="Warn when so much of it is used.",
)
@database.option
def set_budget(
    project: str | None,
    key: str | None,
    per: str,
    amount: float,
    warn_only: bool,
    warn_at: int,
    db: str,
) -> None:
    """Set a limit, or change one: what is counted in its period so far stays counted."""
    low, high = limits.BUDGET_USD
    if not low <= amount <= high:
        raise SettingsError(f"--usd is {amount:g}; allowed: a number from {low:g} to {high:,.0f}")
    with database.opened(db, create=True) as opened:
        scope, subject = _whose(opened, project, key)
        budget = Budget(
            scope, subject, Per(per), round(amount * NANO), not warn_only, warn_at / 100
        )
        try:
            Budgets(opened).set(budget)
        except TooManyBudgets as error:
            raise SettingsError(error.message) from None
    does = "counted and warned about" if warn_only else "refused"
    click.echo(f"calls of {_named(budget)} beyond {dollars(amount)} a {per} are {does}")


@command.command("list", epilog="Example: svc budget list --db svc.db")
@json_option
@database.option
def show(as_json: bool, db: str) -> None:
    """Print a table of the budgets and what is spent of them."""
    with database.opened(db) as opened:
        states = Budgets(opened).states()
    if as_json:
        echo_json([_fields(state) for state in states])
        return
    click.echo("\n".join(table(_HEAD, [_row(state) for state in states], _TEXT)))


@command.command("remove", epilog="Example: svc budget remove --project shop --per day")
@_whose_options
@database.option
def remove(project: str | None, key: str | None, per: str, db: str) -> None:
    """Remove a limit."""
    with database.opened(db) as opened:
        scope, subject = _place(project, key)
        removed = Budgets(opened).remove(scope, subject, Per(per))
    if not removed:
        raise SettingsError(
            f"{scope} {subject[:100]!r} has no budget a {per}; `svc budget list` shows all"
        )
    click.echo(f"{scope} {subject[:100]!r} has no budget a {per} any more")


def _place(project: str | None, key: str | None) -> tuple[Scope, str]:
    if (project is None) == (key is None):
        raise click.UsageError("One of --project and --key is needed.")
    if project is not None:
        return Scope.PROJECT, database.checked_project("--project", project)
    return Scope.KEY, str(key)


def _whose(opened: Database, project: str | None, key: str | None) -> tuple[Scope, str]:
    """What the options name; of keys only one that there is. Raises `SettingsError`."""
    scope, subject = _place(project, key)
    if scope is Scope.KEY and subject not in {one.id for one in ApiKeys(opened).all()}:
        raise SettingsError(
            f"there is no key with the id {subject[:100]!r}; `svc keys list` shows the ids"
        )
    return scope, subject


def _named(budget: Budget) -> str:
    return f"{budget.scope} {budget.subject!r}"


def _fields(state: BudgetState) -> JsonObject:
    budget = state.budget
    return {
        "scope": budget.scope,
        "subject": budget.subject,
        "per": budget.per,
        "limit_usd": budget.limit / NANO,
        "spent_usd": state.spent / NANO,
        "reserved_usd": state.reserved / NANO,
        "hard": budget.hard,
        "warn_at": budget.warn_at,
    }


def _row(state: BudgetState) -> tuple[str, ...]:
    budget = state.budget
    amounts = (budget.limit, state.spent, state.reserved)
    return (
        _named(budget),
        budget.per,
        *(dollars(amount / NANO) for amount in amounts),
        f"{state.taken / budget.limit:.1%}",
        "refuses" if budget.hard else "warns only",
        f"{budget.warn_at:.0%}",
    )
