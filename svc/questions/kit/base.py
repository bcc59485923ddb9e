"""The interface of a question type: one file above this folder holds one type.

A type says how it is checked (its schema), how it is asked (option lines and reply formats in
both option orders), how a reply is read into a `Reading`, how readings are merged, how a reading
becomes the answer's fields, and what a right label is. Nothing outside `svc/questions/` asks which
type a question has.

A type also describes itself: the JSON schemas of its answer and of a true label, and how a page
draws the answer. A new type is one file with a `Question` and its schema, and two lines in
`svc/questions/__init__.py`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from svc import jsontext
from svc.lazy import lazy
from svc.questions.kit.conditions import Condition, Rule, Search, searches
from svc.questions.kit.lettering import DECIMALS
from svc.questions.kit.verbal import SHARES, Stated
from svc.shapes import Json
from svc.terms import CoveragePer, TaskKind

# The JSON schema of a probability.
NUMBER: Mapping[str, Any] = {"type": "number"}

# The same for a schema that may have bounds. Models state probabilities in such steps anyway, and
# without these small models write numbers of any size.
GRID: Mapping[str, Any] = {"enum": [0, 0.01, *(n / 20 for n in range(1, 20)), 0.99, 1]}


# Of an answer that is a word or a number.
_SHORT_BYTES = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of one question, in the question's own option order.

    `probabilities`: choice and score, one per option or level, summing to 1; noul, P(yes) alone;
    multi, one independent probability per option; extraction, P(the value is correct) alone, with
    the `value`. `mass` is a diagnostic: the least probability that fell on valid labels before
    they were normalised, None in verbal mode. `answered` is false where the reply had no valid
    value.
    """

    probabilities: tuple[float, ...]
    mass: float | None = None
    value: Any = None
    answered: bool = True


