"""Rows that have no say in a choice, so that they can judge it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from svc.errors import SettingsError
from svc.evals.sets import EvalRow, by_state
from svc.phrases import quoted
from svc.questions import Question

# The fewest rows of each answer that judge anything: with fewer, a share of them tells nothing.
FEWEST = 10


@dataclass(frozen=True, slots=True)
class Halves:
    """The rows that choose and those that judge; `missing` says why none can judge."""

    choosing: Sequence[EvalRow]
    judging: Sequence[EvalRow] = ()
    missing: str = ""


def check_both_sides(question: Question, rows: Sequence[EvalRow], name: str) -> None:
    """Raise `SettingsError` unless the rows have enough of each side of a yes/no question.

    A way to ask that finds none of four positives is as accurate as one that answers no to
    everything, and which of them is better is a toss-up.
    """
    truths = [question.named(row.truth) for row in rows]
    for side in question.sides:
        if truths.count(side) < FEWEST:
            raise SettingsError(
                f"{name} has {truths.count(side)} rows with the label {side} to test on; tune "
                f"judges no way to ask with fewer than {FEWEST} of each label, and names no winner"
            )


def hold_out(question: Question, rows: Sequence[EvalRow]) -> Halves:
    """Every second state of each answer is held out; where that is too few of any, none at all.

    Rows come in a random order. A state with several rows is one, of the answer of its first. Of a
    question whose answers are too many to be counted, all rows are of one kind.
    """
    states = by_state(rows)
    kinds = [question.named(row.truth) if question.tallies else "" for row, *_ in states]
    counts = {kind: kinds.count(kind) for kind in {*kinds, *question.sides}}
    rarest = min(sorted(counts), key=counts.__getitem__)
    if counts[rarest] < 2 * FEWEST:
        return Halves(rows, missing=_missing(rarest, counts[rarest]))
    seen = dict.fromkeys(counts, 0)
    halves: tuple[list[EvalRow], list[EvalRow]] = ([], [])
    for kind, its_rows in zip(kinds, states, strict=True):
        halves[seen[kind] % 2].extend(its_rows)
        seen[kind] += 1
    return Halves(*halves)


def _missing(kind: str, count: int) -> str:
    of = f" of each answer, and {quoted(kind)} has {count}" if kind else f", and there are {count}"
    return (
        f"half of the rows are held out to judge it, at least {FEWEST} of each answer; that takes "
        f"{2 * FEWEST} rows{of}, those for examples and states that come again not counted"
    )
