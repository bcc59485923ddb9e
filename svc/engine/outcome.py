"""Puts together the decision that is stored and returned, from all results of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate

from svc import limits
from svc.engine.plans import Finding, ModelResult
from svc.engine.setup import Setup, digest
from svc.engine.stages import Answered
from svc.questions import Question
from svc.records import Answer, AskedQuestion, Decision, Model
from svc.terms import Mode


def decision(
    setup: Setup,
    answered: Answered,
    results: Sequence[ModelResult],
    answers: Mapping[str, Answer],
    latency_ms: float,
    api_key: str | None,
) -> Decision:
    """The decision, without the id that it gets where it is stored.

    `results` are those of all models that were asked, and `answers` are what the caller gets.
    """
    request = setup.request
    # A call that failed, or whose answer did not count, may be paid as well.
    cached = bool(results) and all(result.cached for result in results) and not setup.ledger.ended
    debiased = [
        result.debiased for result in answered.findings.results if result.debiased is not None
    ]
    return Decision(
        project=setup.project,
        api_key=api_key,
        state_hash=digest(setup.salt, request.state.text),
        model=_models(setup, answered),
        mode=_mode(setup, answered).value,
        config=setup.pin.name,
        privacy=request.privacy.value,
        latency_ms=0.0 if cached or not results else round(latency_ms, 1),
        cost_usd=round(setup.ledger.cost_usd, 9),
        cached=cached,
        provider_models=_served_by(answered.findings.results),
        debiased=bool(debiased) and all(debiased),
        answers=answers,
        questions=tuple(
            _asked_question(key, question, answered.findings.by_key.get(key))
            for key, question in request.questions.items()
        ),
        images=tuple(image.digest for image in setup.images),
        ref=request.ref,
        tags=request.tags,
        input_tokens=setup.ledger.input_tokens,
        output_tokens=setup.ledger.output_tokens,
        details=setup.ledger.details,
    )


def _models(setup: Setup, answered: Answered) -> str:
    """The ids of the models that answered, in the plan's order; all of the plan when none did."""
    used = {model for finding in answered.findings.by_key.values() for model in finding.models}
    return named([model for model in setup.models if model in used or not used])


def named(models: Sequence[Model]) -> str:
    """The full ids of models, each once, joined by commas."""
    return ",".join(dict.fromkeys(model.id for model in models))


def _served_by(results: Sequence[ModelResult]) -> str | None:
    """What the providers called the models that were asked, each once, as far as there is room."""
    names = dict.fromkeys(name for result in results for name in result.served_by)
    lengths = accumulate(len(name) + len(", ") for name in names)
    ends = zip(names, lengths, strict=True)
    return ", ".join(name for name, end in ends if end <= limits.PROVIDER_NAMES_CHARS) or None


def _mode(setup: Setup, answered: Answered) -> Mode:
    """`logprobs` when all answers of models were read so; without any, the mode of the request."""
    modes = {mode for finding in answered.findings.by_key.values() for mode in finding.modes}
    return Mode.VERBAL if Mode.VERBAL in (modes or {setup.mode}) else Mode.LOGPROBS


def _asked_question(key: str, question: Question, finding: Finding | None) -> AskedQuestion:
    exact = partial(
        AskedQuestion, key, question.digest, question.definition_json, type=question.type
    )
    if finding is None:
        return exact(None)
    reading = finding.reading
    kept = {**question.stored(reading), "by": finding.answered_by}
    if finding.members:
        kept = {**kept, "members": finding.members}
    return exact(kept, question.tally(reading), question.confidence(reading))
