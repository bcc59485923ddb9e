"""The parts that `svc map` and `svc shadow` share: their options, and a run with its summary."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import click

from svc import jsontext
from svc.batch import (
    FORMATS,
    TEXT,
    BrokenInput,
    ChildLost,
    Form,
    Input,
    InputLine,
    Output,
    Progress,
    Tally,
    Workers,
    check_encoding,
    duration,
    format_of,
    open_input,
    open_output,
    rate_text,
    write_all,
)
from svc.cli.lines import Answerer, LineWork
from svc.cli.notices import FAILED, notice
from svc.cli.question_files import read_named
from svc.errors import SettingsError
from svc.jsontext import JsonObject
from svc.schemas import DecisionRequest

# How many lines are under way at once, unless the command says otherwise.
CONCURRENCY = 16
# The most lines at once, because each needs threads and sockets for its calls.
MOST_AT_ONCE = 256

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-q",
        "--questions",
        metavar="FILE",
        required=True,
        help="JSON object of questions; without such a file, the recipe of that name.",
    ),
    click.option(
        "-o", "--output", metavar="FILE", required=True, help="Result lines; - for standard output."
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
    click.argument("source", metavar="INPUT"),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of a run, and how many lines it works on at once."""

    questions: str
    output: str
    source: str
    form: Form
    concurrency: int
    restart: bool


def batch_options(function: F) -> F:
    """Give a command the options of a run; it gets them as one argument, `batch`."""

    @functools.wraps(function)
    def with_batch(**given: Any) -> Any:
        form = _form(given["source"], **{name: given.pop(name) for name in _FORM})
        batch = Batch(form=form, **{name: given.pop(name) for name in _FILES})
        return function(batch=batch, **given)

    command: Any = with_batch
    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[no-any-return]


# The options that say how an input is written, and the others of a batch.
_FORM = ("kind", "columns", "ref", "encoding")
_FILES = ("questions", "output", "source", "concurrency", "restart")


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


def run(
    batch: Batch,
    answerer: Answerer,
    finish: Callable[[DecisionRequest], None] = lambda _request: None,
    **record: Any,
) -> None:
    """Go over the input, write a line for each of its lines, and print a summary.

    `finish` is called after the summary. `record` is stored beside the output with the other facts
    that identify the run. Ends the command with a status unless all went well.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        status = _run(batch, answerer, finish, record)
    except KeyboardInterrupt as interrupt:
        status = _status(interrupt)
    if status:
        raise click.exceptions.Exit(status)


def _run(
    batch: Batch,
    answerer: Answerer,
    finish: Callable[[DecisionRequest], None],
    record: JsonObject,
) -> int:
    questions = read_named(batch.questions).fields
    with ExitStack() as stack:
        source = stack.enter_context(closing(open_input(batch.source, batch.form)))
        settled = answerer.settle(questions, batch.concurrency)
        answering = stack.enter_context(settled.start())
        digest = hashlib.sha256(jsontext.dumps(questions).encode()).hexdigest()
        identity = {"questions": digest, "input": source.sha256, **batch.form.identity}
        identity |= {**settled.identity, **record}
        # Questions of a recipe stand in no file that the output could be.
        read = [os.stat(path) for path in [batch.questions] if os.path.isfile(path)]
        inputs = (*read, source.status)
        output = open_output(batch.output, identity, batch.restart, inputs)
        stack.enter_context(closing(output))
        status = _go(source, output, answering, settled.at_once)
    # An interrupted run has a higher status.
    if status <= FAILED:
        finish(settled.request)
    return status


def _go(source: Input, output: Output, answering: LineWork, threads: int) -> int:
    """Write all lines; the exit status."""
    lines = _left(source, output)
    tally, status = Tally(output.lines, output.errors), 0
    drawn = sys.stderr.isatty() and (output.resumable or not sys.stdout.isatty())
    progress = Progress(sys.stderr, source.total, output.lines, drawn)
    try:
        with Workers(lines, answering.work, threads, answering.cut) as results:
            write_all(results, output, progress, tally)
    except KeyboardInterrupt as interrupt:
        tally.stopped, status = "interrupted", _status(interrupt)
    except (ChildLost, BrokenInput) as error:
        tally.stopped = error.message
    finally:
        progress.end()
    changed = not tally.stopped and source.total not in (None, tally.lines)
    if changed:
        notice(
            f"The input changed during the run: it had {source.total:,} lines at first, "
            f"{tally.lines:,} at the end."
        )
    _summarise(output, progress, tally)
    return status or (FAILED if tally.stopped or tally.errors or changed else 0)


def _left(source: Input, output: Output) -> Iterator[InputLine]:
    """The lines that have no result yet. Raises `SettingsError` where there are more results."""
    there = sum(1 for _ in itertools.islice(source.lines, output.lines))
    if there < output.lines:
        raise SettingsError(
            f"the output has {output.lines:,} lines, the input only {there:,}; --restart starts "
            "again"
        )
    return source.lines


def _summarise(output: Output, progress: Progress, tally: Tally) -> None:
    new, seconds = tally.lines - output.lines, progress.seconds
    before = f" ({output.lines:,} of them before)" if output.lines else ""
    cost = f"${tally.cost_usd:.4f}{' in this run' if output.lines else ''}"
    words = [f"{tally.lines:,} lines{before}", f"{tally.errors:,} errors", cost]
    words += [duration(seconds), rate_text(new / max(seconds, 1e-9))]
    if tally.unanswered and output.resumable:
        notice(
            f"{tally.unanswered:,} of the lines have an error because no model answered; only "
            "--restart answers them again, together with all others."
        )
    if tally.stopped:
        again = "; the same command continues from there" if output.resumable else ""
        notice(f"Stopped after line {tally.lines:,}: {tally.stopped}{again}.")
    notice(", ".join(words))


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _status(interrupt: KeyboardInterrupt) -> int:
    """The usual exit status: 128 plus the signal's number."""
    return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
