"""`svc bench`: how well models answer questions with known true answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import click

from svc import inprocess
from svc.batch import FAILURES
from svc.cli import eval_options
from svc.cli.completing import set_names
from svc.cli.notices import FAILED, INTERRUPTED, notice
from svc.cli.plans import ModelOptions, model_options
from svc.cli.score_table import score_json, score_table
from svc.cli.tables import echo_json, json_option
from svc.errors import InvalidRequest, QuotaSpent, SettingsError
from svc.evals import EvalRow, EvalSet, Run, Saved, Scored, load_sets, results_of, runs, score
from svc.inprocess import InProcess
from svc.schemas import DecisionRequest

EXAMPLES = """\b
Examples:
  svc bench --demo
  svc bench --model @openai/gpt-4.1-mini --per-set 20 --save runs.jsonl
  svc bench --cascade A,B --escalate-below 0.9 --save runs.jsonl support-queue phishing
  svc report runs.jsonl
"""


@click.command("bench", epilog=EXAMPLES)
@click.argument("sets", nargs=-1, metavar="[SETS]...", shell_complete=set_names)
@eval_options.folder
@eval_options.per_set
@click.option("--save", metavar="FILE", help="Append scored rows, and skip those already in it.")
@json_option
@eval_options.concurrency
@model_options
def command(
    asking: ModelOptions,
    sets: Sequence[str],
    folder: str,
    per_set: int | None,
    save: str | None,
    as_json: bool,
    concurrency: int,
) -> None:
    """Score models on eval sets.

    A set is a file DIR/SET.json of the form

    \b
      {"question": {...}, "rows": [{"state": ..., "label": ...}, ...]}

    with a question as POST /v1/decide takes it and labels as POST /v1/feedback takes them. All
    sets of the folder are scored unless some are named. The table shows the share of right answers
    with its 95% interval, how well the probabilities match reality (ECE, Brier score), the share
    that could be automated at a confidence of 0.9 and how many of these are right, cost and
    latency.

    With --save the same command continues after any interruption: rows that are in FILE with the
    same question, label, models, mode and debias are not scored again, unless they failed. The
    command stops when SVC_DAILY_LIMIT is reached, or after ten failures in a row.

    The exit status is 0 when every row was answered, 1 when not, 2 for a wrong command line and
    130 after Ctrl-C.
    """
    chosen = [eval_set.sampled(per_set) for eval_set in load_sets(folder, sets)]
    with ExitStack() as stack:
        engine = stack.enter_context(inprocess.engine(asking.demo, concurrency))
        saved = stack.enter_context(runs.opened(save)) if save else None
        bench = _prepared(engine, asking, chosen, saved)
        status = _go(bench, engine, concurrency)
    if as_json:
        echo_json(score_json(bench.run, bench.by_set()))
    else:
        click.echo("\n".join(score_table(bench.run, bench.by_set())))
    if status:
        raise click.exceptions.Exit(status)


@dataclass(frozen=True, slots=True)
class _AskedRow:
    """A row, and the request about it without its state."""

    request: DecisionRequest
    eval_set: EvalSet
    row: EvalRow


@dataclass(frozen=True, slots=True)
class _Bench:
    """The rows of a run, and the scores that are known so far, by set and row."""

    run: Run
    jobs: list[_AskedRow]
    saved: Saved | None
    scored: dict[tuple[str, int], Scored] = field(default_factory=dict)

    def by_set(self) -> dict[str, list[Scored]]:
        """The known scores by set; a set that was not reached has none."""
        scores: dict[str, list[Scored]] = {job.eval_set.name: [] for job in self.jobs}
        for job in self.jobs:
            if (place := (job.eval_set.name, job.row.number)) in self.scored:
                scores[job.eval_set.name].append(self.scored[place])
        return scores

    def add(self, job: _AskedRow, scored: Scored) -> None:
        self.scored[job.eval_set.name, job.row.number] = scored

    def keep(self, job: _AskedRow, scored: Scored) -> None:
        """Save a row, where rows are saved."""
        if self.saved is not None:
            self.saved.add(self.run, job.eval_set, job.row, scored)


def _prepared(
    engine: InProcess, asking: ModelOptions, sets: Sequence[EvalSet], saved: Saved | None
) -> _Bench:
    fields = engine.settle(asking.fields)
    run = Run(config=engine.config, **fields)
    jobs = []
    for eval_set in sets:
        try:
            request = eval_set.request(fields)
        except InvalidRequest as error:
            notice(f"{eval_set.name} is left out: {error.message}")
        else:
            jobs += [_AskedRow(request, eval_set, row) for row in eval_set.rows]
    if not jobs:
        raise SettingsError("no eval set can be asked in this way")
    bench = _Bench(run, jobs, saved)
    for job in jobs:
        if saved and (scored := saved.find(run, job.eval_set, job.row)):
            bench.add(job, scored)
    return bench


def _go(bench: _Bench, engine: InProcess, concurrency: int) -> int:
    """Score the rows that have no score yet; returns the exit status."""
    left = [job for job in bench.jobs if (job.eval_set.name, job.row.number) not in bench.scored]
    if known := len(bench.jobs) - len(left):
        notice(f"{known:,} of {len(bench.jobs):,} rows were scored before")
    threads = min(engine.at_once(job.request, concurrency) for job in bench.jobs)
    stopped, status = "", FAILED
    try:
        stopped = _ask(bench, left, engine, threads)
    except QuotaSpent as error:
        stopped = error.message
    except KeyboardInterrupt:
        stopped, status = "interrupted", INTERRUPTED
    if stopped:
        again = "; the same command continues from there" if bench.saved else ""
        notice(f"Stopped after {len(bench.scored):,} rows: {stopped}{again}.")
    failed = any(scored.error for scored in bench.scored.values())
    return status if stopped or failed else 0


def _ask(bench: _Bench, jobs: Sequence[_AskedRow], engine: InProcess, threads: int) -> str:
    """Score the jobs; returns why it stopped before the last one, or an empty text."""

    def work(job: _AskedRow) -> Scored:
        scored = score(engine.decide, job.request, job.row)
        if not scored.error:
            # It is paid for, so it is saved at once and does not wait for the rows before it.
            bench.keep(job, scored)
        return scored

    failures = 0
    with closing(results_of(jobs, work, threads, engine.cut)) as results:
        for job, scored in results:
            bench.add(job, scored)
            failures = failures + 1 if scored.error else 0
            if scored.error:
                bench.keep(job, scored)
            if failures == FAILURES:
                return f"{FAILURES} failures in a row (SVC_LOG_LEVEL=warning shows more)"
    return ""
