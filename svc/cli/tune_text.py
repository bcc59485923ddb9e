"""What `svc tune` says before its search, and after it."""

from __future__ import annotations

from collections.abc import Iterator

from svc.cli.score_table import figures_json
from svc.cli.tables import decimal, dollars, milliseconds, percent, span, table
from svc.evals import Candidate, Figures, Found, Search, accuracy, calls_text, plan_text, wilson
from svc.jsontext import JsonObject
from svc.phrases import printable

_FIGURES = ("accuracy", "95% interval", "ECE", "cost", "median", "failed")
_WAYS = ("model", "mode", "orders", "examples", *_FIGURES)
_WORDINGS = ("wording", *_FIGURES)
# The places of the columns that hold words.
_TEXT = {0, 1, 2}


def announcement(what: Search) -> Iterator[str]:
    """What it will take."""
    rows, halves = f"{what.eval_set.name}: {what.rows:,} rows", what.halves
    pool = f"{len(what.pool):,} to take examples from"
    if halves.judging:
        choosing = f"{len(halves.choosing):,} to choose on, {len(halves.judging):,} to judge on"
        yield f"{rows}, {choosing} and {pool}"
    else:
        yield f"{rows}, {len(halves.choosing):,} to test on and {pool}"
    wordings = len(what.wordings) + what.propose
    other = f" and {wordings:,} other wording{'' if wordings == 1 else 's'} of the best"
    candidates = f"{len(what.tried):,} candidates{other if wordings else ''}"
    yield f"{candidates}, at most {calls_text(what.most_calls)}"
    if halves.missing:
        yield f"The winner will not be judged: {halves.missing}."


def tables(found: Found) -> Iterator[str]:
    """All that was tried, the best first; a wording by its number, with the texts beneath."""
    ways = [(*_way(one), *_figures(figures)) for one, figures in found.ways]
    yield from table(_WAYS, ways, _TEXT)
    if not found.wordings:
        return
    numbered = enumerate(found.wordings, 1)
    rows = [(str(number), *_figures(figures)) for number, (_, figures) in numbered]
    yield from ["", *table(_WORDINGS, rows), ""]
    for number, (one, _) in enumerate(found.wordings, 1):
        yield printable(f"{number}  {one.question['instructions']}")


def tune_json(found: Found) -> JsonObject:
    """The same as JSON, and the judgement on rows that had no say."""
    return {
        "ways": [{**_way_json(one), **figures_json(figures)} for one, figures in found.ways],
        "wordings": [
            {"instructions": one.question["instructions"], **figures_json(figures)}
            for one, figures in found.wordings
        ],
        "judged": None if found.judged is None else figures_json(found.judged),
    }


def _way_json(one: Candidate) -> JsonObject:
    return {"model": one.model, "mode": one.mode, "debias": one.debias, "examples": one.examples}


def verdict(found: Found, out: str) -> Iterator[str]:
    """What was written, how close others come, and how good it is on rows that did not choose."""
    which = "first one" if not found.wordings else "first way with the first wording"
    yield f"Wrote the {which} to {out}. {_caution(found)}"
    if found.judged is None:
        yield "Not judged: on rows that chose it the accuracy is too high, the more so the fewer."
        return
    rows = found.judged.rows + found.judged.failed
    yield (
        f"Judged on {rows:,} rows that had no say in the choice: {percent(accuracy(found.judged))} "
        f"right, 95% interval {span(wilson(found.judged.right, rows))}."
    )


def _way(one: Candidate) -> tuple[str, ...]:
    return plan_text(one.model), one.mode, "both" if one.debias else "one", str(one.examples)


def _figures(found: Figures) -> tuple[str, ...]:
    return (
        percent(accuracy(found)),
        span(wilson(found.right, found.rows + found.failed)),
        decimal(found.ece),
        dollars(found.cost_usd),
        milliseconds(found.median_ms),
        f"{found.failed:,}",
    )


def _caution(found: Found) -> str:
    ranking = found.wordings or found.ways
    best = ranking[0][1]
    low, _ = wilson(best.right, best.rows + best.failed)
    close = sum(accuracy(other) >= low for _, other in ranking[1:])
    if not close:
        return "No other one comes within the 95% interval of its accuracy."
    verb = "lies" if close == 1 else "lie"
    return (
        f"{close} more {verb} within the 95% interval of its accuracy: more rows would tell them "
        "apart better."
    )
