"""How many model calls a request takes if no question is skipped or answered by a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from svc import limits
from svc.engine.plans import grouped
from svc.errors import InvalidRequest
from svc.providers import Provider
from svc.records import Model
from svc.schemas import DecisionRequest


def orders_of(debias: bool | str) -> int:
    """In how many orders of the options questions are asked at most."""
    return 2 if debias else 1


def check(request: DecisionRequest, planned: int) -> None:
    """Raise `InvalidRequest` where a request would take more calls than one may.

    `planned` are those of its stages, see `of_stages`.
    """
    calls = of_explain(request) + planned
    if calls > limits.MODEL_CALLS:
        raise InvalidRequest(
            f"the request needs {calls} model calls, at most {limits.MODEL_CALLS} are allowed"
        )


def check_options(request: DecisionRequest, members: int, orders: int) -> None:
    """Raise `InvalidRequest` where too many probabilities of options would be read from replies."""
    options = sum(
        len(question.option_names) * (orders if question.reversible else 1)
        for question in request.questions.values()
    )
    if members * options > limits.READ_OPTIONS:
        raise InvalidRequest(
            f"model: {members} models asked for {options:,} probabilities of options each are too "
            f"many, at most {limits.READ_OPTIONS:,} are read for a request"
        )


def of_stages(request: DecisionRequest, members: int, orders: int) -> int:
    """The calls of the plan: one for each stage, group of questions, member and option order."""
    calls = 0
    for keys in request.stages:
        for group in grouped({key: request.questions[key] for key in keys}):
            reversible = any(question.reversible for question in group.questions.values())
            calls += members * (orders if reversible else 1)
    return calls


def at_once(
    request: DecisionRequest,
    models: Sequence[Model],
    orders: int,
    provider_of: Callable[[Model], Provider],
    wanted: int,
    share: float = 1.0,
    calls_of: Callable[[Model], int] = lambda _model: 1,
) -> int:
    """How many of the `wanted` decisions to make at once, so that rate limits delay none much.

    The calls under way at a provider are at most those of a minute, half of a deadline, where such
    a `share` of its rate may be used. `calls_of` says how many a model takes to be asked once.
    """
    for provider in map(provider_of, models):
        if provider.rpm is not None:
            members = sum(calls_of(model) for model in models if model.provider == provider.name)
            calls = min(limits.MODEL_CALLS, of_stages(request, members, orders))
            wanted = min(wanted, max(1, int(share * provider.rpm) // max(1, calls)))
    return wanted


def of_explain(request: DecisionRequest) -> int:
    """The calls of `explain`: one a field, or two where only some of the questions think."""
    kinds = {question.think for question in request.questions.values() if question.reversible}
    return len(kinds) * len(explained_fields(request))


def explained_fields(request: DecisionRequest) -> list[str]:
    """The top-level fields that `explain` leaves out in turn; none if the state is no object."""
    return list(request.state.fields or {})[: limits.EXPLAIN_FIELDS] if request.explain else []
