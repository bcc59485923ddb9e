"""The options by which a command without a server counts against budgets in dollars."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from svc.cli.completing import file_names
from svc.cli.database import checked_project
from svc.cli.options import with_options
from svc.inprocess import PaidBy
from svc.schemas import DEFAULT_PROJECT

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--budget-db",
        metavar="DB",
        shell_complete=file_names,
        help="Count calls against the budgets of a project in this database.",
    ),
    click.option(
        "--budget-project", metavar="P", help=f"That project.  [default: {DEFAULT_PROJECT}]"
    ),
)


def paid_by_options(function: F) -> F:
    """Give a command the options of budgets; it gets them as one argument, `paid_by`."""

    @functools.wraps(function)
    def with_budgets(budget_db: str | None, budget_project: str | None, **others: Any) -> Any:
        if budget_project is not None and budget_db is None:
            raise click.UsageError("--budget-project goes with --budget-db only.")
        project = checked_project("--budget-project", budget_project or DEFAULT_PROJECT)
        paid_by = None if budget_db is None else PaidBy(budget_db, project)
        return function(paid_by=paid_by, **others)

    return with_options(_OPTIONS, with_budgets)  # type: ignore[no-any-return]
