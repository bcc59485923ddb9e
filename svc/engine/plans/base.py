"""What every kind of plan shares: groups of questions, what was found for each, and the kind.

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
from svc.questions import Opinions, Question, Reading
from svc.questions.fields import Number
from svc.records import Model
from svc.terms import Mode


@dataclass(frozen=True, slots=True)
class Plan:
    """Models in the order given, and how they work together; a single model is a chain of one."""

    kind: str
    models: tuple[str, ...]
    options: Mapping[str, float] = field(default_factory=dict)  # further fields of its kind


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that share a call."""

    questions: Mapping[str, Question]
    think: bool = False


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What one model said: a reading for each question, and what it took."""

    readings: tuple[Reading, ...]
    original: tuple[Reading, ...]  # of the first order that answered, before merging
    mode: Mode  # never auto
    debiased: bool | None  # None when there was no order to reverse
    cached: bool = False

    @property
    def answers(self) -> bool:
        """Whether the model answered any of the questions validly."""
        return any(reading.answered for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Finding:
    """What the models of a plan found for one question."""

    reading: Reading
    models: tuple[Model, ...]  # those whose words are in the reading
    modes: tuple[Mode, ...]  # in which each of them answered
    original: Reading  # the first model's, of the first order that answered
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields that the plan adds
    # What each member of a council said, by model; None where its call failed.
    members: Mapping[str, Sequence[float] | None] = field(default_factory=dict)


@dataclass(slots=True)
class Findings:
    """All findings of a stage, and every successful asking behind them."""

    by_key: dict[str, Finding] = field(default_factory=dict)
    asked: list[ModelResult] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.by_key.update(other.by_key)
        self.asked += other.asked


class GroupAsker(Protocol):
    """Asks one model the questions of a group."""

    def ask(self, model: Model, group: Group, deadline: Deadline) -> ModelResult: ...


class Learned(Protocol):
    """What labels taught.

    `confidence` is how sure the calibrated reading of a question is of its top answer; `pool` what
    each of the models counts that answer together, in their order, None while they count alike.
    """

    def confidence(self, question: Question, reading: Reading) -> float: ...
    def pool(self, question: Question, models: tuple[str, ...]) -> Opinions | None: ...


@dataclass(frozen=True, slots=True)
class Team:
    """The models of a request, the way to ask one of them a group, and the plan's options."""

    models: tuple[Model, ...]
    asking: GroupAsker
    knowledge: Learned
    options: Mapping[str, float]
    flows: FlowPool

    def job(self, model: Model, group: Group) -> Job[ModelResult]:
        """GroupAsker one model a group, to be run later."""
        return lambda lane: self.asking.ask(model, group, lane)


@dataclass(frozen=True, slots=True)
class Option:
    """A further field of a plan kind: what it may be, when it is left out, what it means."""

    field: Number
    default: float
    help: str  # a sentence for the command line
    word: str  # what stands before its value where a plan is told in few words


AskGroup = Callable[[Team, Group, Deadline], Findings]


class PlanKind(ABC):
    """A way in which several models work together; one file beside this one holds one kind."""

    name: ClassVar[str]  # the member of `model`, and the option of the command line
    meaning: ClassVar[str]  # a sentence for the documentation of the API
    help: ClassVar[str]  # a sentence for the help of the command line
    members: ClassVar[tuple[int, int]] = (1, limits.MODEL_CALLS)  # fewest and most models
    options: ClassVar[Mapping[str, Option]] = {}

    @abstractmethod
    def ask(self, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
        """Ask every group.

        Raises what the models' failures amount to together when a group has no answer, `Timeout`.
        """


def grouped(questions: Mapping[str, Question]) -> list[Group]:
    """One group of all questions, and one of its own for each that thinks."""
    together = {key: question for key, question in questions.items() if not question.think}
    alone = [
        Group({key: question}, think=True) for key, question in questions.items() if question.think
    ]
    return [Group(together), *alone] if together else alone


def found_by(group: Group, model: Model, asked: ModelResult) -> Findings:
    """The findings of a group that one model answered."""
    rows = zip(group.questions, asked.readings, asked.original, strict=True)
    by_key = {
        key: Finding(reading, (model,), (asked.mode,), original) for key, reading, original in rows
    }
    return Findings(by_key, [asked])


def ask_each(team: Team, groups: Sequence[Group], deadline: Deadline, ask: AskGroup) -> Findings:
    """Ask every group with `ask`, all at the same time; one without an answer fails the whole."""

    def job(group: Group) -> Job[Findings]:
        return lambda lane: ask(team, group, lane)

    findings = Findings()
    for outcome in team.flows.run([job(group) for group in groups], deadline):
        if isinstance(outcome, ApiError):
            raise outcome
        findings.add(outcome)
    return findings
