"""`svc tune`: the best way to ask one question, found on its eval set."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from svc import files, inprocess, jsontext
from svc.batch import FAILURES
from svc.cli import eval_options
from svc.cli.plans import demo_option, model_ids
from svc.cli.tables import decimal, dollars, milliseconds, percent, span, table
from svc.errors import SettingsError
from svc.evals import (
    SUFFIX,
    Candidate,
    EvalRow,
    EvalSet,
    Figures,
    Scored,
    accuracy,
    asked,
    candidates_for,
    examples,
    figures_of,
    load_sets,
    plan_text,
    ranked,
    score,
    split,
    wilson,
)
from svc.inprocess import DEMO_MODEL, InProcess
from svc.limits import COUNCIL
from svc.phrases import reason

# The fewest rows of a set: 4 rows are for examples, and these are at most half.
FEWEST_ROWS = 8
# More model calls than these need --yes.
FREE_CALLS = 200
_HEAD = (
    *("model", "mode", "orders", "examples", "accuracy", "95% interval", "ECE"),
    *("cost", "median", "failed"),
)
# The places of the columns that hold words.
_TEXT = {0, 1, 2}
EXAMPLES = """\b
Examples:
  svc tune --demo --per-set 16 --yes support-queue
  svc tune --models @openai/gpt-4.1-mini,@openai/gpt-4o --yes --out spam.json spam
  jq '. + {state: "You have won!"}' spam.json | curl -s localhost:7777/v1/decide -d @-
