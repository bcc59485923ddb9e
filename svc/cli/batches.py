"""A run of `svc map` or `svc shadow` over its input, and its summary."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from svc import jsontext
from svc.batch import (
    BrokenInput,
    ChildLost,
    Input,
    InputLine,
    Output,
    Progress,
    Retried,
    Tally,
    Workers,
    duration,
    open_input,
    open_output,
    open_retried,
    rate_text,
    write_all,
)
from svc.cli import dry_run
from svc.cli.batch_options import Batch
from svc.cli.lines import Answerer, LineWork
from svc.cli.notices import FAILED, notice
from svc.cli.question_files import read_named
from svc.errors import SettingsError
from svc.jsontext import JsonObject
from svc.schemas import DecisionRequest


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
        if batch.dry_run:
            counted = dry_run.count(itertools.islice(source.lines, batch.limit))
            click.echo("\n".join(dry_run.told(counted, settled.models)))
            return 0
        answering = stack.enter_context(settled.start())
        digest = hashlib.sha256(jsontext.dumps(questions).encode()).hexdigest()
        identity = {"questions": digest, "input": source.sha256, **batch.form.identity}
        output = _output(batch, {**identity, **settled.identity, **record}, source)
        stack.enter_context(closing(output))
        status = _go(_work(batch, source, output), output, answering, settled.at_once)
    # An interrupted run has a higher status.
    if status <= FAILED:
        finish(settled.request)
    return status


def _output(batch: Batch, identity: JsonObject, source: Input) -> Output:
    # Questions of a recipe stand in no file that the output could be.
    read = [os.stat(path) for path in [batch.questions] if os.path.isfile(path)]
    inputs = (*read, source.status)
    if batch.retry_failed:
        return open_retried(batch.output, identity, inputs)
    return open_output(batch.output, identity, batch.restart, inputs)


@dataclass(frozen=True, slots=True)
class _Work:
    """The lines to answer, and how many results there are in the end, where that is known."""

    lines: Iterator[InputLine]
    total: int | None
    unit: str = "lines"


def _work(batch: Batch, source: Input, output: Output) -> _Work:
    """The lines of this run. Raises `SettingsError` where there are more results than lines."""
    if isinstance(output, Retried):
        return _Work(output.failed(source.lines), output.failures, "lines asked again")
    there = sum(1 for _ in itertools.islice(source.lines, output.lines))
    if there < output.lines:
        raise SettingsError(
            f"the output has {output.lines:,} lines, the input only {there:,}; --restart starts "
            "again"
        )
    if batch.limit is None:
        return _Work(source.lines, source.total)
    lines = itertools.islice(source.lines, max(0, batch.limit - output.lines))
    total = None if source.total is None else min(source.total, max(batch.limit, output.lines))
    return _Work(lines, total)


def _go(work: _Work, output: Output, answering: LineWork, threads: int) -> int:
    """Write all lines; the exit status."""
    tally, status = Tally(output.lines, output.errors), 0
    drawn = sys.stderr.isatty() and (output.resumable or not sys.stdout.isatty())
    waiting = answering.waiting
    progress = Progress(
        sys.stderr, work.total, output.lines, drawn, unit=work.unit, waiting=waiting
    )
    workers = Workers(work.lines, answering.work, threads, answering.cut, progress.refresh)
    try:
        with workers as results:
            write_all(results, output, progress, tally)
    except KeyboardInterrupt as interrupt:
        tally.stopped, status = "interrupted", _status(interrupt)
    except (ChildLost, BrokenInput) as error:
        tally.stopped = error.message
    finally:
        progress.end()
    changed = not tally.stopped and work.total not in (None, tally.lines)
    if changed:
        notice(
            f"The input changed during the run: it had {work.total:,} lines at first, "
            f"{tally.lines:,} at the end."
        )
    _summarise(work, output, progress, tally)
    return status or (FAILED if tally.stopped or tally.errors or changed else 0)


def _summarise(work: _Work, output: Output, progress: Progress, tally: Tally) -> None:
    new, seconds = tally.lines - output.lines, progress.seconds
    before = f" ({output.lines:,} of them before)" if output.lines else ""
    cost = f"${tally.cost_usd:.4f}{' in this run' if output.lines else ''}"
    words = [f"{tally.lines:,} {work.unit}{before}", f"{tally.errors:,} errors", cost]
    words += [duration(seconds), rate_text(new / max(seconds, 1e-9))]
    if tally.unanswered and output.resumable:
        notice(
            f"{tally.unanswered:,} of the lines have an error because no model answered; "
            "--retry-failed asks them again."
        )
    if tally.stopped:
        again = "; the same command continues from there" if output.resumable else ""
        notice(f"Stopped after {_done(work, tally)}: {tally.stopped}{again}.")
    notice(", ".join(words))


def _done(work: _Work, tally: Tally) -> str:
    return f"line {tally.lines:,}" if work.unit == "lines" else f"{tally.lines:,} {work.unit}"


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _status(interrupt: KeyboardInterrupt) -> int:
    """The usual exit status: 128 plus the signal's number."""
    return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
