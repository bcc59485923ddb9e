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
from svc.inprocess import forecast_by
from svc.jsontext import JsonObject
from svc.providers import BatchClient, Provider
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
            for provider in engine.forecaster(request).providers:
                _check(provider)
            forecaster = engine.forecaster(request, batched=True)
            work = partial(
                RoundWork,
                self._batch,
                lambda asked: self._answering(asked, request),
                [model.id for model, _ in forecaster.models],
                forecaster.calls,
            )
            identity = {"config": engine.config, "provider_batch": True, **fields}
            providers = {one.name: engine.catalog[one.name] for one in forecaster.providers}
            if self._batch.restart:
                # Batches of the run before may be at others.
                providers |= {n: one for n, one in engine.catalog.items() if not one.no_batches}
            start = partial(_start, work, list(providers.values()))
            return Settled(identity, request, 1, start, forecast_by(forecaster))


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
    if provider.no_batches:
        raise click.UsageError(f"--provider-batch: {provider.no_batches}")
