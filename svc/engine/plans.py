"""How several models work together on the questions of one stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from svc.engine.ask import Asked
from svc.engine.calls import together
from svc.errors import ApiError, InternalError, Timeout
from svc.providers.routing import Model


def chain(models: Sequence[Model], ask: Callable[[Model], Asked]) -> tuple[Model, Asked]:
    """The first model that answers, and what it said; the others are tried in order.

    Raises what the failures amount to together, or at once what no other model would mend.
    """
    failures: list[ApiError] = []
    for model in models:
        try:
            return model, ask(model)
        except (Timeout, InternalError):
            raise
        except ApiError as error:
            failures.append(error)
    raise together(failures)
