"""From everything that came of a request to the decision that is stored and answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from svc.engine.plans import Finding, ModelResult
from svc.engine.setup import Setup
from svc.engine.stages import Answered
from svc.questions import Question
from svc.records import Answer, AskedQuestion, Decision
from svc.terms import Mode


def decision(
    setup: Setup,
    answered: Answered,
    asked: Sequence[ModelResult],
    answers: Mapping[str, Answer],
    latency_ms: float,
    api_key: str | None,
) -> Decision:
    """The decision, without the id that it gets where it is stored.

    `asked` are all askings it took and `answers` what the caller gets.
    """
    request, cached = setup.request, bool(asked) and all(one.cached for one in asked)
    orders = [one.debiased for one in answered.findings.asked if one.debiased is not None]
    return Decision(
        project=setup.project,
        api_key=api_key,
        state_hash=_hash(setup, request.state.text),
        model=_models(setup, answered),
        mode=_mode(setup, answered).value,
        config=setup.pin.name,
        privacy=request.privacy.value,
        latency_ms=0 if cached or not asked else round(latency_ms, 1),
        cost_usd=round(setup.ledger.cost_usd, 9),
        cached=cached,
        debiased=bool(orders) and all(orders),
        answers=answers,
        questions=tuple(
            _asked_question(key, question, answered.findings.by_key.get(key))
            for key, question in request.questions.items()
        ),
        images=tuple(_hash(setup, image) for image in request.images),
        input_tokens=setup.ledger.input_tokens,
    )


def _hash(setup: Setup, text: str) -> bytes:
    return hashlib.sha256(setup.salt + text.encode()).digest()


def _models(setup: Setup, answered: Answered) -> str:
    """The ids that the answers came from, in the plan's order; the plan's own when none did."""
    used = {model for found in answered.findings.by_key.values() for model in found.models}
    ids = [model.id for model in setup.models if model in used or not used]
    return ",".join(dict.fromkeys(ids))


def _mode(setup: Setup, answered: Answered) -> Mode:
    """`logprobs` when every answer that models gave was read so; of none, the mode asked for."""
    read = {mode for found in answered.findings.by_key.values() for mode in found.modes}
    return Mode.VERBAL if Mode.VERBAL in (read or {setup.mode}) else Mode.LOGPROBS


def _asked_question(key: str, question: Question, finding: Finding | None) -> AskedQuestion:
    exact = (key, question.digest, question.definition_json)
    if finding is None:
        return AskedQuestion(*exact, None)
    reading = finding.reading
    kept = question.stored(reading)
    if finding.members:
        kept = {**kept, "members": finding.members}
    return AskedQuestion(*exact, kept, question.tally(reading), question.confidence(reading))
