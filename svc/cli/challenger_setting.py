"""What `svc challenger` checks and stores."""

from __future__ import annotations

import time
from dataclasses import replace

from svc import limits
from svc.cli.wording_files import read_question
from svc.errors import SettingsError
from svc.questions import from_definition
from svc.records import Challenger
from svc.store import (
    NANO,
    ChallengerRecord,
    Challengers,
    ChallengerState,
    ChallengerThere,
    Database,
    Per,
    QuestionVersions,
    TooManyBudgets,
)


def begin(
    opened: Database,
    place: tuple[str, str],
    model: str | None,
    wording: str | None,
    share: float,
    cap: tuple[int, Per] | None,
) -> Challenger:
    """Have a challenger asked the question of a project with that key.

    `wording` is the name of a file, or None; for `cap` see `Challengers.add`.
    Raises `SettingsError`.
    """
    project, key = place
    version = QuestionVersions(opened).latest(project, key)
    if version is None:
        raise SettingsError(
            f"project {project!r} was never asked a question {key[:100]!r}; it has to be asked "
            "once before"
        )
    present = from_definition(version.definition)
    text = None if wording is None else read_question(wording, present)
    new = Challenger(0, project, key, version.digest, model, text, share)
    now_ms = int(time.time() * 1000)
    try:
        return replace(new, id=Challengers(opened).add(new, version.question_id, now_ms, cap))
    except ChallengerThere:
        raise SettingsError(
            f"question {key[:100]!r} of project {project!r} has a challenger; "
            "`svc challenger remove` removes it"
        ) from None
    except TooManyBudgets as error:
        raise SettingsError(error.message) from None


def one(opened: Database, place: tuple[str, str], state: ChallengerState) -> ChallengerRecord:
    """The challenger of a question in that state. Raises `SettingsError`."""
    for record in Challengers(opened).all():
        challenger = record.challenger
        if (challenger.project, challenger.key, record.state) == (*place, state):
            return record
    raise SettingsError(
        f"question {place[1][:100]!r} of project {place[0]!r} has no challenger that is {state}; "
        "`svc challenger list` shows all"
    )


def switch(opened: Database, challenger: Challenger) -> None:
    """Promote a challenger. Raises `SettingsError` for another wording."""
    if challenger.model is None or challenger.wording is not None:
        raise SettingsError(
            "a wording stands in the requests of the callers: change it there, and remove the "
            "challenger"
        )
    Challengers(opened).promote(challenger, int(time.time() * 1000))


def nanodollars(amount: float) -> int:
    """An amount of dollars as budgets have it. Raises `SettingsError`."""
    low, high = limits.BUDGET_USD
    if not low <= amount <= high:
        raise SettingsError(f"--usd is {amount:g}; allowed: a number from {low:g} to {high:,.0f}")
    return round(amount * NANO)


def check_model(model: str | None) -> None:
    """Raise `SettingsError` unless it could be the id of a model."""
    if model is not None and (not model.isprintable() or model != model.strip() or not model):
        raise SettingsError(
            f"--model is {model[:100]!r}; allowed: the id of a model, printable and without blanks "
            "at its ends"
        )
