"""Who answers lines in batches of the models' providers, and what that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial

import click

from svc import inprocess
from svc.cli.batch_options import Batch
from svc.cli.lines import Answering, LineWork, Settled
from svc.cli.plans import ModelOptions
from svc.cli.round_lines import RoundWork
from svc.jsontext import JsonObject
from svc.providers import BatchClient, Provider, without_batches
from svc.schemas import load_decision


class ProviderBatchAnswerer:
    """Sends what lines want of models to their providers in batches."""

    def __init__(self, asking: ModelOptions, answering: Answering, batch: Batch) -> None:
        """`answering` makes the function that answers the value of a line."""
        self._asking, self._answering, self._batch = asking, answering, batch

    def settle(self, questions: JsonObject, at_once: int) -> Settled:
        with inprocess.engine(False, 1) as engine:
            fields = engine.settle(self._asking.fields)
            request = load_decision({**fields, "questions": questions, "state": {}})
            forecasts = engine.forecast(request, batched=True)
            providers = {one.provider: engine.catalog[one.provider] for one in forecasts}
            for provider in providers.values():
                _check(provider)
            work = partial(
                RoundWork,
                self._batch,
                lambda asked: self._answering(asked, request),
                [one.model for one in forecasts],
                sum(one.calls for one in forecasts),
            )
            identity = {"config": engine.config, "provider_batch": True, **fields}
            start = partial(_start, work, list(providers.values()))
            return Settled(identity, request, forecasts, 1, start)


@contextmanager
def _start(work: partial[RoundWork], providers: Sequence[Provider]) -> Iterator[LineWork]:
    with ExitStack() as stack:
        apis = {one.name: stack.enter_context(closing(BatchClient(one))) for one in providers}
        lines = work(apis)
        yield lines
        # The output is closed by now.
        lines.finish()


def _check(provider: Provider) -> None:
    """Raise `UsageError` where the provider has no Batch API that is known here."""
    if trouble := without_batches(provider):
        raise click.UsageError(f"--provider-batch: {trouble}")
