"""`explain`: how much of an answer's probability each field of the state carries.

Leave-one-out: every field is left out in turn, and the model that answered is asked again, in the
original order. The field's share is how much the probability of the returned answer drops by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from svc import jsontext
from svc.engine.ask import Asker
from svc.engine.decision_asker import DecisionAsker
from svc.engine.planned_calls import explained_fields
from svc.engine.plans import Group, ModelResult
from svc.engine.setup import Setup
from svc.engine.stages import Answered
from svc.errors import ApiError
from svc.flows import FlowPool, Job
from svc.questions import DECIMALS, Question, Reading
from svc.records import Model
from svc.schemas import DecisionRequest
from svc.terms import Mode


@dataclass(frozen=True, slots=True)
class Probe:
    """One call without one field: the questions that one model answered in the same mode."""

    model: Model
    mode: Mode
    group: Group
    without: str


def add(setup: Setup, asker: Asker, answered: Answered, flows: FlowPool) -> list[ModelResult]:
    """Add `explain` to the answers that models gave; the results of the calls it took.

    A field whose call fails is left out, and so is every field of an answer that was given in one
    of two orders, which may be another one than that of the calls. Where many models answered, the
    first fields have the calls that are left. Raises `Timeout`.
    """
    request = setup.request
    states, groups = _states(setup), _groups(request, answered)
    # To write a prompt that is not sent takes as long as one that is.
    probes = [Probe(*group, field) for field in states for group in groups][: setup.ledger.left]
    outcomes = flows.run(
        [_job(setup, asker, probe, states[probe.without]) for probe in probes],
        setup.deadline,
        setup.ledger.caller,
    )
    shares: dict[str, dict[str, float]] = {
        key: {}
        for key, finding in answered.findings.by_key.items()
        if states and request.questions[key].reversible
    }
    results = []
    for probe, outcome in zip(probes, outcomes, strict=True):
        if isinstance(outcome, ApiError):
            continue
        results.append(outcome)
        for key, reading in zip(probe.group.questions, outcome.readings, strict=True):
            shares[key][probe.without] = _drop(answered, key, probe, reading)
    for key, by_field in shares.items():
        answered.answers[key] = answered.answers[key].plus(explain=by_field)
    return results


def _groups(request: DecisionRequest, answered: Answered) -> list[tuple[Model, Mode, Group]]:
    """Which model is asked which questions again, in the mode in which it answered them."""
    groups: dict[tuple[Model, Mode, bool], dict[str, Question]] = {}
    for key, finding in answered.findings.by_key.items():
        question = request.questions[key]
        if question.reversible and not finding.lopsided:
            shared = (finding.models[0], finding.modes[0], question.think)
            groups.setdefault(shared, {})[key] = question
    return [
        (model, mode, Group(questions, think)) for (model, mode, think), questions in groups.items()
    ]


def _states(setup: Setup) -> Mapping[str, str]:
    """By each field that is left out, the state without it; every field is written once for all."""
    fields: Mapping[str, Any] = setup.request.state.fields or {}
    written = {name: jsontext.dumps({name: value})[1:-1] for name, value in fields.items()}
    return {
        without: f"{{{','.join(text for name, text in written.items() if name != without)}}}"
        for without in explained_fields(setup.request)
    }


def _job(setup: Setup, asker: Asker, probe: Probe, state: str) -> Job[ModelResult]:
    decision_asker = DecisionAsker(asker, replace(setup, debias=False, mode=probe.mode), state)
    return lambda deadline: decision_asker.ask(probe.model, probe.group, deadline)


def _drop(answered: Answered, key: str, probe: Probe, reading: Reading) -> float:
    question, label = probe.group.questions[key], answered.top(key)
    original = answered.findings.by_key[key].original
    drop = question.probability(original, label) - question.probability(reading, label)
    return round(drop, DECIMALS)
