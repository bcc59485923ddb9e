"""How several models work together: chain, council, cascade and race, over one stage's calls.

A stage is asked in groups: the questions of one call, and each question that thinks on its own.
Every plan asks its groups at the same time and gives a `Finding` for every question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from svc.deadline import Deadline
from svc.engine.ask import Asked
from svc.engine.calls import together
from svc.engine.flows import FlowPool, Job
from svc.errors import ApiError, InternalError, Timeout
from svc.providers.routing import Model
from svc.questions import Question, Reading
from svc.schemas.plan import CASCADE, CHAIN, COUNCIL, RACE


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that share a call."""

    questions: Mapping[str, Question]
    think: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What the models of a plan found for one question."""

    reading: Reading
    models: tuple[Model, ...]  # those whose words are in the reading
    modes: tuple[str, ...]  # in which each of them answered
    original: Reading  # the first model's, of the first order that answered
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields that the plan adds


@dataclass(slots=True)
class Findings:
    """All findings of a stage, and every successful asking behind them."""

    by_key: dict[str, Finding] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.by_key.update(other.by_key)
        self.asked += other.asked


@dataclass(frozen=True, slots=True)
class Team:
    """The models of a request and the way to ask one of them a group."""

    models: tuple[Model, ...]
    ask: Callable[[Model, Group, Deadline], Asked]
    confidence: Callable[[Question, Reading], float]  # calibrated
    escalate_below: float
    flows: FlowPool


def ask_all(kind: str, team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    """Ask every group by the plan of this kind.

    Raises what the models' failures amount to together when a group has no answer, `Timeout`.
    """
    if not groups:
        return Findings()
    return PLANS[kind](team, groups, deadline)


def _chain(team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    def job(group: Group) -> Job[Findings]:
        return lambda lane: _first_that_answers(team, group, lane)

    return _joined(team.flows.run([job(group) for group in groups], deadline))


def _first_that_answers(team: Team, group: Group, deadline: Deadline) -> Findings:
    failures: list[ApiError] = []
    empty: Findings | None = None
    for model in team.models:
        try:
            asked = team.ask(model, group, deadline)
        except (Timeout, InternalError):
            raise
        except ApiError as error:
            failures.append(error)
            continue
        found = _findings(group, model, asked)
        if _answers(asked):
            return found
        empty = empty or found
    if empty is not None:
        return empty
    raise together(failures)


def _council(team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    seats = [(group, model) for group in groups for model in team.models]
    outcomes = team.flows.run([_asking(team, model, group) for group, model in seats], deadline)
    findings = Findings()
    size = len(team.models)
    for index, group in enumerate(groups):
        findings.add(_blended(group, team.models, outcomes[index * size : (index + 1) * size]))
    return findings


def _blended(
    group: Group, models: Sequence[Model], outcomes: Sequence[Asked | ApiError]
) -> Findings:
    members = [
        (model, asked)
        for model, asked in zip(models, outcomes, strict=True)
        if isinstance(asked, Asked)
    ]
    if not members:
        raise together([outcome for outcome in outcomes if isinstance(outcome, ApiError)])
    findings = Findings(asked=[asked for _, asked in members])
    for index, (key, question) in enumerate(group.questions.items()):
        reading, agreement = question.blend([asked.readings[index] for _, asked in members])
        findings.by_key[key] = Finding(
            reading,
            tuple(model for model, _ in members),
            tuple(asked.mode for _, asked in members),
            members[0][1].original[index],
            {"agreement": round(agreement, 6)},
        )
    return findings


def _cascade(team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    def job(group: Group) -> Job[Findings]:
        return lambda lane: _escalated(team, group, lane)

    return _joined(team.flows.run([job(group) for group in groups], deadline))


def _escalated(team: Team, group: Group, deadline: Deadline) -> Findings:
    """Only the questions that are still unsure go on to the next model."""
    findings = Findings()
    failures: list[ApiError] = []
    open_questions = dict(group.questions)
    for model in team.models:
        try:
            step = Group(open_questions, group.think)
            found = _findings(step, model, team.ask(model, step, deadline))
        except (Timeout, InternalError):
            raise
        except ApiError as error:
            failures.append(error)
            continue
        for key, finding in found.by_key.items():
            if finding.reading.answered or key not in findings.by_key:
                answered_by = {"answered_by": model.id}
                findings.by_key[key] = replace(finding, extra=answered_by)
        findings.asked += found.asked
        open_questions = {
            key: question
            for key, question in open_questions.items()
            if team.confidence(question, findings.by_key[key].reading) < team.escalate_below
        }
        if not open_questions:
            break
    if not findings.by_key:
        raise together(failures)
    return findings


def _race(team: Team, groups: Sequence[Group], deadline: Deadline) -> Findings:
    heats = [[_asking(team, model, group) for model in team.models] for group in groups]
    findings = Findings()
    for group, heat in zip(groups, team.flows.race(heats, _answers, deadline), strict=True):
        if heat.winner is None:
            raise together(heat.failures)
        index, asked = heat.winner
        findings.add(_findings(group, team.models[index], asked))
    return findings


PLANS = {CHAIN: _chain, COUNCIL: _council, CASCADE: _cascade, RACE: _race}


def _answers(asked: Asked) -> bool:
    """Whether a model answered any of its questions validly."""
    return any(reading.answered for reading in asked.readings)


def _asking(team: Team, model: Model, group: Group) -> Job[Asked]:
    return lambda lane: team.ask(model, group, lane)


def _findings(group: Group, model: Model, asked: Asked) -> Findings:
    rows = zip(group.questions, asked.readings, asked.original, strict=True)
    by_key = {
        key: Finding(reading, (model,), (asked.mode,), original) for key, reading, original in rows
    }
    return Findings(by_key, [asked])


def _joined(outcomes: Sequence[Findings | ApiError]) -> Findings:
    """All groups' findings; one group without an answer fails the whole."""
    findings = Findings()
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            raise outcome
        findings.add(outcome)
    return findings
