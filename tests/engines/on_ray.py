"""What the tests of Ray run, as a user would write it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from pyarrow import parquet

from svc.bulk.ray import DecidingActor, column_types, decide, forecast
from svc.bulk.rows import asking
from svc.client import Choice, Client, Integer, Multi, Number, Question, Score, Text, YesNo
from tests.engines.playing import Found, play

BLOCKS = 8
# Its number is none that a column of doubles holds exactly.
NO_DOUBLE = f"The invoice number is {2**53 + 1}."
QUESTION = {"cats": YesNo("Is it about cats?")}
EVERY_TYPE: dict[str, Question] = {
    "choice": Choice("Which team?", {"billing": "money", "tech": "faults"}, coverage=0.9),
    "score": Score("How angry?", ["calm", "cross", "furious"]),
    "yesno": YesNo("Does the customer want money back?"),
    "multi": Multi("What is it about?", ["money", "parcel"]),
    "textual": Text("The order's number.", nullable=True),
    "number": Number("How much money?", nullable=True),
    "integer": Integer("How many charges?", nullable=True),
    "skipped": YesNo("Is it urgent?", more={"when": {"text": "nothing"}}),
}
# Those that can be asked about a text alone.
OF_TEXT = {key: question for key, question in EVERY_TYPE.items() if key != "skipped"}
# Answered by a rule, without a model.
RULED: dict[str, Question] = {
    "kind": Choice(
        "Which?", ["a", "b"], more={"rules": [{"if": {"text": {"exists": True}}, "answer": "a"}]}
    )
}


@contextlib.contextmanager
def started(files: str) -> Iterator[None]:
    """Ray in local mode with two cores; all that it writes lies in the folder."""
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=files)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield
    finally:
        ray.shutdown()


def texts(count: int, special: dict[int, Any] | None = None) -> Any:
    """A dataset of so many short texts, some of them special."""
    rows = [
        {"id": n, "text": (special or {}).get(n, f"Row {n} is about cats.")} for n in range(count)
    ]
    return ray.data.from_items(rows, override_num_blocks=BLOCKS)


def summary(rows: list[dict[str, Any]]) -> Found:
    """What came of the rows, without the rows."""
    errors = {str(row["id"]): row["error"] for row in rows if row["error"] is not None}
    decisions = [row["decision_id"] for row in rows if row["decision_id"] is not None]
    return {
        "rows": len({row["id"] for row in rows}),
        "errors": errors,
        "decisions": sorted(set(decisions)),
    }


def run(files: str, count: int, **options: Any) -> Found:
    """Decide so many rows."""
    with started(files):
        decided = decide(texts(count), QUESTION, state="text", row_id="id", **options)
        return summary(decided.take_all())


def poisoned(files: str, url: str, count: int, too_long: int) -> Found:
    """One row in many is too long for the service."""
    with started(files):
        dataset = texts(count, {count // 2: "x" * too_long})
        decided = decide(dataset, RULED, state=["text"], row_id="id", url=url)
        return summary(decided.take_all())


def kinds(files: str, url: str) -> Found:
    """Values of all kinds in one column, of which two can be sent."""
    values = [None, b"\xff", float("nan"), 7, {"a": [1, "b"]}, "text", {"a": {1, 2}}, ""]
    with started(files):
        dataset = texts(40, dict(enumerate(values)))
        decided = decide(dataset, QUESTION, state="text", row_id="id", url=url)
        return summary(decided.take_all())


def unreadable(files: str, url: str) -> Found:
    """Texts of which one is no UTF-8, and dates of which one is after the year 9999."""
    columns = {
        "text": pa.array([b"It is about cats.", b"\xff"]).view(pa.string()),
        "date": pa.array([0, 2**30], pa.int32()).cast(pa.date32()),
    }
    table = pa.table({"id": [1, 2], **columns})
    found = {}
    for name in columns:
        actor = DecidingActor(asking(QUESTION, state=name, row_id="id", url=url))
        found[name] = actor(table).column("error").to_pylist()
    return found


def schemas(files: str, url: str) -> Found:
    """The schemas of all blocks, of good rows, bad ones, and of rows that a filter took away."""
    with started(files):
        special = {**dict.fromkeys(range(10)), 10: NO_DOUBLE}
        dataset = texts(80, special).filter(lambda row: row["id"] < 30)
        decided = decide(dataset, OF_TEXT, state="text", row_id="id", url=url)
        blocks = list(decided.iter_batches(batch_format="pyarrow", batch_size=None))
        whole = pa.concat_tables(blocks)
        refused = ""
        try:
            decide(dataset, OF_TEXT, state="nowhere", row_id="id", url=url).take_all()
        except Exception as error:  # noqa: BLE001 - Ray wraps what a worker raises
            refused = str(error)
        # A batch without rows is what an empty partition gives.
        nothing = DecidingActor(asking(OF_TEXT, state="text", row_id="id", url=url))(
            pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
        )
    new = {name: str(kind) for name, kind in column_types(OF_TEXT).items()}
    return {
        "expected": new,
        "blocks": [_types(one) for one in blocks],
        "empty": _types(nothing),
        "nulls": {name: whole.column(name).null_count for name in whole.column_names},
        "refused": "nowhere" in refused,
    }


def _types(table: pa.Table) -> dict[str, str]:
    return {name: str(table.schema.field(name).type) for name in table.column_names}


def checkpointed(files: str, url: str, other: str, checkpoint: str) -> Found:
    """A run of some rows, and then of more, which a service that knows nothing answers."""
    same: dict[str, Any] = {"state": "text", "row_id": "id", "checkpoint": checkpoint}
    with started(files):
        first = decide(texts(300), QUESTION, url=url, **same).take_all()
        second = decide(texts(500), QUESTION, url=other, **same).take_all()
    was = {row["id"]: row["decision_id"] for row in first}
    kept = [row for row in second if was.get(row["id"]) == row["decision_id"]]
    return {"first": summary(first), "second": summary(second), "kept": len(kept)}


def page(files: str, code: str) -> Found:
    """What a page has, in a folder with a table of tickets."""
    Path(files).mkdir()
    os.chdir(files)
    tickets = {
        "id": list(range(50)),
        "text": [f"Ticket {n}: I was charged twice." for n in range(50)],
    }
    parquet.write_table(pa.table(tickets), "tickets.parquet")
    with started(files):
        names: dict[str, Any] = {}
        exec(code, names)
        return summary(ray.data.read_parquet("decided").take_all())


def forecasts(files: str, url: str, count: int) -> Found:
    """What so many rows of many lengths would take, in few parts and in many."""
    rows = [{"id": n, "text": None if n == 7 else "word " * (n % 97)} for n in range(count)]
    with started(files):
        said = [
            forecast(
                ray.data.from_items(rows, override_num_blocks=blocks),
                QUESTION,
                state="text",
                row_id="id",
                url=url,
            )
            for blocks in (1, BLOCKS)
        ]
        nothing = forecast(
            ray.data.from_items(rows).filter(lambda row: row["id"] < 0),
            QUESTION,
            state="text",
            row_id="id",
            url=url,
        )
    return {"said": [one.fields for one in said], "of nothing": nothing.calls}


def same_as_client(files: str, url: str) -> Found:
    """The answers of this door and of the client, to the same rows."""
    with started(files):
        decided = decide(texts(20), EVERY_TYPE, state=["text"], row_id="id", url=url)
        rows = {row["id"]: row for row in decided.take_all()}
    with Client(url) as client:
        said = {
            n: client.decide({"text": f"Row {n} is about cats."}, EVERY_TYPE).answers
            for n in range(20)
        }
    differing = [
        (n, key)
        for n, answers in said.items()
        for key, answer in answers.items()
        if not _same(rows[n][key], answer.fields)
    ]
    return {"differing": differing}


def _same(column: dict[str, Any] | None, fields: Any) -> bool:
    if column is None:
        return "skipped" in fields
    # Arrow gives a map as a list of pairs.
    plain = {k: dict(v) if isinstance(fields.get(k), dict) else v for k, v in column.items()}
    return all(plain[name] == (fields.get(name) or value) for name, value in plain.items())


if __name__ == "__main__":
    play(
        {
            "run": run,
            "poisoned": poisoned,
            "kinds": kinds,
            "unreadable": unreadable,
            "schemas": schemas,
            "checkpointed": checkpointed,
            "page": page,
            "forecasts": forecasts,
            "same_as_client": same_as_client,
        }
    )
