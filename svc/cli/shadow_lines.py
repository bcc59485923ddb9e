"""The lines of `svc shadow`: a state with its labels, and the answers compared with these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from svc.batch import AnswerLine, LineAnswer, Record, check_labels, compare
from svc.cli.batch_options import Batch
from svc.cli.label_files import label_of
from svc.cli.question_files import read_named
from svc.errors import InvalidRequest
from svc.inprocess import InProcess
from svc.questions import Question
from svc.schemas import DecisionRequest, with_state


def in_columns(batch: Batch) -> bool:
    """Whether labels stand in columns of their own."""
    return batch.form.tabular or bool(batch.form.columns)


def with_label_columns(batch: Batch) -> Batch:
    """The batch whose columns of labels are not asked about. Raises `SettingsError`."""
    questions = read_named(batch.questions).questions
    return replace(batch, form=replace(batch.form, labels=tuple(questions)))


def answering(name: str, engine: InProcess, request: DecisionRequest) -> AnswerLine:
    """The function that answers a line, whose labels stand in the field `name`."""
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
