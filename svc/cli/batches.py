"""A run of `svc map` or `svc shadow` over its input, and its summary."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any, NoReturn

import click

from svc.batch import (
    Ahead,
    BrokenInput,
    ChildLost,
    Output,
    Progress,
    Tally,
    ahead_of,
    duration,
    open_input,
    rate_text,
    write_all,
)
from svc.cli import dry_run
from svc.cli.batch_options import Batch
from svc.cli.batch_work import Work, output_of, work_of
from svc.cli.lines import Answerer, LineWork
from svc.cli.notices import FAILED, notice
from svc.cli.question_files import read_named
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
    # Under nohup a run goes on when its terminal is closed.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)
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
    record: Mapping[str, Any],
) -> int:
    questions = read_named(batch.questions).fields
    with ExitStack() as stack:
        source = stack.enter_context(closing(open_input(batch.source, batch.form)))
        settled = answerer.settle(questions, batch.concurrency)
        if batch.dry_run:
            counted = dry_run.count(itertools.islice(source.lines, batch.limit))
            forecast = settled.forecast(counted.sample, counted.lines)
            click.echo("\n".join(dry_run.told(forecast, counted)))
            return 0
        answering = stack.enter_context(settled.start())
        output = output_of(batch, questions, source, {**settled.identity, **record})
        stack.enter_context(closing(output))
        # Of another input only the first line is compared with that of the run before.
        whole = source.total is not None
        ahead = ahead_of(batch.output, output.resumable and whole, batch.retry_failed)
        work = work_of(batch, source, output)
        status = _go(work, output, answering, settled.at_once, ahead)
    # An interrupted run has a higher status.
    if status <= FAILED:
        finish(settled.request)
    return status


def _go(work: Work, output: Output, answering: LineWork, threads: int, ahead: Ahead) -> int:
    """Write all lines; the exit status."""
    tally, status = Tally(output.lines, output.errors, output.lines), 0
    drawn = sys.stderr.isatty() and (output.resumable or not sys.stdout.isatty())
    progress = Progress(
        sys.stderr,
        work.total,
        output.lines,
        drawn,
        unit=work.unit,
        waiting=answering.waiting,
        steady=answering.steady,
    )
    try:
        with answering.over(work.lines, threads, progress, ahead, work.run) as results:
            write_all(results, output, progress, tally, answering.outage)
    except KeyboardInterrupt as interrupt:
        tally.stopped, status = "interrupted", _status(interrupt)
    except (ChildLost, BrokenInput) as error:
        tally.stopped = error.message
    finally:
        progress.end()
        ahead.end(tally.last)
    changed = not tally.stopped and work.total not in (None, tally.lines)
    if changed:
        notice(
            f"The input changed during the run: it had {work.total:,} lines at first, "
            f"{tally.lines:,} at the end."
        )
    _summarise(work, output, progress, tally, ahead)
    return status or (FAILED if tally.stopped or tally.errors or changed else 0)


def _summarise(work: Work, output: Output, progress: Progress, tally: Tally, ahead: Ahead) -> None:
    new, seconds = tally.lines - output.lines, progress.seconds
    before = f" ({output.lines:,} of them before)" if output.lines else ""
    kept, cost_usd = ahead.beyond(tally.last)
    cost = f"${tally.cost_usd + cost_usd:.4f}{' in this run' if output.lines else ''}"
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
    if kept:
        fate = "are kept for it" if ahead.lasts else "are lost"
        notice(f"{kept:,} lines behind it were answered, and {fate}.")
    notice(", ".join(words))


def _done(work: Work, tally: Tally) -> str:
    return f"line {tally.lines:,}" if work.unit == "lines" else f"{tally.lines:,} {work.unit}"


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _status(interrupt: KeyboardInterrupt) -> int:
    """The usual exit status: 128 plus the signal's number."""
    return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