"""


@click.command("tune", epilog=EXAMPLES)
@click.argument("name", metavar="SET")
@eval_options.folder
@click.option("--models", metavar="A,B", help="Models to try, the cheapest first.")
@eval_options.per_set
@click.option(
    "--out",
    default="tuned.json",
    show_default=True,
    metavar="FILE",
    help="Where the best candidate is written.",
)
@click.option("--yes", is_flag=True, help=f"Make more than {FREE_CALLS} model calls.")
@eval_options.concurrency
@demo_option
def command(
    name: str,
    folder: str,
    models: str | None,
    per_set: int | None,
    out: str,
    yes: bool,
    concurrency: int,
    demo: bool,
) -> None:
    """Find the best way to ask the question of an eval set.

    The plans are each model alone and, with two or more, all of them as a council and as cascades
    that escalate below 0.7, 0.8 and 0.9. Each plan is tried in mode auto and verbal, in both
    option orders and in one, with the question as it stands and with four examples. These are 8
    candidates for each plan, 4 where the type takes no examples.

    The rows are shuffled, always in the same way, and split once: examples come from a fifth of
    them, at least 4 and at most half; the candidates are tested on the rest. They are ranked by
    accuracy, where a failed row counts as wrong, then calibration error (ECE), then cost.

    FILE gets model, mode, debias and questions of the best one as fields of POST /v1/decide.
    """
    ids = _ids(models)
    _check_out(out, Path(folder, f"{name}{SUFFIX}"))
    (eval_set,) = [one.sampled(per_set) for one in load_sets(folder, [name])]
    if len(eval_set.rows) < FEWEST_ROWS:
        raise SettingsError(
            f"{name} has {len(eval_set.rows)} rows to tune on; it takes at least {FEWEST_ROWS}"
        )
    pool, rows = split(eval_set.rows)
    with inprocess.engine(demo, concurrency) as engine:
        tried = candidates_for(eval_set, _settled(engine, ids, demo), examples(pool))
        _announce(eval_set, tried, pool, rows, yes)
        result = _try(tried, rows, engine, concurrency)
    _finish(result, eval_set, out)


def _ids(models: str | None) -> list[str] | None:
    """The ids of --models. Raises `UsageError`."""
    if models is None:
        return None
    ids = model_ids(models)
    if len(set(ids)) < len(ids) or not all(ids):
        raise click.UsageError("--models must be different ids, separated by commas.")
    if len(ids) > COUNCIL[1]:
        raise click.UsageError(f"--models takes at most {COUNCIL[1]}, the size of a council.")
    return ids


def _settled(engine: InProcess, ids: list[str] | None, demo: bool) -> list[str]:
    """The ids to try, whose providers are all configured. Raises `ApiError`."""
    if ids is not None:
        engine.settle({"model": ids})
        return ids
    return [str(engine.settle({"model": DEMO_MODEL} if demo else {})["model"])]


def _check_out(out: str, read: Path) -> None:
    """Raise `UsageError` or `SettingsError` where the result could not be written in the end."""
    if Path(out).resolve() == read.resolve():
        raise click.UsageError("--out names the eval set.")
    try:
        files.check_writable(Path(out))
    except OSError as error:
        raise SettingsError(f"--out {out!r}: {reason(error)}") from None


def _announce(
    eval_set: EvalSet,
    tried: Sequence[Candidate],
    pool: Sequence[EvalRow],
    rows: Sequence[EvalRow],
    yes: bool,
) -> None:
    """Print how many calls it needs. Raises `SettingsError` when these need --yes."""
    calls = len(rows) * sum(candidate.most_calls for candidate in tried)
    click.echo(
        f"{eval_set.name}: {len(pool) + len(rows):,} rows, {len(rows):,} to test on and "
        f"{len(pool):,} to take examples from\n"
        f"{len(tried):,} candidates, at most {calls:,} model calls"
    )
    if calls > FREE_CALLS and not yes:
        raise SettingsError(
            f"{calls:,} model calls are more than {FREE_CALLS}; --yes makes them, --per-set takes "
            "fewer rows"
        )


@dataclass(frozen=True, slots=True)
class _Trial:
    """A row for the candidate at this place of the list."""

    place: int
    candidate: Candidate
    row: EvalRow


def _try(
    tried: Sequence[Candidate], rows: Sequence[EvalRow], engine: InProcess, concurrency: int
) -> list[tuple[Candidate, Figures]]:
    """Every candidate with its figures, the best first. Raises `QuotaSpent`."""
    jobs = [_Trial(place, one, row) for place, one in enumerate(tried) for row in rows]
    threads = min(engine.at_once(one.request, concurrency) for one in tried)
    scored: list[list[Scored]] = [[] for _ in tried]
    # For each candidate, how many rows failed in a row.
    failures = [0] * len(tried)

    def work(job: _Trial) -> Scored:
        if failures[job.place] >= FAILURES:
            return Scored(error=f"not tried after {FAILURES} failures in a row")
        return score(engine.decide, job.candidate.request, job.row)

    with closing(asked(jobs, work, threads, engine.cut)) as results:
        for job, one in results:
            scored[job.place].append(one)
            if failures[job.place] < FAILURES:
                failures[job.place] = failures[job.place] + 1 if one.error else 0
    return ranked(zip(tried, map(figures_of, scored), strict=True))


def _finish(result: Sequence[tuple[Candidate, Figures]], eval_set: EvalSet, out: str) -> None:
    best, its_figures = result[0]
    click.echo("\n".join(["", *_table(result)]))
    if not its_figures.rows:
        raise SettingsError("no candidate gave any answer (SVC_LOG_LEVEL=warning shows more)")
    text = jsontext.dumps(best.fields(eval_set.name))
    try:
        files.replace(Path(out), f"{text}\n")
    except OSError as error:
        raise SettingsError(f"--out {out!r}: {reason(error)}") from None
    low, _ = wilson(its_figures.right, its_figures.rows + its_figures.failed)
    close = sum(accuracy(other) >= low for _, other in result[1:])
    click.echo(f"\nWrote the first one to {out}. {_caution(close)}")


def _caution(close: int) -> str:
    if not close:
        return "No other candidate is within the 95% interval of its accuracy."
    verb = "is" if close == 1 else "are"
    return (
        f"{close} more {verb} within the 95% interval of its accuracy: more rows would show the "
        "difference better."
    )


def _table(result: Sequence[tuple[Candidate, Figures]]) -> list[str]:
    rows = []
    for one, its_figures in result:
        rows.append(
            (
                plan_text(one.model),
                one.mode,
                "both" if one.debias else "one",
                str(one.examples),
                percent(accuracy(its_figures)),
                span(wilson(its_figures.right, its_figures.rows + its_figures.failed)),
                decimal(its_figures.ece),
                dollars(its_figures.cost_usd),
                milliseconds(its_figures.median_ms),
                f"{its_figures.failed:,}",
            )
        )
    return table(_HEAD, rows, _TEXT)
