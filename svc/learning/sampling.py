"""What is known of how the labels of a question came about, and what that leaves to be promised.

Of labels whose chance nobody knows, those of the past year are compared with all decisions of
their weeks, by the weekly sums and not by the decisions themselves, however many there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Question, Reading
from svc.stats import selection
from svc.store import TrainingData, Week, Weeks
from svc.terms import Sampling

UNKNOWN = "unknown"
ALL_DRAWN = (
    "Labels were drawn by chance: figures and promises hold for all answers, unless some decisions "
    "had less than a fifth of the usual chance to be drawn."
)
SOME_PICKED = (
    "Some labels were picked: figures and promises hold for answers like the labelled ones, and "
    "may not hold for all."
)
NOBODY_SAID = (
    "Nobody said how decisions were picked for labelling: figures and promises hold for all "
    "answers if they were drawn at random, and for answers like the labelled ones if not."
)
DIFFERENT = (
    "Labelled decisions are unlike the others of the same weeks, further than chance would have "
    "it: accuracy, calibrators, thresholds, sets and rates hold for answers like the labelled "
    "ones, and cannot be promised for all. Label a random sample, or say with `chance` how "
    "likely each decision was to be labelled."
)


def report(data: TrainingData | None) -> JsonObject:
    """How many labels came in which way, and what that means; `meaning` is null without labels."""
    ways = [] if data is None else _ways(data)
    counts = Counter(ways)
    names = [*(way.value for way in Sampling), UNKNOWN]
    return {"labels": {name: counts[name] for name in names}, "meaning": _meaning(counts)}


def tested(
    data: TrainingData | None, question: Question, weeks: Weeks, project: str, now_ms: int
) -> JsonObject:
    """The same with a `test` of the labels whose chance is not known, null without such labels.

    Raises `StorageError`.
    """
    told, found = report(data), None
    if data is not None and None in data.chance:
        year = weeks.read(project, data.state.question_id, limits.DRIFT_WEEKS[1], now_ms)
        first_rows = weeks.first_rows([week.number for week in year])
        found = _test(_compared(data, question, year, first_rows), question)
    meaning = DIFFERENT if found and found["differs"] else told["meaning"]
    return {**told, "meaning": meaning, "test": found}


def _compared(
    data: TrainingData, question: Question, weeks: Sequence[Week], first_rows: Sequence[int]
) -> list[selection.WeekOfLabels]:
    """The weeks that have labels without a known chance, with these."""
    counts: list[Counter[str]] = [Counter() for _ in weeks]
    sums = [0.0] * len(weeks)
    for p, chance, decision in zip(data.p, data.chance, data.decisions, strict=True):
        place = bisect_right(first_rows, decision) - 1
        if chance is None and place >= 0:
            top, confidence = _answer(question, p)
            counts[place][top] += 1
            sums[place] += confidence
    return [
        selection.WeekOfLabels(_mix(week, question), week.confidence, week.squares, own, total)
        for week, own, total in zip(weeks, counts, sums, strict=True)
        if own
    ]


def _answer(question: Question, p: Sequence[float]) -> tuple[str, float]:
    """The top answer and its confidence, as weekly sums have them."""
    reading = Reading(tuple(p))
    if question.names_options:
        return question.tally(reading), question.confidence(reading)
    return "", float(p[0])


def _mix(week: Week, question: Question) -> dict[str, int]:
    """Counts by answer, where a label's own answer can be told by its probabilities."""
    return week.counts if question.names_options else {"": sum(week.counts.values())}


def _test(weeks: Sequence[selection.WeekOfLabels], question: Question) -> JsonObject | None:
    if not weeks:
        return None
    mix = selection.mix_difference(weeks) if question.names_options else None
    confidence = selection.confidence_difference(weeks)
    tests = [one for one in (mix, confidence) if one is not None]
    return {
        "labels": sum(week.labels for week in weeks),
        "decisions": sum(week.decisions for week in weeks),
        "mix": None if mix is None else mix.as_json,
        "confidence": confidence.as_json,
        "differs": any(one.p <= selection.DIFFERENT for one in tests),
    }


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
