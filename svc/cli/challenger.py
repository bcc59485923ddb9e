"""`svc challenger`: another model, or another wording, beside the one that answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from svc import files, jsontext, limits
from svc.cli import database
from svc.cli.challenger_report import report
from svc.cli.groups import Suggesting
from svc.cli.options import with_options
from svc.cli.tables import dollars, echo_json, json_option, moment, percent, table
from svc.engine.challenges import worded
from svc.errors import ApiError, SettingsError
from svc.jsontext import JsonObject
from svc.learning import Comparison, compared
from svc.phrases import reason
from svc.questions import Question, from_definition
from svc.records import Challenger
from svc.store import (
    NANO,
    Budget,
    Budgets,
    BudgetState,
    ChallengerRecord,
    Challengers,
    ChallengerState,
    ChallengerThere,
    Database,
    Per,
    QuestionVersions,
    Scope,
    TooManyBudgets,
)

F = TypeVar("F", bound=Callable[..., Any])

_HEAD = ("project", "question", "challenger", "state", "since", "share", "cap", "spent", "left out")
# The places of the columns that hold words.
_TEXT = {0, 1, 2, 3, 4, 6}

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


@command.command("set", epilog=EXAMPLES.splitlines()[2].strip())
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
    cap = None if amount is None or per is None else (_nanodollars(amount), Per(per))
    project = database.checked_project("--project", project)
    _check_model(model)
    with database.opened(db) as opened:
        version = QuestionVersions(opened).latest(project, question)
        if version is None:
            raise SettingsError(
                f"project {project!r} was never asked a question {question[:100]!r}; it has to be "
                "asked once before"
            )
        text = None if wording is None else _wording(wording, from_definition(version.definition))
        new = Challenger(0, project, question, version.digest, model, text, share)
        row = _added(opened, new, version.question_id)
        if cap is not None:
            _bound(opened, row, *cap)
    bound = "" if amount is None else f", for at most {dollars(amount)} a {per}"
    click.echo(f"{percent(share)} of the decisions are also asked of {_named(new)}{bound}")


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
        echo_json([_fields(*one) for one in found])
        return
    click.echo("\n".join(table(_HEAD, [_row(*one) for one in found], _TEXT)))


@command.command("remove", epilog="Example: svc challenger remove --project shop --question urgent")
@_which_options
@click.option(
    "--promoted", is_flag=True, help="Remove the one that was promoted: the usual model answers."
)
@database.option
def remove(project: str, question: str, promoted: bool, db: str) -> None:
    """Ask a challenger no more, and delete what it answered."""
    state = ChallengerState.PROMOTED if promoted else ChallengerState.RUNNING
    with database.opened(db) as opened:
        found = _one(opened, project, question, state)
        Challengers(opened).remove(found.challenger)
    click.echo(f"{_named(found.challenger)} is removed, and what it answered is deleted")


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
        found = _one(opened, project, question, ChallengerState.RUNNING)
        comparison = _compared(opened, found)
        present = QuestionVersions(opened).latest(found.challenger.project, question)
    asked_still = present is not None and present.digest == found.challenger.digest
    if as_json:
        echo_json(
            {
                **comparison.as_json,
                "dropped": found.dropped,
                "refused": found.refused,
                "asked_still": asked_still,
            }
        )
        return
    click.echo("\n".join(report(found, comparison, asked_still)))


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
        found = _one(opened, project, question, ChallengerState.RUNNING)
        challenger = found.challenger
        if challenger.model is None or challenger.wording is not None:
            raise SettingsError(
                "a wording stands in the requests of the callers: change it there, and remove the "
                "challenger"
            )
        verdict = _compared(opened, found).verdict
        Challengers(opened).promote(challenger, int(time.time() * 1000))
    click.echo(
        f"{challenger.model} answers requests of project {challenger.project!r} that ask "
        f"{challenger.key!r} and name no model (the comparison said: {verdict})"
    )


def _nanodollars(amount: float) -> int:
    low, high = limits.BUDGET_USD
    if not low <= amount <= high:
        raise SettingsError(f"--usd is {amount:g}; allowed: a number from {low:g} to {high:,.0f}")
    return round(amount * NANO)


def _check_model(model: str | None) -> None:
    if model is not None and (not model.isprintable() or model != model.strip() or not model):
        raise SettingsError(
            f"--model is {model[:100]!r}; allowed: the id of a model, printable and without blanks "
            "at its ends"
        )


def _wording(path: str, present: Question) -> str:
    """The JSON of a question in a file, whose labels are those of the present wording."""
    where = f"wording {path!r}"
    try:
        text = jsontext.dumps(files.read_json(Path(path)))
        question = worded(text)
    except OSError as error:
        raise SettingsError(f"{where}: {reason(error)}") from None
    except ApiError as error:
        raise SettingsError(f"{where}: {error.message}") from None
    if question.type != present.type or question.option_names != present.option_names:
        raise SettingsError(
            f"{where}: it must be of type {present.type} with the same options as the question, so "
            "that a label counts for both"
        )
    if question.when or question.rules or question.depends_on:
        raise SettingsError(
            f"{where}: it has when, rules or depends_on; those of the callers' question hold"
        )
    return text


def _added(opened: Database, new: Challenger, question_id: int) -> int:
    try:
        return Challengers(opened).add(new, question_id, int(time.time() * 1000))
    except ChallengerThere:
        raise SettingsError(
            f"question {new.key[:100]!r} of project {new.project!r} has a challenger; "
            "`svc challenger remove` removes it"
        ) from None


def _bound(opened: Database, row: int, nanodollars: int, per: Per) -> None:
    try:
        Budgets(opened).set(Budget(Scope.CHALLENGER, str(row), per, nanodollars))
    except TooManyBudgets as error:
        raise SettingsError(error.message) from None


def _one(opened: Database, project: str, question: str, state: ChallengerState) -> ChallengerRecord:
    """The challenger of a question in that state. Raises `SettingsError`."""
    project = database.checked_project("--project", project)
    for record in Challengers(opened).all():
        place = (record.challenger.project, record.challenger.key, record.state)
        if place == (project, question, state):
            return record
    raise SettingsError(
        f"question {question[:100]!r} of project {project!r} has no challenger that is {state}; "
        "`svc challenger list` shows all"
    )


def _compared(opened: Database, record: ChallengerRecord) -> Comparison:
    challenger = record.challenger
    pairs = Challengers(opened).pairs(challenger.id, limits.CHALLENGER_PAIRS)
    version = QuestionVersions(opened).by_digest(challenger.digest)
    # A foreign key makes sure that it is there.
    assert version is not None
    question = from_definition(version.definition)
    other = question if challenger.wording is None else worded(challenger.wording)
    return compared(pairs, question, other)


def _named(challenger: Challenger) -> str:
    model = challenger.model or "the same model"
    return model if challenger.wording is None else f"{model} in another wording"


def _fields(record: ChallengerRecord, cap: BudgetState | None) -> JsonObject:
    challenger = record.challenger
    return {
        "id": challenger.id,
        "project": challenger.project,
        "question": challenger.key,
        "model": challenger.model,
        "wording": None if challenger.wording is None else _parsed(challenger.wording),
        "share": challenger.share,
        "state": record.state,
        "created_at": record.created_at,
        "promoted_at": record.promoted_at,
        "dropped": record.dropped,
        "refused": record.refused,
        "limit_usd": None if cap is None else cap.budget.limit / NANO,
        "per": None if cap is None else cap.budget.per,
        "spent_usd": None if cap is None else cap.spent / NANO,
    }


def _parsed(text: str) -> Any:
    return jsontext.loads(text.encode())


def _row(record: ChallengerRecord, cap: BudgetState | None) -> tuple[str, ...]:
    challenger = record.challenger
    return (
        challenger.project,
        challenger.key,
        _named(challenger),
        record.state,
        moment(record.promoted_at or record.created_at),
        percent(challenger.share),
        "-" if cap is None else f"{dollars(cap.budget.limit / NANO)} a {cap.budget.per}",
        "-" if cap is None else dollars(cap.spent / NANO),
        str(record.dropped + record.refused),
    )
