"""`explain`: how much of an answer's probability each field of the state carries.

Leave-one-out: every field is left out in turn, and the model that answered is asked again, in the
original order. What the probability of the returned answer drops by is the field's share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from svc import jsontext, limits
from svc.deadline import Deadline
from svc.engine.ask import Asked
from svc.engine.flows import FlowPool, Job
from svc.engine.plans import Group
from svc.engine.stages import Answered
from svc.errors import ApiError
from svc.providers.routing import Model
from svc.questions import Reading
from svc.questions.labels import DECIMALS
from svc.schemas import DecisionRequest


@dataclass(frozen=True, slots=True)
class Probe:
    """One call without one field: the questions that one model answered alike."""

    model: Model
    mode: str
    group: Group
    without: str


AskText = Callable[[Probe, str, Deadline], Asked]


def fields_of(request: DecisionRequest) -> list[str]:
    """The top-level fields that are left out in turn; none of a state that is no object."""
    return list(request.state.fields or {})[: limits.EXPLAIN_FIELDS] if request.explain else []


def add(
    request: DecisionRequest,
    answered: Answered,
    ask: AskText,
    flows: FlowPool,
    deadline: Deadline,
) -> list[Asked]:
    """Add `explain` to the answers that models gave; the askings it took.

    A field whose call fails is left out. Raises `Timeout`.
    """
    probes = [
        Probe(model, mode, group, field)
        for model, mode, group in _askings(request, answered)
        for field in fields_of(request)
    ]
    outcomes = flows.run([_job(probe, request, ask) for probe in probes], deadline)
    asked = []
    for key in {key: None for probe in probes for key in probe.group.questions}:
        answered.answers[key] = {**answered.answers[key], "explain": {}}
    for probe, outcome in zip(probes, outcomes, strict=True):
        if isinstance(outcome, ApiError):
            continue
        asked.append(outcome)
        for key, reading in zip(probe.group.questions, outcome.readings, strict=True):
            answered.answers[key]["explain"][probe.without] = _drop(answered, key, probe, reading)
    return asked


def planned_calls(request: DecisionRequest) -> int:
    """One for each field, and one more where some questions think in calls of their own."""
    kinds = {question.think for question in request.questions.values() if question.reversible}
    return len(kinds) * len(fields_of(request))


def _askings(request: DecisionRequest, answered: Answered) -> list[tuple[Model, str, Group]]:
    """Which model is to be asked which questions again, in the mode that it answered in."""
    groups: dict[tuple[Model, str, bool], dict[str, Any]] = {}
    for key, finding in answered.findings.by_key.items():
        question = request.questions[key]
        if question.reversible:
            asking = (finding.models[0], finding.modes[0], question.think)
            groups.setdefault(asking, {})[key] = question
    return [(model, mode, Group(found, think)) for (model, mode, think), found in groups.items()]


def _job(probe: Probe, request: DecisionRequest, ask: AskText) -> Job[Asked]:
    fields: Mapping[str, Any] = request.state.fields or {}
    text = jsontext.dumps({k: v for k, v in fields.items() if k != probe.without})
    return lambda lane: ask(probe, text, lane)


def _drop(answered: Answered, key: str, probe: Probe, without: Reading) -> float:
    question, label = probe.group.questions[key], answered.labels[key]
    original = answered.findings.by_key[key].original
    drop = question.probability(original, label) - question.probability(without, label)
    return round(drop, DECIMALS)
