"""`svc challenger`: another model, or another wording, beside the one that answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from svc.cli import database
from svc.cli.challenger_report import comparison, report
from svc.cli.challenger_setting import begin, check_model, nanodollars, one, switch
from svc.cli.challenger_table import as_json as fields_of
from svc.cli.challenger_table import named, shown
from svc.cli.groups import Suggesting
from svc.cli.options import with_options
from svc.cli.tables import dollars, echo_json, json_option, percent
from svc.store import (
    Budgets,
    Challengers,
    ChallengerState,
    Per,
    QuestionVersions,
)

F = TypeVar("F", bound=Callable[..., Any])

EXAMPLES = """\b
Examples:
  svc challenger set --project shop --question urgent --model @openai/gpt-5-mini --share 0.1
  svc challenger set --project shop --question urgent --model M --usd 5 --per day
  svc challenger set --project shop --question urgent --wording shorter.json
  svc challenger report --project shop --question urgent
  svc challenger promote --project shop --question urgent
"""

_WHICH = (
    click.option("--project", metavar="P", required=True, help="The project of the decisions."),
    click.option("--question", metavar="Q", required=True, help="The key of the question."),
)


def _which_options(function: F) -> F:
    return with_options(_WHICH, function)  # type: ignore[no-any-return]


@click.group("challenger", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Compare another model with the one that answers, on live decisions.

    A share of the decisions that a running server makes is also asked of the challenger, after
    their answers have left. A label that is given for such a decision counts for both. Changes
    apply to a running server within a second.
    """


@command.command("set", epilog=f"Example: {EXAMPLES.splitlines()[2].strip()}")
@_which_options
@click.option("--model", metavar="M", help="The model that is to be asked too.")
@click.option(
    "--wording",
    metavar="FILE",
    help="Another wording: JSON of a question as POST /v1/decide takes it.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    metavar="N",
    help="The part of the decisions.",
)
@click.option("--usd", "amount", type=float, metavar="N", help="What it may cost at most.")
@click.option(
    "--per",
    type=click.Choice([Per.DAY.value, Per.MONTH.value]),
    help="In which time; days and months are those of UTC.",
)
@database.option
def set_challenger(
    project: str,
    question: str,
    model: str | None,
    wording: str | None,
    share: float,
    amount: float | None,
    per: str | None,
    db: str,
) -> None:
    """Ask a model, or another wording of the question, beside the one that answers.

    The question is meant in the wording in which it was asked last. Calls count against the budgets
    of the project too.
    """
    if model is None and wording is None:
        raise click.UsageError("One of --model and --wording is needed.")
    if (amount is None) != (per is None):
        raise click.UsageError("--usd and --per go together.")
    cap = None if amount is None or per is None else (nanodollars(amount), Per(per))
    check_model(model)
    place = _place(project, question)
    with database.opened(db) as opened:
        new = begin(opened, place, model, wording, share, cap)
    limited = "" if amount is None else f", for at most {dollars(amount)} a {per}"
    click.echo(f"{percent(share)} of the decisions are also asked of {named(new)}{limited}")


@command.command("list", epilog="Example: svc challenger list --db svc.db")
@json_option
@database.option
def show(as_json: bool, db: str) -> None:
    """Print a table of the challengers, of those that were promoted, and of those before them."""
    with database.opened(db) as opened:
        records = Challengers(opened).all()
        caps = {state.budget.subject: state for state in Budgets(opened).of_challengers()}
    found = [(record, caps.get(str(record.challenger.id))) for record in records]
    if as_json:
        echo_json([fields_of(*one) for one in found])
        return
    click.echo("\n".join(shown(found)))


@command.command("remove", epilog="Example: svc challenger remove --project shop --question urgent")
@_which_options
@click.option(
    "--promoted",
    "state",
    flag_value=ChallengerState.PROMOTED.value,
    help="Remove the one that was promoted, so that the usual model answers again.",
)
@click.option(
    "--retired",
    "state",
    flag_value=ChallengerState.RETIRED.value,
    help="Remove one that another replaced, or whose removal was cut off.",
)
@database.option
def remove(project: str, question: str, state: str | None, db: str) -> None:
    """Ask a challenger no more, and delete what it answered."""
    wanted = ChallengerState(state or ChallengerState.RUNNING)
    with database.opened(db) as opened:
        found = one(opened, _place(project, question), wanted)
        Challengers(opened).remove(found.challenger)
    click.echo(f"{named(found.challenger)} is removed, and what it answered is deleted")


@command.command("report", epilog="Example: svc challenger report --project shop --question urgent")
@_which_options
@json_option
@database.option
def show_report(project: str, question: str, as_json: bool, db: str) -> None:
    """Compare a challenger with the answers that callers got, on the same decisions.

    It may be looked at as often as wanted: with 95% certainty each interval holds the truth at all
    looks together.
    """
    with database.opened(db) as opened:
        found = one(opened, _place(project, question), ChallengerState.RUNNING)
        compared = comparison(opened, found)
        present = QuestionVersions(opened).latest(found.challenger.project, question)
    asked_still = present is not None and present.digest == found.challenger.digest
    if as_json:
        echo_json(
            {
                **compared.as_json,
                "dropped": found.dropped,
                "refused": found.refused,
                "asked_still": asked_still,
            }
        )
        return
    click.echo("\n".join(report(found, compared, asked_still)))


@command.command(
    "promote", epilog="Example: svc challenger promote --project shop --question urgent"
)
@_which_options
@database.option
def promote(project: str, question: str, db: str) -> None:
    """Have requests that name no model asked of the challenger's model.

    Those that name a model or a config keep it. Calibrators of the old model stay, and hold again
    for its answers.
    """
    with database.opened(db) as opened:
        found = one(opened, _place(project, question), ChallengerState.RUNNING)
        challenger = found.challenger
        verdict = comparison(opened, found).verdict
        switch(opened, challenger)
    click.echo(
        f"{challenger.model} answers requests of project {challenger.project!r} that ask "
        f"{challenger.key!r} and name no model (the comparison said: {verdict})"
    )


def _place(project: str, question: str) -> tuple[str, str]:
    return database.checked_project("--project", project), question
