"""What is known of how the labels of a question came about, and what that leaves to be promised."""

from __future__ import annotations

from collections import Counter

from svc.jsontext import JsonObject
from svc.store import TrainingData
from svc.terms import Sampling

UNKNOWN = "unknown"
ALL_DRAWN = "Labels were drawn by chance: figures and promises hold for all answers."
SOME_PICKED = (
    "Some labels were picked: figures and promises hold for answers like the labelled ones, and "
    "may not hold for all."
)
NOBODY_SAID = (
    "Nobody said how decisions were picked for labelling: figures and promises hold for all "
    "answers if they were drawn at random, and for answers like the labelled ones if not."
)


def report(data: TrainingData | None) -> JsonObject:
    """How many labels came in which way, and what that means; `meaning` is null without labels."""
    ways = [] if data is None else _ways(data)
    counts = Counter(ways)
    names = [*(way.value for way in Sampling), UNKNOWN]
    return {"labels": {name: counts[name] for name in names}, "meaning": _meaning(counts)}


def _ways(data: TrainingData) -> list[str]:
    """How each label came about; of a queue whose chances nobody told, nothing is known."""
    columns = zip(data.sampled, data.chance, strict=True)
    told = (way != Sampling.QUEUE or chance is not None for way, chance in columns)
    return [
        way if way and known else UNKNOWN for way, known in zip(data.sampled, told, strict=True)
    ]


def _meaning(counts: Counter[str]) -> str | None:
    if not counts:
        return None
    if counts[Sampling.OTHER]:
        return SOME_PICKED
    return NOBODY_SAID if counts[UNKNOWN] else ALL_DRAWN
