"""What the decisions and labels of each project add up to, from the first one on.

They are kept with every decision and label, because the sums of days and of questions that they
could be read from grow with every name that a caller makes up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from svc.records import Decision
from svc.store.activity import Spans
from svc.store.rows import execute

_DECIDED = (
    "INSERT INTO projects (project, decisions, cost_usd, last_day) VALUES {} "
    "ON CONFLICT DO UPDATE SET decisions = decisions + excluded.decisions, "
    "cost_usd = cost_usd + excluded.cost_usd, last_day = max(last_day, excluded.last_day)"
)
_LABELLED = (
    "WITH given (project, more) AS (VALUES {}) UPDATE projects SET labels = labels + more "
    "FROM given WHERE projects.project = given.project"
)


def add_decisions(
    connection: sqlite3.Connection, now_ms: int, decisions: Iterable[Decision]
) -> None:
    """Count decisions that were stored now."""
    costs: dict[str, list[float]] = {}
    for decision in decisions:
        costs.setdefault(decision.project, []).append(decision.cost_usd)
    today = now_ms // 1_000 // Spans.DAY * Spans.DAY
    added = [(project, len(each), sum(each), today) for project, each in costs.items()]
    execute(connection, _DECIDED, added)


def add_labels(connection: sqlite3.Connection, labels: Mapping[str, int]) -> None:
    """Count so many labels more of each project, or fewer where they are deleted."""
    execute(connection, _LABELLED, [*labels.items()])
