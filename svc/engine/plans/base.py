"""What all kinds of plans share: groups of questions, what was found for each, and the base class.

A stage is asked in groups: the questions of one call, and each question that thinks on its own.
Every plan asks its groups at the same time and gives a `Finding` for every question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from svc import limits
from svc.deadline import Deadline
from svc.errors import ApiError
from svc.flows import FlowPool, Job
from svc.questions import NumberField, Opinions, Question, Reading
from svc.records import Model
from svc.terms import Mode

# What follows the mode of answers that are `lopsided`, in the name of their group.
ONE_ORDER = "-one-order"


@dataclass(frozen=True, slots=True)
class Plan:
    """Models in the order given, and how they work together; a single model is a chain of one.

    `options` are the further fields of its kind.
    """

    kind: str
    models: tuple[str, ...]
    options: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that share a call."""

    questions: Mapping[str, Question]
    think: bool = False


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What one model answered: a reading for each question, and how it was asked.

    `original` are the readings of the first option order that was answered, before the orders were
    merged. `mode` is never auto. `debiased` is None when there was no order to reverse. `lopsided`
    says that both orders were asked, and one of them was not answered.
    `served_by` are the first names that the provider gave its model, each once.
    """

    readings: tuple[Reading, ...]
    original: tuple[Reading, ...]
    mode: Mode
    debiased: bool | None
    lopsided: bool = False
    cached: bool = False
    served_by: tuple[str, ...] = ()

    @property
    def answers(self) -> bool:
        """Whether the model answered any of the questions validly."""
        return any(reading.answered for reading in self.readings)

    def size(self) -> int:
        """How many probabilities and characters of values and names it holds."""
        return sum(map(len, self.served_by)) + sum(
            len(one.probabilities) + (len(one.value) if isinstance(one.value, str) else 1)
            for one in (*self.readings, *self.original)
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """What the models of a plan found for one question.

    `models` are those whose answers went into the reading, and `modes` are the modes in which they
    answered. `original` is the first model's reading of the first option order that was answered.
    `extra` are answer fields that the plan adds. `members` are the probabilities of each member of
    a council, by its id, and None where its call failed. `lopsided` says that one of
    the models did not answer in one of the orders in which it was asked.
    """

    reading: Reading
    models: tuple[Model, ...]
    modes: tuple[Mode, ...]
    original: Reading
    extra: Mapping[str, Any] = field(default_factory=dict)
    members: Mapping[str, Sequence[float] | None] = field(default_factory=dict)
    lopsided: bool = False

    @property
    def answered_by(self) -> str:
        """The answering models and the mode in one word each, as labels are grouped by.

        What labels teach of a whole council, or of both orders, does not hold for a part of them.
        """
        failed = {model for model, p in self.members.items() if p is None}
        models = sorted(self.members) or [model.id for model in self.models]
        named = "+".join(f"!{model}" if model in failed else model for model in models)
        mode = Mode.VERBAL if Mode.VERBAL in self.modes else Mode.LOGPROBS
        return f"{named} {mode}{ONE_ORDER if self.lopsided else ''}"


@dataclass(slots=True)
class Findings:
    """All findings of a stage, and the results of all models that answered."""

    by_key: dict[str, Finding] = field(default_factory=dict)
    results: list[ModelResult] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.by_key.update(other.by_key)
        self.results += other.results


class GroupAsker(Protocol):
    """Asks one model the questions of a group; `kept` is what it answered to the same before."""

    def ask(self, model: Model, group: Group, deadline: Deadline) -> ModelResult: ...
    def kept(self, model: Model, group: Group) -> ModelResult | None: ...


class Learned(Protocol):
    """What labels taught.

    `confidence` is how sure the calibrated reading of a question is of its top answer; `pool` what
    each of the models counts that answer together, in their order, None while they count alike.
    """

    def confidence(self, question: Question, finding: Finding) -> float: ...
    def pool(self, question: Question, models: tuple[str, ...]) -> Opinions | None: ...


@dataclass(frozen=True, slots=True)
class Team:
    """The models of a request, and all that a plan needs to ask them groups of questions.

    `caller` is whose share of the flows is taken, None for everybody.
    """

    models: tuple[Model, ...]
    asker: GroupAsker
    knowledge: Learned
    options: Mapping[str, float]
    flows: FlowPool
    caller: str | None = None

    def job(self, model: Model, group: Group) -> Job[ModelResult]:
        """A job that asks one model a group of questions."""
        return lambda deadline: self.asker.ask(model, group, deadline)


@dataclass(frozen=True, slots=True)
class PlanOption:
    """A further field of a plan kind: its allowed values, its default and its meaning.

    `help` is a sentence for the command line. `word` stands before the value where a plan is
    described in few words.
    """

    field: NumberField
    default: float
    help: str
    word: str


AskGroup = Callable[[Team, Group, Deadline], Findings]


class PlanKind(ABC):
    """A way in which several models work together; each kind has a file beside this one.

    `name` is the member of `model` and the option of the command line. `meaning` is a sentence for
    the documentation of the API, `help` one for the help of the command line. `members` are the
    fewest and the most models.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    help: ClassVar[str]
    members: ClassVar[tuple[int, int]] = (1, limits.MODEL_CALLS)
    options: ClassVar[Mapping[str, PlanOption]] = {}

    @abstractmethod
    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        """Ask every group.

        Raises `Timeout`, and one error for all failures of models when a group has no answer.
        """


def grouped(questions: Mapping[str, Question]) -> list[Group]:
    """Groups of as many questions as share a call, and one of its own for each that thinks."""
    shared = [(key, question) for key, question in questions.items() if not question.think]
    starts = range(0, len(shared), limits.QUESTIONS)
    groups = [Group(dict(shared[start : start + limits.QUESTIONS])) for start in starts]
    single = [
        Group({key: question}, think=True) for key, question in questions.items() if question.think
    ]
    return groups + single


def found_by(group: Group, model: Model, result: ModelResult) -> Findings:
    """The findings of a group that one model answered."""
    rows = zip(group.questions.items(), result.readings, result.original, strict=True)
    by_key = {
        key: Finding(
            reading,
            (model,),
            (result.mode,),
            original,
            lopsided=result.lopsided and question.reversible,
        )
        for (key, question), reading, original in rows
    }
    return Findings(by_key, [result])


def ask_each(team: Team, groups: Sequence[Group], deadline: Deadline, ask: AskGroup) -> Findings:
    """Ask all groups with `ask` at the same time; a group without an answer fails them all."""

    def job(group: Group) -> Job[Findings]:
        return lambda job_deadline: ask(team, group, job_deadline)

    findings = Findings()
    for outcome in team.flows.run([job(group) for group in groups], deadline, team.caller):
        if isinstance(outcome, ApiError):
            raise outcome
        findings.add(outcome)
    return findings
