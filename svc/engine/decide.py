"""The way of a decision, on one page: request, stages, plan, readings, answers, the audit log."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from svc import limits
from svc.deadline import Deadline
from svc.engine import answer, explain, plans, stages
from svc.engine.ask import Ask, Asked, Asker, Ledger
from svc.engine.flows import FlowPool
from svc.engine.knowledge import Knowledge, nothing_known
from svc.engine.plans import Findings, Group, Team
from svc.engine.prompt import Material
from svc.engine.stages import Answered, Earlier
from svc.errors import InvalidRequest
from svc.pins import LATEST, PINS, Pin
from svc.providers.routing import Model, Router
from svc.questions import Question, Reading
from svc.schemas import DecisionRequest, Plan
from svc.schemas.decision import DEFAULT_PROJECT, STRICT
from svc.schemas.plan import CHAIN
from svc.store.decisions import AskedQuestion, DecisionRecord

REDACTED = "[redacted]"  # what the audit log holds for an extracted value under privacy: strict
Know = Callable[[str, Iterable[Question]], Knowledge]
KeyOf = Callable[[str], str | None]
Present = Callable[[str, Question, dict[str, Any]], dict[str, Any]]


class Journal(Protocol):
    """Where decisions are kept; `add` returns the id once the record is safe."""

    def add(self, record: DecisionRecord) -> str: ...


@dataclass(frozen=True, slots=True)
class Decision:
    """A stored decision: the response's fields, and what it used."""

    response: dict[str, Any]
    input_tokens: int


@dataclass(frozen=True, slots=True)
class _Setup:
    """A request with all that it left open filled in."""

    request: DecisionRequest
    pin: Pin
    plan: Plan
    models: tuple[Model, ...]
    mode: str
    debias: bool | str
    deadline: Deadline
    knowledge: Knowledge
    ledger: Ledger
    project_key: str | None = field(repr=False)

    @property
    def strict(self) -> bool:
        return self.request.privacy == STRICT


