"""The lines of a run, answered in batches of the models' providers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from svc import inprocess
from svc.batch import (
    RUN_SUFFIX,
    InputLine,
    Interruptions,
    Kind,
    Progress,
    Result,
    answer_line,
)
from svc.bulk import Book, Rounds
from svc.cli.batch_options import Batch
from svc.cli.lines import Answering, LineWork, Settled
from svc.cli.plans import ModelOptions
from svc.engine.forecast import ModelForecast
from svc.errors import SettingsError
from svc.inprocess import InProcess
from svc.jsontext import JsonObject
from svc.providers import CHAT, BatchClient, Provider
from svc.schemas import DecisionRequest, load_decision

# The longest time between two looks for a signal, in seconds.
_LOOK_S = 0.5

# So many of the first lines are tried until one can be asked directly.
_TRIED = 100


class ProviderBatchAnswerer:
    """Sends what lines want of models to their providers in batches."""

    def __init__(self, asking: ModelOptions, answering: Answering, batch: Batch) -> None:
        """`answering` makes the function that answers the value of a line."""
        self._asking, self._answering, self._batch = asking, answering, batch
        self._work: _BatchWork | None = None

    def settle(self, questions: JsonObject, at_once: int) -> Settled:
        with inprocess.engine(False, 1) as engine:
            fields = engine.settle(self._asking.fields)
            request = load_decision({**fields, "questions": questions, "state": {}})
            forecasts = engine.forecast(request)
            providers = [_batched(engine.catalog[one.provider]) for one in forecasts]
            identity = {"config": engine.config, "provider_batch": True, **fields}
            start = partial(self._start, request, forecasts, providers)
            models = tuple(map(_in_batches, forecasts, providers))
            return Settled(identity, request, models, 1, start)

    def finish(self, _request: DecisionRequest) -> None:
        """Delete the replies, once every result is in the output."""
        if self._work is not None:
            self._work.finish()

    @contextmanager
    def _start(
        self,
        request: DecisionRequest,
        forecasts: tuple[ModelForecast, ...],
        providers: list[Provider],
    ) -> Iterator[LineWork]:
        with ExitStack() as stack:
            apis = {one.name: stack.enter_context(closing(BatchClient(one))) for one in providers}
            answering = partial(_answering, self._answering, request)
            self._work = _BatchWork(self._batch, answering, forecasts, apis)
            yield self._work


class _BatchWork:
    """Turns lines into results in rounds of batches."""

    # A call is sent several times before it has failed, so that no outage is left to wait for.
    outage: int | None = None

    def __init__(
        self,
        batch: Batch,
        answering: Callable[[InProcess], Callable[[InputLine], Result]],
        forecasts: tuple[ModelForecast, ...],
        apis: Mapping[str, BatchClient],
    ) -> None:
        self._batch, self._answering, self._apis = batch, answering, apis
        self._models = [one.model for one in forecasts]
        self._calls = sum(one.calls for one in forecasts)
        self._book: Book | None = None
        self._complete = False

    def waiting(self) -> float:
        """No rate limit delays a batch."""
        return 0.0

    @contextmanager
    def over(
        self, lines: Iterator[InputLine], at_once: int, progress: Progress
    ) -> Iterator[Iterable[Result]]:
        """The results of the lines, in their order."""
        self._book = book = self._opened()
        if book.known is None:
            lines = self._learn(book, lines)
        woken = threading.Event()
        with (
            inprocess.replay(book, book.known or {}) as engine,
            Interruptions(woken.set) as interruptions,
        ):
            pause = partial(_pause, woken, interruptions, progress)
            work = self._answering(engine)
            rounds = Rounds(book, work, self._calls, engine.poll_s, pause, progress.tell)
            yield self._all(rounds.results(lines))

    def finish(self) -> None:
        """Delete the replies, unless some are still needed."""
        if self._book is not None and self._complete:
            self._book.remove()

    def _all(self, results: Iterator[Result]) -> Iterator[Result]:
        for result in results:
            yield result
            if result.kind is Kind.END:
                return
        self._complete = True

    def _opened(self) -> Book:
        """The book beside the output, a new one where the run starts again."""
        # Lines that are asked again have other replies.
        suffix = ".retried.batch" if self._batch.retry_failed else ".batch"
        folder = Path(self._batch.output + suffix)
        record = Path(self._batch.output + RUN_SUFFIX).read_bytes()
        book = Book(folder, self._apis, record)
        if self._batch.restart:
            book.cancel()
            book.remove()
            book = Book(folder, self._apis, record)
        book.check()
        return book

    def _learn(self, book: Book, lines: Iterator[InputLine]) -> Iterator[InputLine]:
        """Ask about one line directly, to learn how its models can be asked; all the lines.

        Otherwise each line would find out by itself, in rounds of its own. Raises `SettingsError`
        where there is no such model.
        """
        tried = []
        with inprocess.engine(False, 1) as engine:
            work = self._answering(engine)
            for line in islice(lines, _TRIED):
                tried.append(line)
                result = work(line)
                if result.kind is not Kind.REFUSED:
                    break
            book.know({model: engine.client.traits.of(model) for model in self._models})
        return chain(tried, lines)


def _answering(
    answering: Answering, request: DecisionRequest, engine: InProcess
) -> Callable[[InputLine], Result]:
    return partial(answer_line, answering(engine, request))


def _pause(
    woken: threading.Event, interruptions: Interruptions, progress: Progress, seconds: float
) -> None:
    """Wait, unless a signal ends the run."""
    end = time.monotonic() + seconds
    while True:
        interruptions.check()
        left = end - time.monotonic()
        if left <= 0:
            return
        progress.refresh()
        woken.wait(min(left, _LOOK_S))


def _batched(provider: Provider) -> Provider:
    """The provider, which has a Batch API. Raises `SettingsError` for any other."""
    if provider.batch is None or provider.kind != CHAT:
        raise SettingsError(
            f"--provider-batch: no Batch API of provider {provider.name!r} is known; where it has "
            f"OpenAI's, set SVC_PROVIDER_{provider.name.upper()}_BATCH=1"
        )
    return provider


def _in_batches(one: ModelForecast, provider: Provider) -> ModelForecast:
    """What is forecast of a model where it is asked in batches, which have no rate."""
    share = provider.batched().price_share
    price = None if one.price is None else (one.price[0] * share, one.price[1] * share)
    return replace(one, rpm=None, price=price)
