"""The options that say which decisions of a running server are wanted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--question", metavar="Q", help="Decisions that answered this question."),
    click.option("--answer", metavar="A", help="Those that answered it so."),
    click.option("--min-confidence", metavar="C", help="Those that were at least so sure of it."),
    click.option("--max-confidence", metavar="C", help="Those that were at most so sure of it."),
    click.option("--ref", metavar="REF", help="Decisions with this reference."),
    click.option("--tag", multiple=True, metavar="NAME:VALUE", help="Decisions with this tag."),
    click.option("--model", metavar="ID", help="Decisions that this model answered."),
    click.option(
        "--from", "from_", metavar="TIME", help="From this moment on, such as 2026-11-22."
    ),
    click.option("--to", metavar="TIME", help="Before this moment."),
    click.option(
        "--labelled/--unlabelled", default=None, help="Decisions with labels, or without."
    ),
)
_NAMES = ("question", "answer", "min_confidence", "max_confidence", "ref", "tag", "model", "to")


def filter_options(function: F) -> F:
    """Give a command the filters; it gets them as one argument, `filters`, a query."""

    @functools.wraps(function)
    def with_filters(from_: str | None, labelled: bool | None, **others: Any) -> Any:
        filters = {name: others.pop(name) for name in _NAMES}
        told = None if labelled is None else str(labelled).lower()
        return function(filters={**filters, "from": from_, "labelled": told}, **others)

    command: Any = with_filters
    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[no-any-return]
