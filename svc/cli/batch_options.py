"""The options that commands share which ask about many lines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from svc.batch import FORMATS, STANDARD, TEXT, Form, check_encoding, format_of
from svc.cli.completing import file_names, question_files
from svc.cli.options import with_options

# How many lines are under way at once, unless the command says otherwise.
CONCURRENCY = 16
# The most lines at once, because each needs threads and sockets for its calls.
MOST_AT_ONCE = 256

F = TypeVar("F", bound=Callable[..., Any])

questions_option = click.option(
    "-q",
    "--questions",
    metavar="FILE",
    required=True,
    shell_complete=question_files,
    help="JSON object of questions; without such a file, the recipe of that name.",
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Stop after the first N lines."
)
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Say how many calls, minutes and dollars it may take, and ask nothing.",
)

_OPTIONS = (
    questions_option,
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        shell_complete=file_names,
        help="Result lines; - for standard output.",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(1, MOST_AT_ONCE),
        default=CONCURRENCY,
        show_default=True,
        metavar="N",
        help="Lines under way at once.",
    ),
    click.option("--restart", is_flag=True, help="Start again and overwrite the output."),
    click.option(
        "--retry-failed", is_flag=True, help="Ask again only the lines of the output with an error."
    ),
    limit_option,
    dry_run_option,
)
_INPUT = (
    click.option(
        "--format",
        "kind",
        type=click.Choice(FORMATS),
        help="How INPUT is written.  [default: as its name ends, else jsonl]",
    ),
    click.option(
        "--column",
        "columns",
        metavar="C",
        multiple=True,
        help="Ask about this column or field; several times for an object.  [default: all]",
    ),
    click.option(
        "--ref-column",
        "ref",
        metavar="C",
        help="The column of your own ids, which results repeat as ref.",
    ),
    click.option("--encoding", default="utf-8", show_default=True, metavar="E"),
    click.argument("source", metavar="INPUT", shell_complete=file_names),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a run is to do: its files, which of its lines are asked, and how many at once."""

    questions: str
    output: str
    source: str
    form: Form
    concurrency: int
    restart: bool
    retry_failed: bool
    limit: int | None
    dry_run: bool


def batch_options(function: F) -> F:
    """Give a command the options of a run; it gets them as one argument, `batch`."""

    @functools.wraps(function)
    def with_batch(form: Form, **given: Any) -> Any:
        batch = Batch(form=form, **{name: given.pop(name) for name in _OTHERS})
        _check(batch)
        return function(batch=batch, **given)

    return with_options(_OPTIONS, input_options(with_batch))  # type: ignore[no-any-return]


def input_options(function: F) -> F:
    """Give a command the name of an input, as `source`, and how that is written, as `form`."""

    @functools.wraps(function)
    def with_form(**given: Any) -> Any:
        form = _form(given["source"], **{name: given.pop(name) for name in _FORM})
        return function(form=form, **given)

    return with_options(_INPUT, with_form)  # type: ignore[no-any-return]


# The options that say how an input is written, and the others of a batch.
_FORM = ("kind", "columns", "ref", "encoding")
_OTHERS = (
    *("questions", "output", "source", "concurrency"),
    *("restart", "retry_failed", "limit", "dry_run"),
)


def _form(
    source: str, kind: str | None, columns: tuple[str, ...], ref: str | None, encoding: str
) -> Form:
    """Raises `UsageError` and `SettingsError`."""
    check_encoding(encoding)
    if len(set(columns)) < len(columns):
        raise click.UsageError("--column names a column twice.")
    form = Form(kind or format_of(source), encoding, columns, ref)
    if form.format == TEXT and (columns or ref):
        raise click.UsageError("--column and --ref-column do not go with lines of text.")
    return form


def _check(batch: Batch) -> None:
    if batch.retry_failed and (batch.restart or batch.limit):
        raise click.UsageError("--retry-failed goes neither with --restart nor with --limit.")
    if batch.retry_failed and batch.output == STANDARD:
        raise click.UsageError("--retry-failed needs the file of an earlier run as -o.")
