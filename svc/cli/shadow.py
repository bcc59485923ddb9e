"""`svc shadow`: compares answers with the labels that people gave."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from svc.batch import STANDARD, AnswerLine, LineAnswer, add_up, check_labels, compare, open_input
from svc.cli.agreement_report import excerpt, report
from svc.cli.batches import Batch, batch_options, run
from svc.cli.lines import InProcessAnswerer
from svc.cli.plans import ModelOptions, model_options
from svc.errors import InvalidRequest
from svc.inprocess import InProcess
from svc.schemas import DecisionRequest, with_state

EXAMPLES = """\b
Examples:
  svc shadow --demo -q questions.json -o shadow.jsonl labelled.jsonl
  svc shadow --cascade A,B -q questions.json -o shadow.jsonl labelled.jsonl
  svc shadow --compare human --examples 20 -q questions.json -o shadow.jsonl labelled.jsonl
"""


@click.command("shadow", epilog=EXAMPLES)
@batch_options
@click.option(
    "--compare",
    "name",
    default="labels",
    show_default=True,
    metavar="FIELD",
    help="Field of the input lines that holds the answers to compare with.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="Disagreements shown for each question.",
)
@model_options
def command(batch: Batch, asking: ModelOptions, name: str, examples: int) -> None:
    """Compare answers with the labels that people gave.

    Each line of INPUT is an object such as

    \b
      {"state": "My parcel is late.", "labels": {"urgent": true, "queue": "shipping"}}

    with a label as POST /v1/feedback takes it: an option key, a level's index, true or false, a
    list of option keys, or the value. A question may be without a label. The output has a line for
    each line of INPUT, as svc map writes it, with `compared`: label, answer, whether they agree,
    and the answer's confidence. The same command continues after any interruption; of input from a
    pipe only the first line is compared.

    A report at the end shows for each question how often the answers agree with the labels, how
    well their confidence is calibrated, what could be automated at which threshold, which answers
    are confused with which, and the surest disagreements.
    """
    if batch.output == STANDARD:
        raise click.UsageError("-o must name a file, because the report at the end reads it again.")
    run(
        batch,
        InProcessAnswerer(asking, partial(_answering, name)),
        partial(_report, batch, examples),
        command="shadow",
        compare=name,
    )


def _answering(name: str, engine: InProcess, request: DecisionRequest) -> AnswerLine:
    return partial(_answer, name, engine, request)


def _answer(name: str, engine: InProcess, request: DecisionRequest, line: Any) -> LineAnswer:
    if not isinstance(line, dict) or "state" not in line or name not in line:
        raise InvalidRequest(f"the line must be an object with state and {name}")
    labels = check_labels(request.questions, line[name], name)
    decision = engine.decide(with_state(request, line["state"]))
    compared = compare(request.questions, labels, decision)
    comparisons = {key: comparison.line() for key, comparison in compared.items()}
    return LineAnswer({**decision.response(), "compared": comparisons}, decision.cost_usd)


def _report(batch: Batch, examples: int, request: DecisionRequest) -> None:
    with open(batch.output, "rb") as lines:
        agreements = add_up(lines, request.questions, examples)
    shown = {number for agreement in agreements.values() for number, *_ in agreement.examples}
    excerpts = _excerpts(batch.source, shown)
    for key, agreement in agreements.items():
        click.echo("\n".join(["", *report(key, agreement, excerpts)]))


def _excerpts(path: str, numbers: set[int]) -> dict[int, str]:
    """The states of some lines, cut short; none where the input can be read only once."""
    if path == STANDARD or not Path(path).is_file():
        return {}
    with closing(open_input(path)) as source:
        chosen = (line for line in source.lines if line.number in numbers)
        return {line.number: excerpt(line.parse()["state"]) for line in chosen}
