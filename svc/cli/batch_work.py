"""What a run over many lines still has to do, and where its results go."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from svc import jsontext
from svc.batch import (
    Input,
    InputLine,
    Output,
    Retried,
    new_run_id,
    open_output,
    open_retried,
    run_id,
)
from svc.cli.batch_options import Batch
from svc.errors import SettingsError
from svc.jsontext import JsonObject


def output_of(
    batch: Batch, questions: JsonObject, source: Input, identity: Mapping[str, Any]
) -> Output:
    """The output of a run, which `identity` tells from others beside its files.

    Raises `SettingsError`.
    """
    digest = hashlib.sha256(jsontext.dumps(questions).encode()).hexdigest()
    named = {"questions": digest, "input": source.sha256, **batch.form.identity, **identity}
    # Questions of a recipe stand in no file that the output could be.
    read = [os.stat(path) for path in [batch.questions] if os.path.isfile(path)]
    inputs = (*read, source.status)
    if batch.retry_failed:
        return open_retried(batch.output, named, inputs)
    return open_output(batch.output, named, batch.restart, inputs)


@dataclass(frozen=True, slots=True)
class Work:
    """The lines to answer, and how many results there are in the end, where that is known.

    `run` is a random id of all runs that write this output.
    """

    lines: Iterator[InputLine]
    total: int | None
    run: str
    unit: str = "lines"


def work_of(batch: Batch, source: Input, output: Output) -> Work:
    """The lines of this run. Raises `SettingsError` where there are more results than lines."""
    run = run_id(batch.output) if output.resumable else new_run_id()
    if isinstance(output, Retried):
        return Work(output.failed(source.lines), output.failures, run, "lines asked again")
    there = sum(1 for _ in itertools.islice(source.lines, output.lines))
    if there < output.lines:
        raise SettingsError(
            f"the output has {output.lines:,} lines, the input only {there:,}; --restart starts "
            "again"
        )
    if batch.limit is None:
        return Work(source.lines, source.total, run)
    lines = itertools.islice(source.lines, max(0, batch.limit - output.lines))
    total = None if source.total is None else min(source.total, max(batch.limit, output.lines))
    return Work(lines, total, run)
