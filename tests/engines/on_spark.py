"""What the tests of Spark run, as a user would write it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from svc.bulk.spark import decide, deciding, forecast, schema, svc_classify
from svc.client import Choice, Integer, Multi, Number, Question, Score, Text, YesNo
from tests.engines.playing import Found, play

QUESTION = {"cats": YesNo("Is it about cats?")}
LABELS = {"billing": "money, invoices, refunds", "tech": "faults, crashes"}
BIG = 2**60 + 1
# Its number is none that a column of doubles holds exactly.
NO_DOUBLE = f"The invoice number is {2**53 + 1}."
EVERY_TYPE: dict[str, Question] = {
    "choice": Choice("Which team?", LABELS, coverage=0.9),
    "score": Score("How angry?", ["calm", "cross", "furious"]),
    "yesno": YesNo("Does the customer want money back?"),
    "multi": Multi("What is it about?", ["money", "parcel"]),
    "textual": Text("The order's number.", nullable=True),
    "number": Number("How much money?", nullable=True),
    "integer": Integer("How many charges?", nullable=True),
}


@contextlib.contextmanager
def started(files: str) -> Iterator[SparkSession]:
    """Spark in local mode with two cores; what it writes lies in the folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", files)
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", files)
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


def summary(rows: list[Row]) -> Found:
    """What came of the rows, without the rows."""
    return {
        "rows": len({row["id"] for row in rows}),
        "errors": {str(row["id"]): row["error"] for row in rows if row["error"] is not None},
        "decisions": sorted({row["decision_id"] for row in rows if row["decision_id"]}),
    }


def texts(session: SparkSession, count: int, special: dict[int, Any] | None = None) -> DataFrame:
    rows = [(n, (special or {}).get(n, f"Row {n} is about cats.")) for n in range(count)]
    return session.createDataFrame(rows, "id long, text string").repartition(4)


def forecasts(files: str, url: str, count: int) -> Found:
    """What so many rows of many lengths would take, in few parts and in many."""
    rows = [(n, None if n == 7 else "word " * (n % 97)) for n in range(count)]
    with started(files) as session:
        frame = session.createDataFrame(rows, "id long, text string")
        said = [
            forecast(frame.repartition(parts), QUESTION, state="text", row_id="id", url=url)
            for parts in (1, 4)
        ]
    return {"said": [one.fields for one in said]}


def run(files: str, count: int, api_key: str | None = None, **options: Any) -> Found:
    """Decide so many rows; how the plan shows what is done."""
    with started(files) as session:
        frame = texts(session, count)
        same: dict[str, Any] = {"api_key": api_key, **options}
        decided = decide(frame, QUESTION, state="text", row_id="id", **same)
        classified = frame.select(svc_classify("text", LABELS, api_key=api_key, url=options["url"]))
        plans = io.StringIO()
        with contextlib.redirect_stdout(plans):
            decided.explain("extended")
            classified.explain("extended")
        found = summary(decided.collect())
    shown = api_key is not None and api_key in plans.getvalue()
    return {**found, "plans": plans.getvalue(), "shown": shown}


def poisoned(files: str, url: str, count: int, too_long: int) -> Found:
    """One row in many is too long for the service, which answers the others by a rule."""
    rules = [{"if": {"text": {"exists": True}}, "answer": "a"}]
    ruled = {"kind": Choice("Which?", ["a", "b"], more={"rules": rules})}
    with started(files) as session:
        frame = texts(session, count, {count // 2: "x" * too_long})
        return summary(decide(frame, ruled, state=["text"], row_id="id", url=url).collect())


def kinds(files: str, url: str) -> Found:
    """Columns of all kinds as the state; each frame has a good row, too."""
    columns = {
        "string": ("text", None),
        "double": (1.5, float("nan")),
        "binary": (b"a", b"b"),
        "long": (BIG, None),
        "array<string>": (["a", "b"], None),
        "struct<a:string,b:array<long>>": (("x", [BIG]), None),
        "map<string,string>": ({"a": "b"}, None),
        "date": (None, None),
    }
    with started(files) as session:
        found = {}
        for kind, (good, bad) in columns.items():
            frame = session.createDataFrame([(0, good), (1, bad)], f"id long, it {kind}")
            decided = decide(frame, QUESTION, state="it", row_id="id", url=url)
            found[kind] = [row["error"] for row in decided.orderBy("id").collect()]
    return found


def schemas(files: str, url: str) -> Found:
    """The schema of good rows, bad ones, and none; columns that nobody asks about stay."""
    with started(files) as session:
        states = [None, None, None, NO_DOUBLE, "A cat.", "A cat."]
        rows = [(n, text, BIG if n % 2 else None) for n, text in enumerate(states)]
        frame = session.createDataFrame(rows, "id long, text string, big long")
        options: dict[str, Any] = {"state": "text", "row_id": "id", "url": url}
        decided = decide(frame, EVERY_TYPE, **options)
        nothing = frame.where("id < 0").mapInPandas(
            deciding(EVERY_TYPE, **options), schema(frame.schema, EVERY_TYPE)
        )
        collected = decided.orderBy("id").collect()
        refused = ""
        try:
            decide(frame, EVERY_TYPE, **{**options, "state": "nowhere"})
        except ValueError as error:
            refused = str(error)
        return {
            "same": decided.schema == nothing.schema,
            "columns": decided.columns,
            "nothing": nothing.collect(),
            "nulls": [sum(row[key] is None for row in collected) for key in EVERY_TYPE],
            "errors": [row["error"] for row in collected],
            "big": [row["big"] for row in collected],
            "choice": collected[5]["choice"].asDict(),
            "refused": refused,
        }


def page(files: str, code: str) -> Found:
    """What a page has, in a folder with a table of tickets."""
    os.chdir(files)
    with started(files) as session:
        rows = [(n, f"Ticket {n}: I was charged twice.") for n in range(50)]
        session.createDataFrame(rows, "id long, text string").write.parquet("tickets.parquet")
        names: dict[str, Any] = {}
        exec(code, names)
        return summary(names["decided"].collect())


def classified(files: str, url: str) -> Found:
    """Labels of texts in the shape of `ai_classify`, from a table with equal texts and a null."""
    said = ["The app crashes.", "The app crashes.", "A refund of money, please.", None, "Bananas"]
    with started(files) as session:
        frame = session.createDataFrame(list(enumerate(said)), "id long, text string")
        column = svc_classify("text", LABELS, url=url, model="@demo/lexical")
        rows = frame.select("id", column.alias("found")).orderBy("id").collect()
    return {
        "columns": list(rows[0]["found"].asDict()),
        "rows": [row["found"].asDict() for row in rows],
    }


if __name__ == "__main__":
    play(
        {
            "run": run,
            "poisoned": poisoned,
            "kinds": kinds,
            "schemas": schemas,
            "classified": classified,
            "page": page,
            "forecasts": forecasts,
        }
    )
