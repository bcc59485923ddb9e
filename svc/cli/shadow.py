"""`svc shadow`: compares answers with the labels that people gave."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from svc.batch import (
    STANDARD,
    TEXT,
    AnswerLine,
    LineAnswer,
    Record,
    add_up,
    check_labels,
    compare,
    open_input,
)
from svc.cli.agreement_report import excerpt, report, report_json
from svc.cli.batch_options import Batch, batch_options
from svc.cli.batches import run
from svc.cli.label_files import label_of
from svc.cli.lines import InProcessAnswerer
from svc.cli.plans import ModelOptions, model_options
from svc.cli.question_files import read_named
from svc.cli.tables import echo_json, json_option
from svc.errors import InvalidRequest
from svc.inprocess import InProcess
from svc.questions import Question
from svc.schemas import DecisionRequest, with_state

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
    if _in_columns(batch):
        if name != LABELS:
            raise click.UsageError("--compare does not go with columns: each has a question's key.")
        questions = read_named(batch.questions).questions
        batch = replace(batch, form=replace(batch.form, labels=tuple(questions)))
    run(
        batch,
        InProcessAnswerer(asking, partial(_answering, name)),
        partial(_report, batch, examples, as_json),
        command="shadow",
        compare=name,
    )


def _in_columns(batch: Batch) -> bool:
    """Whether labels stand in columns of their own."""
    return batch.form.tabular or bool(batch.form.columns)


def _answering(name: str, engine: InProcess, request: DecisionRequest) -> AnswerLine:
    return partial(_answer, name, engine, request)


def _answer(name: str, engine: InProcess, request: DecisionRequest, record: Record) -> LineAnswer:
    state, given = _labelled(name, request.questions, record)
    labels = check_labels(request.questions, given, name)
    decision = engine.decide(replace(with_state(request, state), ref=record.ref))
    compared = compare(request.questions, labels, decision)
    comparisons = {key: comparison.line() for key, comparison in compared.items()}
    return LineAnswer({**decision.response(), "compared": comparisons}, decision.cost_usd)


def _labelled(name: str, questions: Mapping[str, Question], record: Record) -> tuple[Any, Any]:
    """The state and the labels of a record. Raises `InvalidRequest`."""
    if record.fields is not None:
        cells = {key: record.fields.get(key) for key in questions}
        given = {key: cell for key, cell in cells.items() if cell not in (None, "")}
        return record.value, {key: _label(cell, questions[key]) for key, cell in given.items()}
    line = record.value
    if not isinstance(line, dict) or "state" not in line or name not in line:
        raise InvalidRequest(f"the line must be an object with state and {name}")
    return line["state"], line[name]


def _label(cell: Any, question: Question) -> Any:
    return label_of(cell, question) if isinstance(cell, str) else cell


def _report(batch: Batch, examples: int, as_json: bool, request: DecisionRequest) -> None:
    with open(batch.output, "rb") as lines:
        agreements = add_up(lines, request.questions, examples)
    if as_json:
        echo_json({key: report_json(agreement) for key, agreement in agreements.items()})
        return
    shown = {number for agreement in agreements.values() for number, *_ in agreement.examples}
    excerpts = _excerpts(batch, shown)
    for key, agreement in agreements.items():
        click.echo("\n".join(["", *report(key, agreement, excerpts)]))


def _excerpts(batch: Batch, numbers: set[int]) -> dict[int, str]:
    """The states of some lines, cut short; none where the input can be read only once."""
    if batch.source == STANDARD or not Path(batch.source).is_file():
        return {}
    with closing(open_input(batch.source, batch.form)) as source:
        chosen = [line for line in source.lines if line.number in numbers]
    return {line.number: excerpt(_state(line.read())) for line in chosen}


def _state(record: Record) -> Any:
    return record.value["state"] if record.fields is None else record.value
