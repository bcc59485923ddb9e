"""Decisions as their callers saw them, made again from what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from svc.jsontext import JsonObject
from svc.store import ids
from svc.store.audit_pages import ANSWERS

# Makes JSON of a decision from its fields, and from its answers and tags as JSON.
Shape = Callable[[JsonObject, str, str | None], str]

# The fields of a decision that its caller reads, in their order.
_FIELDS = (
    *("ref", "model", "mode", "latency_ms", "cost_usd", "cached", "debiased", "project"),
    "config",
)
_FLAGS = ("cached", "debiased")

# What `shown` reads of a row of decisions, beside `debiased`, which is stored where it is needed.
SHOWN = (
    f"decisions.id AS ulid, {ANSWERS}, tags, ref, model, mode, latency_ms, cost_usd, cached, "
    "project, config"
)


def shown(row: sqlite3.Row, shape: Shape) -> str:
    """The JSON of a decision from its row."""
    fields = {name: row[name] for name in _FIELDS}
    flags = {name: bool(row[name]) for name in _FLAGS}
    return shape({"id": ids.text(row["ulid"]), **fields, **flags}, row["answers"], row["tags"])
