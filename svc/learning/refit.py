"""What is learned from all labels of an exact question at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from svc.learning import challenged, councils, fits
from svc.learning.fits import Fits
from svc.learning.labelled import labelled
from svc.questions import from_definition
from svc.store import ChallengerLabel, TrainingData


@dataclass(frozen=True, slots=True)
class Learned:
    """Calibrators, and the pools of councils as JSON."""

    fits: Fits
    pools: str | None


def learned(data: TrainingData, definition: str, found: Sequence[ChallengerLabel]) -> Learned:
    """What the labels teach; those `found` are the same ones as they count for challengers."""
    question = from_definition(definition)
    again = fits.parsed(data.state.calibrator).pooled.calibrator is not None
    pools = None
    if any(data.members):
        pools = councils.fitted(data, question, labelled(data, question, None).weights)
    rows = labelled(data, question, pools)
    own = rows.fits(again)
    if not found:
        return Learned(own, pools)
    both = labelled(challenged.joined(data, found, question), question, pools)
    fitted = challenged.with_challengers(own, both.fits(again), found, data)
    return Learned(fitted, pools)