class Engine:
    """Makes decisions; one per process, used by every thread."""

    def __init__(
        self,
        router: Router,
        asker: Asker,
        flows: FlowPool,
        journal: Journal,
        salt: bytes,
        latest: str,
        knowledge: Know = nothing_known,
        project_key: KeyOf = lambda _project: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`knowledge` says what a project's labels taught about questions.

        `project_key` gives the project's own key for the aggregator, and may raise `ApiError`.
        """
        self._router, self._asker, self._flows, self._journal = router, asker, flows, journal
        self._salt, self._latest, self._knowledge, self._clock = salt, latest, knowledge, clock
        self._project_key = project_key

    def decide(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        api_key: str | None = None,
        present: Present = lambda _key, _question, fields: fields,
    ) -> Decision:
        """Answer every question of `request` and store the decision.

        `api_key` is the id of the caller's key; `present` shapes each answer for the caller.
        Raises `ApiError`.
        """
        setup = self._set_up(request, deadline)
        started = self._clock()
        answered, asked = self._answer(setup)
        latency_ms = (self._clock() - started) * 1000
        shown = {
            key: present(key, request.questions[key], fields)
            for key, fields in answered.answers.items()
        }
        deadline.check()
        record = self._record(setup, answered, asked, shown, latency_ms, api_key)
        debiased = _debiased(answered.findings.asked)
        response = _response(self._journal.add(record), record, debiased, shown)
        return Decision(response, setup.ledger.input_tokens)

    def _set_up(self, request: DecisionRequest, deadline: Deadline) -> _Setup:
        name = request.config or LATEST
        pin = PINS[self._latest if name == LATEST else name]
        named = request.config is not None
        plan = request.plan or Plan(CHAIN, (self._router.default(pin, named=named),))
        models = tuple(self._router.resolve(model_id) for model_id in plan.models)
        if request.privacy == STRICT:
            for model in models:
                self._router.check_strict(model)
        debias = pin.debias if request.debias is None else request.debias
        calls = stages.planned_calls(request, len(models), 2 if debias else 1)
        calls += explain.planned_calls(request)
        if calls > limits.MODEL_CALLS:
            raise InvalidRequest(
                f"the request needs {calls} model calls, at most {limits.MODEL_CALLS} are allowed"
            )
        project = request.project or DEFAULT_PROJECT
        knowledge = self._knowledge(project, request.questions.values())
        mode = request.mode or pin.mode
        aggregated = any(self._router.provider(model).aggregator for model in models)
        key = self._project_key(project) if aggregated else None
        ledger = Ledger(limits.MODEL_CALLS, len(models))
        return _Setup(request, pin, plan, models, mode, debias, deadline, knowledge, ledger, key)

    def _answer(self, setup: _Setup) -> tuple[Answered, list[Asked]]:
        """All answers, and every asking that they took."""

        def ask_stage(groups: Sequence[Group], earlier: Earlier) -> Findings:
            def ask(model: Model, group: Group, deadline: Deadline) -> Asked:
                wanted = self._ask(setup, model, group, setup.request.state.text, earlier)
                return self._asker.ask(wanted, setup.ledger, deadline)

            confidence = partial(answer.confidence, setup.knowledge)
            team = Team(setup.models, ask, confidence, setup.plan.escalate_below, self._flows)
            return plans.ask_all(setup.plan.kind, team, groups, setup.deadline)

        answered = stages.run(setup.request, setup.knowledge, ask_stage)
        asked = list(answered.findings.asked)
        if setup.request.explain:
            asked += self._explain(setup, answered)
        return answered, asked

    def _explain(self, setup: _Setup, answered: Answered) -> list[Asked]:
        def ask(probe: explain.Probe, text: str, deadline: Deadline) -> Asked:
            like = self._ask(setup, probe.model, probe.group, text, ())
            wanted = replace(like, debias=False, mode=probe.mode)
            return self._asker.ask(wanted, setup.ledger, deadline)

        return explain.add(setup.request, answered, ask, self._flows, setup.deadline)

    def _ask(self, setup: _Setup, model: Model, group: Group, text: str, earlier: Earlier) -> Ask:
        request = setup.request
        questions = tuple(group.questions.values())
        think = request.think or group.think
        return Ask(
            model,
            Material(setup.pin, questions, text, earlier, request.images, think, self._salt),
            setup.mode,
            setup.debias,
            request.project or DEFAULT_PROJECT,
            setup.strict,
            setup.project_key,
        )

    def _record(
        self,
        setup: _Setup,
        answered: Answered,
        asked: Sequence[Asked],
        shown: dict[str, dict[str, Any]],
        latency_ms: float,
        api_key: str | None,
    ) -> DecisionRecord:
        request = setup.request
        cached = bool(asked) and all(one.cached for one in asked)
        return DecisionRecord(
            project=request.project or DEFAULT_PROJECT,
            api_key=api_key,
            state_hash=self._hash(request.state.text),
            model=_models(setup, answered),
            mode=_mode(setup, answered),
            config=setup.pin.name,
            privacy=request.privacy,
            answers=_redacted(request, shown) if setup.strict else shown,
            questions=_asked_questions(request, answered),
            latency_ms=0 if cached or not asked else round(latency_ms, 1),
            cost_usd=round(setup.ledger.cost_usd, 9),
            cached=cached,
            images=tuple(self._hash(image) for image in request.images),
        )

    def _hash(self, text: str) -> bytes:
        return hashlib.sha256(self._salt + text.encode()).digest()


def _models(setup: _Setup, answered: Answered) -> str:
    """The ids that the answers came from, in the plan's order; the plan's own when none did."""
    used = {model for found in answered.findings.by_key.values() for model in found.models}
    ids = [model.id for model in setup.models if model in used or not used]
    return ",".join(dict.fromkeys(ids))


def _mode(setup: _Setup, answered: Answered) -> str:
    """`logprobs` when every answer that models gave was read so; of none, the mode asked for."""
    read = {mode for found in answered.findings.by_key.values() for mode in found.modes}
    return "verbal" if "verbal" in (read or {setup.mode}) else "logprobs"


def _debiased(asked: Sequence[Asked]) -> bool:
    """Whether everything that had an order to reverse was asked in both."""
    orders = [one.debiased for one in asked if one.debiased is not None]
    return bool(orders) and all(orders)


def _redacted(
    request: DecisionRequest, shown: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The answers as they are kept under `privacy: strict`: without any extracted value."""
    return {
        key: {**fields, "value": REDACTED} if "value" in fields else fields
        for key, fields in shown.items()
    }


def _asked_questions(request: DecisionRequest, answered: Answered) -> tuple[AskedQuestion, ...]:
    findings = answered.findings.by_key
    return tuple(
        _asked_question(key, question, findings[key].reading if key in findings else None)
        for key, question in request.questions.items()
    )


def _asked_question(key: str, question: Question, reading: Reading | None) -> AskedQuestion:
    exact = (key, question.digest, question.definition_json)
    if reading is None:
        return AskedQuestion(*exact, None)
    raw = question.stored(reading), question.tally(reading), question.confidence(reading)
    return AskedQuestion(*exact, *raw)


def _response(
    decision_id: str, record: DecisionRecord, debiased: bool, answers: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": decision_id,
        "model": record.model,
        "mode": record.mode,
        "latency_ms": record.latency_ms,
        "cost_usd": record.cost_usd,
        "cached": record.cached,
        "debiased": debiased,
        "project": record.project,
        "config": record.config,
        "answers": answers,
    }
