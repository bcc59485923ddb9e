"""The way of a decision, on one page: request, models, readings, answers, the audit log."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from svc import limits
from svc.deadline import Deadline
from svc.engine import plans
from svc.engine.answer import answer
from svc.engine.ask import Ask, Asked, Asker, CallAllowance
from svc.errors import InvalidRequest
from svc.pins import LATEST, PINS, Pin
from svc.providers.routing import Model, Router
from svc.schemas import DEFAULT_PROJECT, DecisionRequest
from svc.store.decisions import AskedQuestion, DecisionRecord


class Journal(Protocol):
    """Where decisions are kept; `add` returns the id once the record is safe."""

    def add(self, record: DecisionRecord) -> str: ...


@dataclass(frozen=True, slots=True)
class _Setup:
    """A request with all that it left open filled in."""

    pin: Pin
    models: tuple[Model, ...]
    mode: str
    debias: bool


class Engine:
    """Makes decisions; one per process, used by every thread."""

    def __init__(
        self,
        router: Router,
        asker: Asker,
        journal: Journal,
        salt: bytes,
        latest: str,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._router, self._asker, self._journal = router, asker, journal
        self._salt, self._latest, self._clock = salt, latest, clock

    def decide(
        self, request: DecisionRequest, deadline: Deadline, api_key: str | None = None
    ) -> dict[str, Any]:
        """Answer every question of `request` and store the decision; the response's fields.

        `api_key` is the id of the caller's key. Raises `ApiError`.
        """
        setup = self._set_up(request)
        started = self._clock()
        model, asked = self._ask(request, setup, deadline)
        latency_ms = round((self._clock() - started) * 1000, 1)
        answers = {
            key: answer(question, reading)
            for (key, question), reading in zip(
                request.questions.items(), asked.readings, strict=True
            )
        }
        deadline.check()
        record = DecisionRecord(
            project=request.project or DEFAULT_PROJECT,
            api_key=api_key,
            state_hash=hashlib.sha256(self._salt + request.state_text.encode()).digest(),
            model=model.id,
            mode=asked.mode,
            config=setup.pin.name,
            privacy="standard",
            answers=answers,
            questions=_asked_questions(request, asked),
            latency_ms=latency_ms,
            cost_usd=asked.cost_usd,
            cached=False,
            images=(),
        )
        return _response(self._journal.add(record), record, asked.debiased)

    def _set_up(self, request: DecisionRequest) -> _Setup:
        name = request.config or LATEST
        pin = PINS[self._latest if name == LATEST else name]
        ids = request.plan.models if request.plan else (self._default_model(request, pin),)
        return _Setup(
            pin,
            tuple(self._router.resolve(model_id) for model_id in ids),
            request.mode or pin.mode,
            pin.debias if request.debias is None else request.debias,
        )

    def _default_model(self, request: DecisionRequest, pin: Pin) -> str:
        return self._router.default(pin, named=request.config is not None)

    def _ask(
        self, request: DecisionRequest, setup: _Setup, deadline: Deadline
    ) -> tuple[Model, Asked]:
        calls = len(setup.models) * (2 if setup.debias else 1)
        if calls > limits.MODEL_CALLS:
            raise InvalidRequest(
                f"the request needs {calls} model calls, at most {limits.MODEL_CALLS} are allowed"
            )
        allowance = CallAllowance(limits.MODEL_CALLS)
        questions = tuple(request.questions.values())

        def ask(model: Model) -> Asked:
            one = Ask(
                model, questions, request.state_text, setup.pin, setup.mode, setup.debias
            )
            return self._asker.ask(one, allowance, deadline)

        return plans.chain(setup.models, ask)


def _asked_questions(request: DecisionRequest, asked: Asked) -> tuple[AskedQuestion, ...]:
    return tuple(
        AskedQuestion(key, question.digest, question.definition_json, question.stored(reading))
        for (key, question), reading in zip(request.questions.items(), asked.readings, strict=True)
    )


def _response(decision_id: str, record: DecisionRecord, debiased: bool) -> dict[str, Any]:
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
        "answers": record.answers,
    }
