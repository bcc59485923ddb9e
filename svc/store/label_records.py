"""What is stored about labels: the values that go in, and those that come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from svc import jsontext

# A project, and the digest of an exact question.
Place = tuple[str, bytes]

# A round of the review queue and a level of doubt: all that is drawn from it has the same chance.
Stratum = tuple[int, int]

# The bytes of a label that stand in one table, as most do, which take as long to be written as a
# character of its question's key.
BYTES_A_CHAR = 16

# The raw probabilities of each member of a council, by model; None where its call failed.
Members = Mapping[str, Sequence[float] | None]


class Worth(NamedTuple):
    """The probabilities of the truth and of the answer, and 1 where the answer was right."""

    p_true: float
    confidence: float
    correct: int


@dataclass(frozen=True, slots=True)
class NewLabel:
    """A true answer for one question of a decision.

    `truth` is the label as the question's task has it, `p` the raw reading in definition order.
    `worth` says what that reading was worth, None where it is to be found from `p` each time.
    `answered_by` names the answering models and the mode. `sampled` and `chance` say how the
    decision came to be labelled, and are None where nobody said. `created_at` is in unix
    milliseconds. Of a decision that the review queue handed out, the queue says how. With
    `reviewer`, what this one said last is also kept when the label is replaced.
    """

    decision_seq: int
    key: str
    project: str
    digest: bytes
    question_id: int
    label: Any
    truth: int
    p: Sequence[float]
    answered_by: str
    created_at: int
    sampled: str | None = None
    chance: float | None = None
    members: Members | None = None
    worth: Worth | None = None
    reviewer: str | None = None

    @property
    def chars(self) -> int:
        """The characters of the label and of the key, which stands in several tables.

        So many bytes of what was read and of who answered, which stand there once, count as one.
        """
        read = [self.p, *(p for p in (self.members or {}).values() if p is not None)]
        told = len(self.answered_by) + sum(map(len, self.members or ()))
        bytes_once = 8 * sum(map(len, read)) + told
        return len(self.key) + len(jsontext.dumps(self.label)) + bytes_once // BYTES_A_CHAR


@dataclass(frozen=True, slots=True)
class CalibrationState:
    """What a project's labels taught about one exact question.

    `labels` counts the labels there are, and `revision` all that were ever given, with those that
    replaced another. `tried` is the revision that the last fit used, and `fitted_at` its time in
    unix milliseconds. `calibrator` is the JSON of those in effect, `pools` that of the pools of
    councils.
    """

    labels: int
    revision: int
    tried: int
    fitted_at: int | None
    calibrator: str | None
    question_id: int
    pools: str | None = None

    @property
    def teaches(self) -> bool:
        """Whether anything that was learned is in effect."""
        return self.calibrator is not None or self.pools is not None


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The most recent labels of one exact question, oldest first; `p` are raw readings.

    The other lists are as in `NewLabel`. `first_at` is when a label, or the first of those whose
    place it took, was given, and `decided_at` when the decision was made. `relative` is the
    chance to be handed out by the review queue, relative to the mean of all decisions, None where
    it was not handed out. `decisions` has the rows of the labelled decisions.
    """

    state: CalibrationState
    p: Sequence[Sequence[float]]
    truth: list[int]
    members: Sequence[Members | None]
    answered_by: list[str]
    sampled: list[str | None]
    chance: list[float | None]
    first_at: list[int]
    relative: list[float | None]
    decisions: list[int]
    decided_at: list[int]


@dataclass(frozen=True, slots=True)
class ChallengerLabel:
    """A label as it counts for a challenger that answered the same decision.

    `p` is the raw reading as it was stored with the decision, `answer` and `label` are JSON. The
    other fields are as in `TrainingData`.
    """

    p: str
    answer: str
    label: str
    answered_by: str
    sampled: str | None
    chance: float | None
    first_at: int
    relative: float | None
    decision: int
    decided_at: int


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """A label as callers gave it for the question `key`; `label` is JSON, and a time may be None.

    The other fields are as in `NewLabel`.
    """

    key: str
    label: str
    created_at: int | None
    sampled: str | None
    chance: float | None


class WeighedLabel(NamedTuple):
    """A stored label without the rest of its reading.

    `review_round` and `doubt` say when and at which level the review queue handed it out.
    `open_bytes` is how long its `RawReading` is, which is wanted where its worth is not known, or
    depends on today's pools; else it is 0.
    `decision` is the row of the labelled decision, and the times are as in `TrainingData`.
    """

    id: int
    truth: int
    answered_by: str
    chance: float | None
    review_round: int | None
    doubt: int | None
    worth: Worth | None
    open_bytes: int
    decision: int
    first_at: int
    decided_at: int


class RawReading(NamedTuple):
    """What a label's answer was read as, and what each member of a council said."""

    p: Sequence[float]
    members: Members | None


@dataclass(frozen=True, slots=True)
class NewerLabels:
    """Labels that came after others, oldest first, and what is known with them.

    `left` are the ids of all of the most recent labels, None where none of them was replaced.
    `relative` has the chance of today, relative to the mean of all decisions, of their strata and
    of those that were asked for.
    """

    state: CalibrationState
    labels: list[WeighedLabel]
    left: list[int] | None
    relative: Mapping[Stratum, float]
