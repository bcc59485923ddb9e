"""The options of how models are asked, shared by every command that asks them.

@click.command("map")
@model_options
def command(asking: ModelOptions) -> None: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import click
from marshmallow import ValidationError

from svc.cli.options import with_options
from svc.engine.plans import CHAIN, KINDS, PlanKind, named_kinds
from svc.inprocess import DEMO_MODEL
from svc.jsontext import JsonObject
from svc.schemas import MODES, PlanField

F = TypeVar("F", bound=Callable[..., Any])

demo_option = click.option(
    "--demo",
    is_flag=True,
    help=f"Start the demonstration model; {DEMO_MODEL} answers unless models are named.",
)

# The option of a chain, which is the plan without a name of its own.
_MODEL = "model"


def _options() -> list[Callable[[F], F]]:
    options = [click.option("--model", metavar="MODEL", help=KINDS[CHAIN].help)]
    for kind in named_kinds():
        options.append(click.option(f"--{kind.name}", metavar="A,B", help=kind.help))
        for name, option in kind.options.items():
            words = f"{option.help}  [default: {option.default}]"
            options.append(click.option(_spelled(name), type=float, metavar="P", help=words))
    return [
        *options,
        click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True),
        click.option("--no-debias", is_flag=True, help="Ask options in their original order only."),
    ]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How models are asked.

    `fields` are those of `POST /v1/decide`: `mode`, `debias`, and `model` where one is named.
    """

    fields: Mapping[str, Any]
    demo: bool


def model_options(function: F) -> F:
    """Give a command the model options; it gets them as one argument, `asking`."""

    @functools.wraps(function)
    def with_asking(demo: bool, **given: Any) -> Any:
        fields = _taken(given, DEMO_MODEL if demo else None)
        return function(asking=ModelOptions(fields, demo), **given)

    return with_options([*_options(), demo_option], with_asking)  # type: ignore[no-any-return]


def plan_options(function: F) -> F:
    """Give a command the options of how a server asks models; it gets them as `fields`."""

    @functools.wraps(function)
    def with_fields(**given: Any) -> Any:
        fields = _taken(given, None)
        return function(fields=fields, **given)

    return with_options(_options(), with_fields)  # type: ignore[no-any-return]


def _taken(given: JsonObject, default: str | None) -> JsonObject:
    """The fields of the request that the options say, which are taken out of what was given."""
    mode, debias = given.pop("mode"), not given.pop("no_debias")
    names = [name for kind in named_kinds() for name in (kind.name, *kind.options)]
    model = _plan({name: given.pop(name) for name in (_MODEL, *names)}, default)
    named = {} if model is None else {"model": model}
    return {**named, "mode": mode, "debias": debias}


def model_ids(text: str) -> list[str]:
    """The ids of a comma-separated list."""
    return [part.strip() for part in text.split(",")]


def _plan(given: Mapping[str, Any], default: str | None) -> Any:
    """The value of the request field `model`. Raises `UsageError` for an invalid one."""
    kinds = [kind for kind in named_kinds() if given[kind.name] is not None]
    named = [*([_MODEL] if given[_MODEL] is not None else []), *(kind.name for kind in kinds)]
    if len(named) > 1:
        _refuse(f"{' and '.join(map(_spelled, named))} exclude each other")
    for kind in named_kinds():
        for name in kind.options:
            if given[name] is not None and kind not in kinds:
                _refuse(f"{_spelled(name)} goes with {_spelled(kind.name)} only")
    if not named:
        return default
    ids = model_ids(given[named[0]])
    plan = _field(kinds[0], ids, given) if kinds else ids[0] if len(ids) == 1 else ids
    try:
        PlanField().deserialize(plan)
    except ValidationError as error:
        wrong = error.messages if isinstance(error.messages, dict) else {named[0]: error.messages}
        ((name, words),) = wrong.items()
        of = "" if name == named[0] else f" of {_spelled(named[0])}"
        _refuse(f"{_spelled(name)}{of} {words[0]}")
    return plan


def _field(kind: PlanKind, ids: list[str], given: Mapping[str, Any]) -> JsonObject:
    options = {
        name: option.default if given[name] is None else given[name]
        for name, option in kind.options.items()
    }
    return {kind.name: ids, **options}


def _spelled(name: str) -> str:
    """How the command line spells a field."""
    return "--" + name.replace("_", "-")


def _refuse(message: str) -> NoReturn:
    raise click.UsageError(message)
