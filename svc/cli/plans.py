"""The options that say how models are asked, shared by every command that asks them.

@click.command("map")
@model_options
def command(asking: Asking) -> None: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import click
from marshmallow import ValidationError

from svc.cli.demonstration import DEMO_MODEL
from svc.schemas.decision import MODES
from svc.schemas.plan import CASCADE, COUNCIL, ESCALATE_BELOW, RACE, PlanField

F = TypeVar("F", bound=Callable[..., Any])

_MODEL = "model"
# Options of which only one may be given.
_PLANS = (_MODEL, COUNCIL, CASCADE, RACE)
demo_option = click.option(
    "--demo",
    is_flag=True,
    help=f"Start the demonstration model; {DEMO_MODEL} answers unless models are named.",
)
_OPTIONS = (
    click.option("--model", metavar="MODEL", help="A model, or a fallback chain: A,B,C."),
    click.option("--council", metavar="A,B", help="Models that answer together, blended."),
    click.option("--cascade", metavar="A,B", help="Cheapest first, unsure questions go on."),
    click.option("--race", metavar="A,B", help="All asked at once, the first answer wins."),
    click.option(
        "--escalate-below",
        type=float,
        metavar="P",
        help=f"Confidence below which a cascade goes on.  [default: {ESCALATE_BELOW}]",
    ),
    click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True),
    click.option("--no-debias", is_flag=True, help="Ask options in their original order only."),
    demo_option,
)


@dataclass(frozen=True, slots=True)
class Asking:
    """How models are to be asked.

    `fields` are those of `POST /v1/decide`: `mode`, `debias`, and `model` where one is named.
    """

    fields: Mapping[str, Any]
    demo: bool


def model_options(function: F) -> F:
    """Give a command the model options; it gets them as one argument, `asking`."""

    @functools.wraps(function)
    def with_asking(mode: str, no_debias: bool, demo: bool, **others: Any) -> Any:
        given = {name: others.pop(name) for name in (*_PLANS, "escalate_below")}
        model = _plan(given, DEMO_MODEL if demo else None)
        named = {} if model is None else {"model": model}
        fields = {**named, "mode": mode, "debias": not no_debias}
        return function(asking=Asking(fields, demo), **others)

    command: Any = with_asking
    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[no-any-return]


def model_ids(text: str) -> list[str]:
    """The ids of a comma-separated list."""
    return [part.strip() for part in text.split(",")]


def _plan(given: Mapping[str, Any], default: str | None) -> Any:
    """The plan as the request field `model` has it. Raises `UsageError` for what is none."""
    named = [name for name in _PLANS if given[name] is not None]
    if len(named) > 1:
        _refuse(f"{' and '.join(f'--{name}' for name in named)} exclude each other")
    if given["escalate_below"] is not None and named != [CASCADE]:
        _refuse("--escalate-below goes with --cascade only")
    if not named:
        return default
    ids = model_ids(given[named[0]])
    plan = _field(named[0], ids, given["escalate_below"])
    try:
        PlanField().deserialize(plan)
    except ValidationError as error:
        _refuse(f"--{named[0]} {error.messages[0]}")
    return plan


def _field(name: str, ids: list[str], escalate_below: float | None) -> Any:
    if name == _MODEL:
        return ids[0] if len(ids) == 1 else ids
    if name == CASCADE:
        return {
            name: ids,
            "escalate_below": ESCALATE_BELOW if escalate_below is None else escalate_below,
        }
    return {name: ids}


def _refuse(message: str) -> NoReturn:
    raise click.UsageError(message)
