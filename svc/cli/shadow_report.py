"""The report at the end of `svc shadow`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from svc.batch import STANDARD, Record, add_up, open_input
from svc.cli.agreement_report import excerpt, report, report_json
from svc.cli.batch_options import Batch
from svc.cli.tables import echo_json
from svc.schemas import DecisionRequest


def show_report(batch: Batch, examples: int, as_json: bool, request: DecisionRequest) -> None:
    """Print what the output says of each question."""
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
