"""A question as decision servers take it: named options, ordered levels, or yes and no."""

from __future__ import annotations

from dataclasses import dataclass

CHOICE, SCORE, YES_NO = "choice", "score", "yes_no"


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """A question whose answer is one distribution: a probability for each of its labels.

    `options` are names with descriptions, in the order shown. Levels stand lowest first and have
    empty descriptions; a yes/no question has no options. `positions` says which label of the
    original question each option is; for a yes/no question it is empty, and yes comes first.
    """

    kind: str
    instructions: str
    options: tuple[tuple[str, str], ...] = ()
    positions: tuple[int, ...] = ()
