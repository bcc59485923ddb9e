"""`svc tune`: the best way to ask one question, found on its eval set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from svc import files, inprocess, jsontext
from svc.cli import eval_options
from svc.cli.completing import set_names
from svc.cli.lint_text import findings_text
from svc.cli.plans import demo_option, model_ids
from svc.cli.tables import echo_json, json_option
from svc.cli.tune_text import announcement, tables, tune_json, verdict
from svc.cli.wording_files import read_wordings
from svc.errors import SettingsError
from svc.evals import (
    FREE_CALLS,
    STYLES,
    SUFFIX,
    EvalSet,
    Found,
    Search,
    candidates_for,
    check_agreed,
    check_both_sides,
    examples,
    hold_out,
    load_sets,
    search,
    split,
)
from svc.inprocess import DEMO_MODEL, InProcess
from svc.limits import COUNCIL
from svc.phrases import reason
from svc.wording import lint

# The fewest rows of a set: 4 rows are for examples, and these are at most half.
FEWEST_ROWS = 8
EXAMPLES = """\b
Examples:
  svc tune --demo --per-set 16 --yes support-queue
  svc tune --models @openai/gpt-4.1-mini,@openai/gpt-4o --yes --out spam.json spam
  svc tune --models @openai/gpt-4.1-mini --propose 4 --wordings mine.json --yes spam
  jq '. + {state: "You have won!"}' spam.json | curl -s localhost:7777/v1/decide -d @-
"""


@click.command("tune", epilog=EXAMPLES)
@click.argument("name", metavar="SET", shell_complete=set_names)
@eval_options.folder
@click.option("--models", metavar="A,B", help="Models to try, the cheapest first.")
@eval_options.per_set
@click.option("--wordings", metavar="FILE", help="JSON list of other instructions to try.")
@click.option(
    "--propose",
    type=click.IntRange(0, len(STYLES)),
    default=0,
    show_default=True,
    metavar="N",
    help="Have the last model write N other instructions to try.",
)
@click.option(
    "--out",
    default="tuned.json",
    show_default=True,
    metavar="FILE",
    help="Where the best candidate is written.",
)
@click.option("--yes", is_flag=True, help=f"Make more than {FREE_CALLS} model calls.")
@json_option
@eval_options.concurrency
@demo_option
def command(
    name: str,
    folder: str,
    models: str | None,
    per_set: int | None,
    wordings: str | None,
    propose: int,
    out: str,
    yes: bool,
    as_json: bool,
    concurrency: int,
    demo: bool,
) -> None:
    """Find the best way to ask the question of an eval set.

    The plans are each model alone and, with two or more, all of them as a council and as cascades
    that escalate below 0.7, 0.8 and 0.9. Each plan is tried in mode auto and verbal, in both
    option orders and in one, with the question as it stands and with four examples. These are 8
    candidates for each plan, 4 where the type takes no examples.

    Then the instructions of FILE, and those that a model proposes, are tried with the best of
    these. Proposals that say the same twice, or have a fault that svc lint finds, are left out;
    what it finds in the question itself is printed first.

    The rows are shuffled, always in the same way, and split once, those with the same state
    together: examples come from a fifth of them, at least 4 and at most half; the candidates are
    tested on the rest. They are ranked by accuracy, where a failed row counts as wrong, then
    calibration error (ECE), then cost. Where there are 20 rows of each answer, half of the rest
    has no say in that and judges the winner; with fewer it is not judged: the accuracy on rows
    that chose it is too high. A yes/no question with fewer than 10 rows of either answer to test
    on is refused before any model is asked.

    The file of --out gets model, mode, debias and questions of the best one as fields of
    POST /v1/decide.
    """
    ids = _ids(models)
    _check_out(out, [f"{folder}/{name}{SUFFIX}", *([wordings] if wordings else [])])
    others = read_wordings(wordings) if wordings else []
    (eval_set,) = [one.sampled(per_set) for one in load_sets(folder, [name])]
    if len(eval_set.rows) < FEWEST_ROWS:
        raise SettingsError(
            f"{name} has {len(eval_set.rows)} rows to tune on; it takes at least {FEWEST_ROWS}"
        )
    with inprocess.engine(demo, concurrency) as engine:
        what = _search(eval_set, _settled(engine, ids, demo), others, propose)
        for line in [*findings_text(lint(eval_set.request({}).questions)), *announcement(what)]:
            click.echo(line, err=as_json)
        check_agreed(what.most_calls, yes, "--per-set takes fewer rows")
        found = search(what, engine, concurrency)
    _finish(found, eval_set, out, as_json)


def _search(eval_set: EvalSet, models: list[str], wordings: list[str], propose: int) -> Search:
    pool, rows = split(eval_set.rows)
    (question,) = eval_set.request({}).questions.values()
    check_both_sides(question, rows, eval_set.name)
    tried = candidates_for(eval_set, models, examples(pool))
    for text in wordings:
        eval_set.request({}, instructions=text)
    return Search(eval_set, pool, hold_out(question, rows), tried, wordings, propose, models[-1])


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


def _check_out(out: str, read: Sequence[str]) -> None:
    """Raise `UsageError` or `SettingsError` where the result could not be written in the end.

    It may not take the place of files that are `read`.
    """
    if Path(out).resolve() in [Path(one).resolve() for one in read]:
        raise click.UsageError("--out names a file that is read, the eval set or the wordings.")
    try:
        files.check_writable(Path(out))
    except OSError as error:
        raise SettingsError(f"--out {out!r}: {reason(error)}") from None


def _finish(found: Found, eval_set: EvalSet, out: str, as_json: bool) -> None:
    best, figures = found.winner
    if as_json:
        echo_json(tune_json(found))
    else:
        click.echo("\n".join(["", *tables(found)]))
    if not figures.rows:
        raise SettingsError("no candidate gave any answer (SVC_LOG_LEVEL=warning tells more)")
    text = jsontext.dumps(best.fields(eval_set.name))
    try:
        files.replace(Path(out), f"{text}\n")
    except OSError as error:
        # It was paid for.
        click.echo(f"What was to be written:\n{text}", err=True)
        raise SettingsError(f"--out {out!r}: {reason(error)}") from None
    click.echo("\n".join(["", *verdict(found, out)]), err=as_json)
