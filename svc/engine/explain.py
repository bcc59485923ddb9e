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

AskText = Callable[[Model, Group, str, Deadline], Asked]


@dataclass(frozen=True, slots=True)
class _Probe:
    """One call without one field: the questions that one model answered together."""

    model: Model
    group: Group
    without: str


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
        _Probe(model, group, field)
        for model, group in _askings(request, answered)
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


def _askings(request: DecisionRequest, answered: Answered) -> list[tuple[Model, Group]]:
    """Which model is to be asked which questions again."""
    groups: dict[tuple[Model, bool], dict[str, Any]] = {}
    for key, finding in answered.findings.by_key.items():
        question = request.questions[key]
        if question.reversible:
            asking = (finding.models[0], question.think)
            groups.setdefault(asking, {})[key] = question
    return [(model, Group(found, think)) for (model, think), found in groups.items()]


def _job(probe: _Probe, request: DecisionRequest, ask: AskText) -> Job[Asked]:
    fields: Mapping[str, Any] = request.state.fields or {}
    text = jsontext.dumps({k: v for k, v in fields.items() if k != probe.without})
    return lambda lane: ask(probe.model, probe.group, text, lane)


def _drop(answered: Answered, key: str, probe: _Probe, without: Reading) -> float:
    question, label = probe.group.questions[key], answered.labels[key]
    original = answered.findings.by_key[key].original
    drop = question.probability(original, label) - question.probability(without, label)
    return round(drop, DECIMALS)
