"""Saved bench runs as one page of HTML that needs no other file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from svc import files, jsontext
from svc.assets import folder
from svc.errors import SettingsError
from svc.evals.figures import Figures, figures_of, wilson
from svc.evals.runs import Run, SavedRow
from svc.evals.sets import load_set
from svc.phrases import reason

TEMPLATE = "report.html"
# The most labels of a confusion matrix; with more, the most frequent confusions are listed.
MATRIX = 30
# How many confusions are listed.
PAIRS = 15
# How many mistakes of each set are shown: those with the highest confidence.
MISTAKES = 8
# The most characters of a state that are shown.
EXCERPT = 400

# Runs, each with its rows by set.
RowsOfRuns = Sequence[tuple[Run, Mapping[str, Sequence[SavedRow]]]]


@dataclass(frozen=True, slots=True)
class Cell:
    """How often rows of a label had one answer, and the share of these rows among the label's."""

    count: int
    share: float
    right: bool


@dataclass(frozen=True, slots=True)
class SetPart:
    """What the page shows of one set.

    `labels` are those of the confusion `matrix`, in its order; where they are too many for that,
    `pairs` are the most frequent confusions. Each mistake has its state if it is still in the set.
    """

    name: str
    figures: Figures
    labels: list[str]
    matrix: list[list[Cell]]
    pairs: list[tuple[str, str, int]]
    mistakes: list[tuple[SavedRow, str]]


@dataclass(frozen=True, slots=True)
class RunPart:
    """What the page shows of one run."""

    title: str
    overall: Figures
    sets: list[SetPart]


def write_page(path: str, runs: RowsOfRuns, sets: str) -> None:
    """Write the page; `sets` is the folder of the eval sets. Raises `SettingsError`."""
    try:
        files.replace(Path(path), page(runs, sets))
    except OSError as error:
        raise SettingsError(f"page {path!r}: {reason(error)}") from None


def page(runs: RowsOfRuns, sets: str) -> str:
    """The page as HTML; `sets` is the folder of the eval sets."""
    environment = Environment(
        loader=FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["natural"] = natural
    environment.globals["wilson"] = wilson
    parts = [_run_part(run, by_set, sets) for run, by_set in runs]
    return environment.get_template(TEMPLATE).render(runs=parts)


def natural(label: str) -> tuple[int, str]:
    """A sort key: levels by their number, other labels by their letters."""
    return (int(label), "") if label.isdecimal() and len(label) < 4 else (-1, label)


def _run_part(run: Run, by_set: Mapping[str, Sequence[SavedRow]], sets: str) -> RunPart:
    everything = [row.scored for rows in by_set.values() for row in rows]
    parts = [_set_part(name, rows, sets) for name, rows in by_set.items()]
    return RunPart(run.title, figures_of(everything), parts)


def _set_part(name: str, rows: Sequence[SavedRow], sets: str) -> SetPart:
    set_figures = figures_of([row.scored for row in rows])
    confusion = set_figures.confusion
    labels = sorted({label for pair in confusion for label in pair}, key=natural)
    small = len(labels) <= MATRIX
    return SetPart(
        name,
        set_figures,
        labels if small else [],
        list(_matrix(labels, confusion)) if small else [],
        [] if small else _pairs(confusion),
        _mistakes(name, rows, sets),
    )


def _matrix(labels: Sequence[str], confusion: Counter[tuple[str, str]]) -> Iterator[list[Cell]]:
    for label in labels:
        counts = [confusion[label, answer] for answer in labels]
        total = max(1, sum(counts))
        yield [
            Cell(count, count / total, answer == label)
            for answer, count in zip(labels, counts, strict=True)
        ]


def _pairs(confusion: Counter[tuple[str, str]]) -> list[tuple[str, str, int]]:
    wrong = [(*pair, count) for pair, count in confusion.most_common() if pair[0] != pair[1]]
    return wrong[:PAIRS]


def _mistakes(name: str, rows: Sequence[SavedRow], sets: str) -> list[tuple[SavedRow, str]]:
    wrong = [row for row in rows if row.scored.answered and not row.scored.agrees]
    surest = sorted(wrong, key=lambda row: -row.scored.confidence)[:MISTAKES]
    states = _states(name, sets) if surest else {}
    return [(row, _excerpt(states.get(row.content, ""))) for row in surest]


def _states(name: str, sets: str) -> dict[str, Any]:
    """The states of a set by the digest of their row; none if the set is no longer there."""
    try:
        return {row.digest: row.state for row in load_set(sets, name).rows}
    except SettingsError:
        return {}


def _excerpt(state: Any) -> str:
    text = jsontext.as_text(state)
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"
