"""Spark: the rows of a frame decided by running services. Needs the extra `spark`.

from svc.bulk.spark import decide, svc_classify
from svc.client import Choice

team = Choice("Which team should answer?", {"billing": "money", "tech": "faults"})
decided = decide(tickets, {"team": team}, state="text", row_id="id", url="http://10.0.0.5:7777")

labels = {"billing": "money", "tech": "faults"}
tickets.select(svc_classify("text", labels, url="http://10.0.0.5:7777").response)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from svc.bulk.columns import ERROR, FIELDS, OF_ROWS, Kind
from svc.bulk.rows import Asking, Rows, asking, check_columns
from svc.bulk.survey import forecast_of, surveyed
from svc.client import Choice, Forecast, Question

# What `svc_classify` asks unless told otherwise.
INSTRUCTIONS = "Which of these labels fits the text best?"

# The columns of the question and of the text that `svc_classify` asks by.
_LABEL, _CONTENT = "label", "content"

# The column of what is known of a part of a frame.
_SURVEY = "survey"

_TYPES: Mapping[Kind, DataType] = {
    "text": StringType(),
    "number": DoubleType(),
    "integer": LongType(),
    "flag": BooleanType(),
    "texts": ArrayType(StringType()),
    "numbers": ArrayType(DoubleType()),
    "numbers by text": MapType(StringType(), DoubleType()),
}
_CLASSIFIED = (
    StructType()
    .add("response", StringType())
    .add("confidence", DoubleType())
    .add("error_message", StringType())
)

Deciding = Callable[[Iterable[pd.DataFrame]], Iterator[pd.DataFrame]]


def decide(frame: DataFrame, questions: Mapping[str, Question], **options: Any) -> DataFrame:
    """The frame with a column for each question, and `decision_id`, `cost_usd` and `error`.

    The options are those of `svc.bulk.ray.decide`, without `actors` and `batch_rows`: `state`,
    `row_id`, `url`, `api_key`, `project`, `job`, `model`, `more`, `checkpoint`, `threads`, which
    counts for each task, and `patience_s`. Raises `ValueError` for what could not be asked at all.
    """
    check_columns(frame.columns, asking(questions, **options))
    return frame.mapInPandas(deciding(questions, **options), schema(frame.schema, questions))


def forecast(frame: DataFrame, questions: Mapping[str, Question], **options: Any) -> Forecast:
    """What `decide` would take: calls, minutes and dollars; no model is asked.

    The options are those of `decide`. The columns that they name are read once: rows that can be
    sent are counted, and a hundred, drawn by their ids, are shown to the first of the services.
    Raises `ValueError`, and `svc.client.ServiceError` where that does not answer.
    """
    asked = asking(questions, **options)
    check_columns(frame.columns, asked)

    def looked_at(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for one in frames:
            columns = {name: values(one[name]) for name in asked.read}
            yield pd.DataFrame({_SURVEY: [surveyed(asked, columns)]})

    parts = frame.select(*asked.read).mapInPandas(looked_at, f"{_SURVEY} string")
    return forecast_of(asked, (row[_SURVEY] for row in parts.collect()))


def deciding(questions: Mapping[str, Question], **options: Any) -> Deciding:
    """A function for `DataFrame.mapInPandas`, which needs `schema` beside it.

    The options are those of `decide`. Raises `ValueError`.
    """
    asked = asking(questions, **options)

    def decided(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        with Rows(asked) as rows:
            for frame in frames:
                check_columns(list(frame.columns), asked)
                answers = rows.decide({name: values(frame[name]) for name in asked.read})
                yield frame.assign(**_series(answers, asked, frame.index))

    return decided


def schema(given: StructType, questions: Mapping[str, Question]) -> StructType:
    """The columns of a frame of these columns once it is decided; the same for all rows."""
    whole = StructType(list(given.fields))
    for key, question in questions.items():
        answer = StructType()
        for name, kind in FIELDS[question.type].items():
            answer.add(name, _TYPES[kind])
        whole.add(key, answer)
    for name, kind in OF_ROWS.items():
        whole.add(name, _TYPES[kind])
    return whole


def svc_classify(
    content: Column | str,
    labels: Mapping[str, str],
    *,
    instructions: str = INSTRUCTIONS,
    **options: Any,
) -> Column:
    """Which of some labels, given with their descriptions, fits a text, as `ai_classify` tells it.

    The column is a struct: `response`, a label, or null where none fits; `confidence`; and
    `error_message`, null unless the row failed. Equal texts get one decision. The options are those
    of `decide` without `state` and `row_id`. Raises `ValueError`.
    """
    question = Choice(instructions, dict(labels))
    asked = asking({_LABEL: question}, state=_CONTENT, row_id=_CONTENT, **options)

    @pandas_udf(_CLASSIFIED)  # type: ignore[untyped-decorator, unused-ignore]
    def svc_classify(texts: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        with Rows(asked) as rows:
            for series in texts:
                answers = rows.decide({_CONTENT: values(series)})
                yield pd.DataFrame(
                    [_classified(answer, labels) for answer in answers],
                    columns=_CLASSIFIED.names,
                    index=series.index,
                )

    return svc_classify(content)


def values(series: pd.Series) -> list[Any]:
    """The values of a column as JSON has them, as far as it does; None for what is missing."""
    try:
        found: list[Any] = pa.array(series, from_pandas=True).to_pylist()
    except pa.ArrowException:
        # A column of values of several types.
        found = series.tolist()
    return found


def _series(
    answers: list[Mapping[str, Any]], asked: Asking, index: pd.Index
) -> dict[str, pd.Series]:
    names = (*asked.questions, *OF_ROWS)
    return {
        name: pd.Series([answer[name] for answer in answers], index, dtype=object) for name in names
    }


def _classified(answer: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[Any, ...]:
    label = answer[_LABEL]
    if label is None:
        return None, None, answer[ERROR]
    fits = label["choice"] in labels
    return (label["choice"] if fits else None), label["confidence"], None
