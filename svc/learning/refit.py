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
    """Calibrators, the pools of councils as JSON, and when the answers changed last, if ever."""

    fits: Fits
    pools: str | None
    changed_at: int | None


def learned(data: TrainingData, definition: str, found: Sequence[ChallengerLabel]) -> Learned:
    """What the labels teach; those `found` are the same ones as they count for challengers."""
    question = from_definition(definition)
    again = fits.parsed(data.state.calibrator).pooled.calibrator is not None
    pools = councils.fitted(data, question, sampling_weights(data.chance, data.relative))
    rows = labelled(data, question, pools)
    own, changed_at = rows.fits(again), rows.changed_at(data.decided_at)
    if not found:
        return Learned(own, pools, changed_at)
    both = labelled(challenged.joined(data, found, question), question, pools)
    fitted = challenged.with_challengers(own, both.fits(again), found)
    return Learned(fitted, pools, changed_at)
