"""What is learned from all labels of an exact question at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from svc.learning import challenged, councils, fits
from svc.learning.fits import Fits
from svc.learning.labelled import labelled, sampling_weights
from svc.questions import from_definition
from svc.store import ChallengerLabel, TrainingData


@dataclass(frozen=True, slots=True)
class Learned:
    """Calibrators, the pools of councils as JSON, and with which decision the answers changed last.

    `changed_with` is its row, None where they never did.
    """

    fits: Fits
    pools: str | None
    changed_with: int | None


def learned(data: TrainingData, definition: str, found: Sequence[ChallengerLabel]) -> Learned:
    """What the labels teach; those `found` are the same ones as they count for challengers."""
    question = from_definition(definition)
    again = fits.parsed(data.state.calibrator).pooled.calibrator is not None
    pools = councils.fitted(data, question, sampling_weights(data.chance, data.relative))
    rows = labelled(data, question, pools)
    own, changed_with = rows.fits(again), rows.changed_with(data.decisions)
    if not found:
        return Learned(own, pools, changed_with)
    both = labelled(challenged.joined(data, found, question), question, pools)
    fitted = challenged.with_challengers(own, both.fits(again), found)
    return Learned(fitted, pools, changed_with)
