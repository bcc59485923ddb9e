"""Scored eval sets as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from svc.cli.tables import decimal, dollars, milliseconds, percent, span, table
from svc.evals import Figures, Run, Scored, figures_of
from svc.jsontext import JsonObject
from svc.phrases import printable

_HEAD = (
    *("set", "rows", "accuracy", "95% interval", "ECE", "Brier"),
    *("automated", "right then", "cost", "median", "p95", "failed"),
)
_NOTE = (
    "automated: share with a confidence of at least 0.9; right then: how many of these are right"
)
OVERALL = "overall"
# The figures as JSON names them.
_FIGURES = (
    *("rows", "failed", "accuracy", "interval", "ece", "brier"),
    *("automated", "accuracy_when_automated", "cost_usd", "median_ms", "p95_ms"),
)
# How many different failures are listed.
_MESSAGES = 5


def score_json(run: Run, by_set: Mapping[str, Sequence[Scored]]) -> JsonObject:
    """The same figures as JSON: how rows were asked, and the figures of each set."""
    everything = [one for scored in by_set.values() for one in scored]
    return {
        **asdict(run),
        "sets": {name: figures_json(figures_of(scored)) for name, scored in by_set.items()},
        OVERALL: figures_json(figures_of(everything)),
    }


def figures_json(found: Figures) -> JsonObject:
    """The figures of a row of a table."""
    return {name: getattr(found, name) for name in _FIGURES}


def score_table(run: Run, by_set: Mapping[str, Sequence[Scored]]) -> list[str]:
    """The lines about one run: its title, a row a set, one for all, and what failed."""
    rows = [_row(name, figures_of(scored)) for name, scored in by_set.items()]
    everything = [one for scored in by_set.values() for one in scored]
    if len(rows) > 1:
        rows.append(_row(OVERALL, figures_of(everything)))
    lines = [run.title, "", *table(_HEAD, rows), "", _NOTE, *_failures(everything)]
    return [printable(line) for line in lines]


def _row(name: str, total: Figures) -> tuple[str, ...]:
    return (
        name,
        f"{total.rows:,}",
        percent(total.accuracy),
        span(total.interval),
        decimal(total.ece),
        decimal(total.brier),
        percent(total.automated),
        percent(total.accuracy_when_automated),
        dollars(total.cost_usd),
        milliseconds(total.median_ms),
        milliseconds(total.p95_ms),
        f"{total.failed:,}",
    )


def _failures(scored: Iterable[Scored]) -> list[str]:
    counts = Counter(one.error for one in scored if one.error)
    return [
        f"failed, {count:,} rows: {message}" for message, count in counts.most_common(_MESSAGES)
    ]
