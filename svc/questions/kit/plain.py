"""A question as decision servers take it: a choice by name, ordered levels, or yes and no."""

from __future__ import annotations

from dataclasses import dataclass

CHOICE, SCORE, YES_NO = "choice", "score", "yes_no"


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """One question of one distribution; its answer is a probability for each of its labels.

    `options` are names with descriptions, in the order shown; levels, lowest first, have no
    description; yes and no has none. `positions` says where each stands among the labels of the
    question that this was made from: of yes and no, yes stands first.
    """

    kind: str
    instructions: str
    options: tuple[tuple[str, str], ...] = ()
    positions: tuple[int, ...] = ()
