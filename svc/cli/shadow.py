"""`svc shadow`: compares answers with the labels that people gave."""

from __future__ import annotations

from functools import partial

import click

from svc.batch import STANDARD, TEXT
from svc.cli.batch_options import Batch, batch_options
from svc.cli.batches import run
from svc.cli.lines import InProcessAnswerer
from svc.cli.plans import ModelOptions, model_options
from svc.cli.shadow_lines import answering, in_columns, with_label_columns
from svc.cli.shadow_report import show_report
from svc.cli.tables import json_option

# The field of labels, unless another one is named.
LABELS = "labels"

EXAMPLES = """\b
Examples:
  svc shadow --demo -q questions.json -o shadow.jsonl labelled.jsonl
  svc shadow --demo -q questions.json --column body -o shadow.jsonl labelled.csv
  svc shadow --cascade A,B -q questions.json -o shadow.jsonl labelled.jsonl
  svc shadow --compare human --examples 20 -q questions.json -o shadow.jsonl labelled.jsonl
"""


@click.command("shadow", epilog=EXAMPLES)
@batch_options
@click.option(
    "--compare",
    "name",
    default=LABELS,
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
@json_option
@model_options
def command(batch: Batch, asking: ModelOptions, name: str, examples: int, as_json: bool) -> None:
    """Compare answers with the labels that people gave.

    Each line of INPUT is an object such as

    \b
      {"state": "My parcel is late.", "labels": {"urgent": true, "queue": "shipping"}}

    with a label as POST /v1/feedback takes it: an option key, a level's index, true or false, a
    list of option keys, or the value. A question may be without a label. In a table, and with
    --column, a label stands in the column or field that is called like its question, and the other
    columns are asked about, or those of --column. The output has a line for
    each line of INPUT, as svc map writes it, with `compared`: label, answer, whether they agree,
    and the answer's confidence. The same command continues after any interruption; of input from a
    pipe only the first line is compared.

    A report at the end shows for each question how often the answers agree with the labels, how
    well their confidence is calibrated, what could be automated at which threshold, which answers
    are confused with which, and the surest disagreements.
    """
    if batch.output == STANDARD:
        raise click.UsageError("-o must name a file, because the report at the end reads it again.")
    if batch.form.format == TEXT:
        raise click.UsageError("lines of text have no labels.")
    if in_columns(batch):
        if name != LABELS:
            raise click.UsageError("--compare does not go with columns: each has a question's key.")
        batch = with_label_columns(batch)
    run(
        batch,
        InProcessAnswerer(asking, partial(answering, name)),
        partial(show_report, batch, examples, as_json),
        command="shadow",
        compare=name,
    )
