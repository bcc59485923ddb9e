"""`svc probe`: how much the answers to questions depend on the way in which they are put."""

from __future__ import annotations

from contextlib import closing

import click

from svc import inprocess
from svc.cli import eval_options, probe_text
from svc.cli.completing import file_names, question_files
from svc.cli.notices import FAILED
from svc.cli.plans import ModelOptions, model_options
from svc.cli.probe_inputs import Questioned, read_questioned
from svc.evals import (
    ProbeJob,
    Told,
    WordingProbe,
    check_agreed,
    most_calls,
    probes,
    results_of,
    tell,
)
from svc.inprocess import InProcess

EXAMPLES = """\b
Examples:
  svc probe --demo --rows 5 evals/support-queue.json
  svc probe --demo --dry-run --input tickets.jsonl support-triage
  svc probe --model @openai/gpt-4.1-mini --input tickets.jsonl --json questions.json
"""


@click.command("probe", epilog=EXAMPLES)
@click.argument("name", metavar="QUESTIONS", shell_complete=question_files)
@click.option(
    "--input",
    "source",
    metavar="FILE",
    shell_complete=file_names,
    help="One JSON state a line; - for standard input.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Take the first N states.",
)
@click.option("--wordings", metavar="FILE", help="JSON object of question key to wordings.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--dry-run", is_flag=True, help="Say how many calls it takes, and make none.")
@click.option("--yes", is_flag=True, help="Make more than 200 model calls.")
@eval_options.concurrency
@model_options
def command(
    name: str,
    source: str | None,
    rows: int,
    wordings: str | None,
    as_json: bool,
    dry_run: bool,
    yes: bool,
    concurrency: int,
    asking: ModelOptions,
) -> None:
    """Ask questions in other ways, and count the answers that flip.

    QUESTIONS is a file, or the name of a recipe; a file holds a questions object, a whole request
    or an eval set, whose own rows are asked about unless --input names others.

    Each question is asked about each state as it stands, and then with one thing changed: a
    yes/no question denied, where 1 minus the probability is expected; a choice as one yes/no
    question for each option; in two other wordings; and with options or levels in the reversed
    order. Each is asked in one option order, on its own, without when, rules and depends_on.

    The table says how many answers were compared with that to the question as it stands, how many
    of them are others (flips), and how far the probability of one answer ranges over all ways, by
    mean and by the widest (spread).

    A file of wordings has, for a question, a list of instructions that mean the same; or an object
    with such a list as same, and with instructions that mean the opposite as denied.

    The exit status is 0 when everything was answered, 1 when not.
    """
    about = read_questioned(name, source, rows, wordings)
    with inprocess.engine(asking.demo, concurrency) as engine:
        ways = probes(about.fields, engine.settle(asking.fields), about.questions, about.words)
        calls = len(about.states) * sum(most_calls(one.request) for one in ways)
        click.echo(probe_text.announcement(about, ways, calls), err=as_json)
        if dry_run:
            return
        check_agreed(calls, yes, "--rows takes fewer states")
        told = _ask(about, ways, engine, concurrency)
    click.echo(probe_text.as_json(about, told) if as_json else probe_text.as_table(about, told))
    if any(one.error for _, one in told):
        raise click.exceptions.Exit(FAILED)


def _ask(
    about: Questioned, ways: list[WordingProbe], engine: InProcess, concurrency: int
) -> list[tuple[ProbeJob, Told]]:
    jobs = [
        ProbeJob(one, number, state) for one in ways for number, state in enumerate(about.states, 1)
    ]
    threads = min(engine.at_once(one.request, concurrency) for one in ways)

    def work(job: ProbeJob) -> Told:
        return tell(engine.decide, job)

    with closing(results_of(jobs, work, threads, engine.cut, unit="answers")) as results:
        return list(results)
