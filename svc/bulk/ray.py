"""Ray Data: the rows of a dataset decided by running services. Needs the extra `ray`.

import ray
from svc.bulk.ray import decide
from svc.client import Choice

team = Choice("Which team should answer?", {"billing": "money", "tech": "faults"})
tickets = ray.data.read_parquet("tickets.parquet")
decided = decide(tickets, {"team": team}, state="text", row_id="id", url="http://10.0.0.5:7777")
decided.write_parquet("decided")
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from ray.data import ActorPoolStrategy, Dataset

from svc.bulk.columns import FIELDS, OF_ROWS, Kind
from svc.bulk.rows import Asking, Rows, asking, check_columns
from svc.bulk.survey import forecast_of, surveyed
from svc.client import Forecast, Question

# Rows that an actor is given at once. Its threads wait for the last of them, so there are many.
BATCH_ROWS = 1_024

# An actor waits for the service most of the time. Two of them leave half of two cores to Ray's
# own tasks, which would otherwise never come to read the rows that the actors wait for.
_CORES = 0.5

# The column of what is known of a part of a dataset.
_SURVEY = "survey"

_TYPES: Mapping[Kind, pa.DataType] = {
    "text": pa.string(),
    "number": pa.float64(),
    "integer": pa.int64(),
    "flag": pa.bool_(),
    "texts": pa.list_(pa.string()),
    "numbers": pa.list_(pa.float64()),
    "numbers by text": pa.map_(pa.string(), pa.float64()),
}


def decide(
    dataset: Dataset,
    questions: Mapping[str, Question],
    *,
    actors: int = 2,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> Dataset:
    """The dataset with a column for each question, and `decision_id`, `cost_usd` and `error`.

    `state` is the column, or the columns, that are asked about, and `row_id` the one that tells
    rows apart: a row that Ray gives to another actor, or that a second run within 24 hours asks
    again, gets the same decision. Further `options`, all by name:

    - `url`, one or several base URLs, over which rows are spread; `api_key`, one for all or a list
      of one for each; `project`.
    - `job`: rows of jobs with other names are decided anew.
    - `model`, and `more` for all other fields of a request, such as `{"mode": "verbal"}`.
    - `checkpoint`: a folder that all machines see. A row that it has is not asked again.
    - `threads`: requests that each of the `actors` has under way at once, 16.
    - `patience_s`: for how long services that answer nothing are waited for, 600.

    A row that fails has its failure in `error`, and null in the other new columns. Raises
    `ValueError` for what could not be asked at all.
    """
    asked = asking(questions, **options)
    if (known := dataset.columns(fetch_if_missing=False)) is not None:
        check_columns(known, asked)
    return dataset.map_batches(
        DecidingActor,
        fn_constructor_args=(asked,),
        batch_size=batch_rows,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ActorPoolStrategy(size=actors),
        num_cpus=_CORES,
    )


def forecast(dataset: Dataset, questions: Mapping[str, Question], **options: Any) -> Forecast:
    """What `decide` would take: calls, minutes and dollars; no model is asked.

    The options are those of `decide` without `actors` and `batch_rows`. The columns that they name
    are read once: rows that can be sent are counted, and a hundred, drawn by their ids, are shown
    to the first of the services. Raises `ValueError`, and `svc.client.ServiceError` where that does
    not answer.
    """
    asked = asking(questions, **options)
    if (known := dataset.columns(fetch_if_missing=False)) is not None:
        check_columns(known, asked)
    parts = dataset.map_batches(partial(_survey, asked), batch_format="pyarrow")
    return forecast_of(asked, (row[_SURVEY] for row in parts.iter_rows()))


def _survey(asked: Asking, batch: pa.Table) -> pa.Table:
    check_columns(batch.column_names, asked)
    return pa.table({_SURVEY: [surveyed(asked, _read(asked, batch))]})


def _read(asked: Asking, batch: pa.Table) -> dict[str, list[Any]]:
    """The values of the columns that are read."""
    return {name: _values(batch.column(name)) for name in asked.read}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; Arrow's own for one that Python cannot read, which is no JSON."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        # Texts that are no UTF-8, which Arrow does not look at, or dates after the year 9999.
        return [_value(one) for one in column]


def _value(one: pa.Scalar) -> Any:
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return one


class DecidingActor:
    """What Ray runs: it has no state that a restart could lose."""

    def __init__(self, asked: Asking) -> None:
        self._asked = asked
        self._rows = Rows(asked)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The batch with its new columns."""
        check_columns(batch.column_names, self._asked)
        decided = self._rows.decide(_read(self._asked, batch))
        for name, kind in column_types(self._asked.questions).items():
            batch = batch.append_column(name, pa.array([row[name] for row in decided], kind))
        return batch


def column_types(questions: Mapping[str, Question]) -> dict[str, pa.DataType]:
    """The new columns and their types, which are the same for all rows."""
    structs = {
        key: pa.struct([(name, _TYPES[kind]) for name, kind in FIELDS[question.type].items()])
        for key, question in questions.items()
    }
    return {**structs, **{name: _TYPES[kind] for name, kind in OF_ROWS.items()}}