@dataclass(frozen=True, slots=True)
class LabelLine:
    """The probabilities at one label of a reply, by position of the label in the order shown.

    Some labels may be missing; each of them is at most as probable as `bound`. `mass` is how much
    probability fell on valid labels before anything was normalised, None where that is not known.
    """

    probabilities: Mapping[int, float]
    bound: float = 1.0
    mass: float | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A state with its true label, shown to the model before the question is asked."""

    state_text: str
    label: Any


# A question as decision servers take it: named options, ordered levels, or yes and no.
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


class Opinions(Protocol):
    """How much each member of a council counts, as labels taught it; None stands for one missing.

    Those that have a say share it, so that the shares sum to 1.
    """

    def one(self, members: Sequence[Sequence[float] | None]) -> tuple[float, ...]: ...
    def shares(self, present: Sequence[bool]) -> tuple[float, ...]: ...


class Unreadable(Exception):
    """A reply holds no usable answer to a question; it is never replaced by a guess."""


_COUNT = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """One typed question; immutable, and equal to another with the same fields.

    A type whose answer is read from the probabilities of labels is a `LabelQuestion`; any other is
    read from a JSON reply alone.
    """

    type: ClassVar[str]
    # Other names of the type, which requests may use; nothing else knows them.
    other_names: ClassVar[tuple[str, ...]] = ()
    guidance: ClassVar[str]
    # Whether there is an option order to reverse.
    reversible: ClassVar[bool] = False
    # Which task of `svc.stats` its labels belong to.
    task: ClassVar[TaskKind]
    # Whether a calibrator that was fitted to labels may change its probabilities.
    calibrates: ClassVar[bool] = True
    # Whether its top answers are few enough to be counted.
    tallies: ClassVar[bool] = True
    # Whether each label names one of its `option_names`.
    names_options: ClassVar[bool] = False
    # Whether its answer is a value that is taken from the state.
    extracts: ClassVar[bool] = False

    # --- how it is described to callers ---

    # The JSON schema of a true answer, as feedback, rules and examples take it.
    label_schema: ClassVar[Json]
    # The JSON schema of what `answer` gives and what may be added to it, the answer itself first.
    answer_schema: ClassVar[Json]
    # How a page draws the answer: as an `option` of several, several `options`, a `level`, a
    # `yes_no`, or as the bare `value`.
    display: ClassVar[str] = "value"
    # The instructions for callers who may leave them out and do.
    usual_instructions: ClassVar[str] = "Which value does the input give?"
    # Labels that every question of the type has, by their JSON, each with its word in a sentence.
    sides: ClassVar[Mapping[str, str]] = {}

    instructions: str
    think: bool = False
    coverage: float | None = None
    coverage_per: CoveragePer = CoveragePer.ANSWER
    min_confidence: float | None = None
    when: tuple[Condition, ...] = ()
    rules: tuple[Rule, ...] = ()
    depends_on: tuple[str, ...] = ()
    # No other question of this process has the same, not even one with the same fields. Prompts
    # that are kept go by it, so that they need not keep the question.
    serial: int = field(init=False, repr=False, compare=False, default_factory=_COUNT.__next__)
    examples: tuple[Example, ...] = ()

    @lazy
    def dependencies(self) -> frozenset[str]:
        """Keys of the questions whose answers this one needs."""
        keys = (condition.question for condition in self.conditions)
        return frozenset([*self.depends_on, *(key for key in keys if key is not None)])

    @lazy
    def needs_object(self) -> bool:
        """Whether a condition reads a field of the state."""
        return any(condition.question is None for condition in self.conditions)

    @lazy
    def searches(self) -> frozenset[Search]:
        """What the conditions look for in texts."""
        return searches(self.conditions)

    @property
    def conditions(self) -> list[Condition]:
        """All conditions of the question, those of its rules included."""
        return [*self.when, *(condition for rule in self.rules for condition in rule.conditions)]

    @property
    def unguaranteed(self) -> Mapping[str, Any]:
        """The answer fields about the requested coverage where no prediction set can be given."""
        if self.coverage is None:
            return {}
        fields = {"coverage": self.coverage, "guaranteed": False}
        per_option = self.coverage_per is CoveragePer.OPTION
        return {**fields, "guaranteed_options": []} if per_option else fields

    @property
    def verbal_reason(self) -> str:
        """Why label probabilities cannot answer this question; empty when they can."""
        return ""

    # --- how it is asked; `backwards` means in the reversed option order ---

    def option_lines(self, backwards: bool) -> list[str]:
        """The lines under the instructions: lettered options, or none."""
        return []

    def option_lines_of(self, position: int, backwards: bool) -> list[str]:
        """The option lines that one reply line is about, by its position in `reply_lines`."""
        return self.option_lines(backwards)

    def reply_lines(self, backwards: bool) -> list[tuple[str, tuple[str, ...]]]:
        """One `(part, labels)` for each line of a logprobs reply; `part` is "" or an option."""
        return []

    @abstractmethod
    def verbal_format(self, backwards: bool) -> str:
        """The shape of this question's member of a JSON reply, in words."""

    @abstractmethod
    def verbal_schema(self, backwards: bool, bounded: bool = False) -> Json:
        """The same as JSON schema, strict or, if `bounded`, with limits that strict ones lack."""

    def plain(self, backwards: bool) -> list[PlainQuestion]:
        """The same for decision servers, one for each reply line; empty where they cannot answer.

        The positions in it are those of the original order, whichever order is shown.
        """
        return []

    @property
    def reply_labels(self) -> int:
        """How many labels a verbal reply spells out at most; the output limit grows with them."""
        return sum(len(labels) for _, labels in self.reply_lines(False))

    # --- how a reply is read ---

    @abstractmethod
    def stated(self, member: Any, backwards: bool) -> Stated:
        """The probabilities in this question's member of a JSON reply, as they are written."""

    def read_member(self, member: Any, backwards: bool, scale: float = SHARES) -> Reading:
        """Read this question's member of a JSON reply whose probabilities are parts of `scale`.

        Raises `Unreadable`.
        """
        return self.read_stated(self.stated(member, backwards), member, backwards, scale)

    @abstractmethod
    def read_stated(self, stated: Stated, member: Any, backwards: bool, scale: float) -> Reading:
        """Read a member of which it is known already what is `stated` in it.

        Raises `Unreadable`.
        """

    # --- how readings are merged ---

    def merge(self, readings: Sequence[Reading]) -> Reading:
        """The mean of readings of both orders."""
        columns = zip(*(reading.probabilities for reading in readings), strict=True)
        mean = tuple(math.fsum(column) / len(readings) for column in columns)
        masses = [reading.mass for reading in readings if reading.mass is not None]
        return Reading(mean, min(masses, default=None))

    def blend(self, readings: Sequence[Reading]) -> tuple[Reading, float]:
        """The mean of a council's readings, and the share whose top answer is the mean's."""
        mean = self.merge(readings)
        return mean, self._agreement(mean, readings)

    def weigh(self, readings: Sequence[Reading | None], pool: Opinions) -> tuple[Reading, float]:
        """The same by what labels taught of each member; None stands for one whose call failed."""
        there = [reading for reading in readings if reading is not None]
        # As they are stored: so a row is pooled alike when it is learned from.
        rounded = [None if one is None else to_digits(one.probabilities) for one in readings]
        pooled = replace(self.merge(there), probabilities=pool.one(rounded))
        return pooled, self._agreement(pooled, there)

    def opinion(self, reading: Reading, blended: Reading) -> Sequence[float]:
        """What a member of a council said of the blended answer, as it is kept for learning."""
        return to_digits(self.in_definition_order(reading.probabilities))

    def _agreement(self, blended: Reading, readings: Sequence[Reading]) -> float:
        top = self.top(blended)
        agreeing = [reading for reading in readings if self.top(reading) == top]
        return len(agreeing) / len(readings)

    # --- how a reading becomes an answer ---

    @abstractmethod
    def confidence(self, reading: Reading) -> float:
        """How sure the reading is of its top answer, 0 to 1."""

    def shown_confidence(self, reading: Reading) -> float:
        """The confidence as the caller sees it."""
        return round(self.confidence(reading), DECIMALS)

    def abstains(self, reading: Reading) -> bool:
        """Whether the answer is less sure than the caller's threshold asks for."""
        threshold = self.min_confidence
        return threshold is not None and self.shown_confidence(reading) < threshold

    def certainty(self, confidence: float) -> Mapping[str, Any]:
        """The `confidence` and, where a threshold was set, `abstain` of an answer."""
        if self.min_confidence is None:
            return {"confidence": confidence}
        return {"confidence": confidence, "abstain": confidence < self.min_confidence}

    @abstractmethod
    def answer(self, reading: Reading) -> Mapping[str, Any]:
        """The answer's fields for the caller, without `calibrated`."""

    @abstractmethod
    def top(self, reading: Reading) -> Any:
        """The answer as a label: option key, level index, boolean, selected keys, or value."""

    @abstractmethod
    def shown(self, fields: Mapping[str, Any]) -> tuple[Any, float]:
        """The answer as a label and how sure it is, out of an answer's fields for the caller."""

    @abstractmethod
    def probability(self, reading: Reading, label: Any) -> float:
        """The probability that the reading gives to a checked label."""

    # --- what a right label is ---

    @abstractmethod
    def check_label(self, label: Any) -> Any:
        """A true answer as it is kept. Raises `ValueError` saying what is allowed."""

    @abstractmethod
    def certain(self, label: Any) -> Reading:
        """The reading that has all probability on a checked label."""

    @abstractmethod
    def label_text(self, label: Any, backwards: bool) -> str:
        """A checked label as a model would reply it: the letter, yes or no, or the value."""

    @abstractmethod
    def spoken(self, label: Any) -> str:
        """A checked label in words, for questions asked after this one."""

    @property
    def spoken_bytes(self) -> int:
        """About how many bytes a label in words takes at most in the body of a call."""
        return _SHORT_BYTES + sum(len(jsontext.dumps(text).encode()) for text in self.own_texts)

    # --- what labels and drift are counted by ---

    @abstractmethod
    def definition(self) -> Mapping[str, Any]:
        """What tells this exact question from others; the order of options is no part of it."""

    def stored(self, reading: Reading) -> Mapping[str, Any]:
        """The raw reading as it is kept: `p` in the order of `definition`, and the `mass`.

        Numbers have seven significant digits. An extracted value is no part of it.
        """
        p = to_digits(self.in_definition_order(reading.probabilities))
        stored = {"p": list(p)}
        return stored if reading.mass is None else {**stored, "mass": round(reading.mass, 4)}

    def evidence(
        self, p: Sequence[float], answer: Mapping[str, Any] | None = None
    ) -> Sequence[float]:
        """The part of a stored `p` that labels are compared with.

        `answer` has the fields of the answer, where they are known: settings that are no part of
        the exact question may have had a say in it.
        """
        return p

    @abstractmethod
    def truth(self, label: Any, answer: Mapping[str, Any]) -> int:
        """A checked label as a number for the task, given the answer that was returned.

        For classes it is the position in the order of `definition`, for other tasks 0 or 1.
        """

    def tally(self, reading: Reading) -> str:
        """The top answer as drift counts it; empty where drift counts no answers."""
        return self.named(self.top(reading)) if self.tallies else ""

    def named(self, label: Any) -> str:
        """A checked label as text, for counts and comparisons; equal labels have equal texts."""
        return label if isinstance(label, str) else jsontext.dumps(label)

    def agree(self, label: Any, other: Any) -> bool:
        """Whether two checked labels say the same."""
        return self.named(label) == self.named(other)

    def all_agree(self, labels: Sequence[Any]) -> bool:
        """Whether checked labels, at least one, all say the same as the first."""
        first, *others = labels
        return all(self.agree(first, other) for other in others)

    def candidates(self, reading: Reading) -> list[tuple[str, float]]:
        """What a prediction set may hold, with probabilities; empty for a type without sets."""
        return []

    @property
    def option_names(self) -> list[str]:
        """The options or levels that a label can name, in the order of `definition`; else none."""
        return []

    def in_definition_order(self, probabilities: Sequence[float]) -> Sequence[float]:
        """Probabilities in the order of `definition`; the same unless options have keys."""
        return probabilities

    @lazy
    def definition_json(self) -> str:
        definition = {"type": self.type, "instructions": self.instructions, **self.definition()}
        return json.dumps(definition, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @lazy
    def digest(self) -> bytes:
        """SHA-256 of the exact question; its key is no part of it."""
        return hashlib.sha256(self.definition_json.encode()).digest()

    @property
    def texts(self) -> list[str]:
        """Every text of the question that counts towards the limit of a request."""
        examples = [
            text
            for example in self.examples
            for text in (example.state_text, self.label_text(example.label, backwards=False))
        ]
        conditions = [condition.text for condition in self.conditions]
        return [self.instructions, *self.own_texts, *examples, *conditions]

    @property
    @abstractmethod
    def own_texts(self) -> list[str]:
        """The texts of options or levels."""


class LabelQuestion(Question):
    """A question that is answered by one label, or by one label for each of its options."""

    reversible = True

    @abstractmethod
    def option_lines(self, backwards: bool) -> list[str]: ...

    @abstractmethod
    def reply_lines(self, backwards: bool) -> list[tuple[str, tuple[str, ...]]]: ...

    @abstractmethod
    def plain(self, backwards: bool) -> list[PlainQuestion]: ...

    @abstractmethod
    def read_lines(self, lines: Sequence[LabelLine], backwards: bool) -> Reading:
        """Read the probability of each label, by position in `reply_lines`. Raises `Unreadable`."""


def to_digits(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Probabilities as they are stored, with seven significant digits."""
    written = "%.7g " * len(probabilities) % tuple(probabilities)
    return tuple(map(float, written.split()))


def probability_schema(bounded: bool) -> Json:
    """JSON schema of a probability."""
    return dict(GRID if bounded else NUMBER)


def object_schema(properties: Mapping[str, Any]) -> Json:
    """JSON schema of an object in the strictest form: every property required, no other allowed."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
