"""A job whose rows are answered in batches of providers, from its first step to its last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from svc.bootstrap import Services
from svc.bulk.answering import Answering, JobEnded
from svc.bulk.batch_apis import BatchApis
from svc.bulk.book import Book, rows_that_fit
from svc.bulk.first_rows import ask_first
from svc.bulk.job_rounds import JobRounds, RowsOf, unsettled
from svc.schemas import DecisionRequest
from svc.store import Job

LEARNING = "the answer to its first row"
ITS_TURN = "its turn to decide about rows, which other jobs have now"

# The pause between two looks at whether there is a place for a further job that decides.
_TURN_LOOK_S = 0.1


class BatchedJob:
    """Answers the rows of one job, in whichever thread calls `run`."""

    def __init__(
        self,
        services: Services,
        job: Job,
        template: DecisionRequest,
        answering: Answering,
        rows_of: RowsOf,
    ) -> None:
        """`answering` asks about single rows."""
        self.job = job
        self.waiting_for: str | None = LEARNING
        self._services, self._template, self._answering = services, template, answering
        self._rows_of = rows_of
        self._over = threading.Event()
        self._apis = BatchApis(services)

    def end(self) -> None:
        """Have `run` end before its next row, and what is under way at its provider at once."""
        self._over.set()
        self._apis.close()

    def wait(self, seconds: float) -> None:
        """Wait so long, unless it has to end."""
        self._over.wait(seconds)

    def run(self) -> None:
        """Answer every row that is not settled.

        Raises `JobEnded` where it has to end, `JobFails`, `RoundsEnd`, `SpoolLost`, `ApiError` and
        `SettingsError` where the job cannot go on, and `StorageError`.
        """
        with ExitStack() as stack:
            stack.callback(self._apis.close)
            self._run(stack)

    def _run(self, stack: ExitStack) -> None:
        services, job = self._services, self.job
        plan = services.batches.plan(self._template)
        apis = self._apis.of(plan.providers.values(), job.project)
        sealing = services.spool.sealing(job.id)
        book = Book(services.spool.book(job.id), apis, job.id.encode(), sealing)
        book.check()
        known = book.known
        if known is None:
            self._learn(plan.models)
            traits = services.core.client.traits
            known = {model: traits.in_project(model, job.project) for model in plan.models}
        core = stack.enter_context(closing(services.replaying(book, known)))
        bodies = core.engine.bodies(self._template)
        bytes_of = self._bytes_of(bodies.on_disk)
        if book.known is None:
            share = services.spool.room.share
            book.know(known, rows_that_fit(job.rows, bodies.calls, bytes_of, share))
        poll_s = services.settings.batch_poll_s
        rounds = JobRounds(
            job,
            book,
            self._rows_of(core.engine),
            lambda: services.spool.opened(job.id),
            lambda: services.jobs.settled(job),
            self._check,
            self.in_turn,
            services.spool.room,
            bytes_of,
            poll_s,
            lambda: services.batches.hindrance(job.project, job.api_key),
        )
        stack.callback(rounds.leave_room)
        self._go(rounds, poll_s)
        services.spool.delete(job.id)
        book.remove()

    def _bytes_of(self, on_disk: Callable[[int, int], int]) -> Callable[[range], int]:
        """What gives the bytes of calls for the numbers of their rows.

        `on_disk` gives them for how many rows there are, and the bytes of their JSON.
        """
        with closing(self._services.spool.opened(self.job.id)) as file:
            sizes = file.sizes()
        return lambda rows: on_disk(len(rows), sum(sizes[rows.start - 1 : rows.stop - 1]))

    def _go(self, rounds: JobRounds, poll_s: float) -> None:
        while True:
            rounds.step()
            if rounds.finished:
                return
            self.waiting_for = rounds.waiting_for
            self.wait(poll_s)
            self._check()
            if self._apis.have_other_keys():
                # It is begun again, with the new key.
                raise JobEnded

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Inside it rows may be decided about; it waits until the job's key has a place."""
        places, key_id = self._services.spool.replayed, self.job.api_key
        while not places.take(key_id):
            self.waiting_for = ITS_TURN
            self.wait(_TURN_LOOK_S)
            self._check()
        self.waiting_for = None
        try:
            yield
        finally:
            places.give_back(key_id)

    def _check(self) -> None:
        """Raise `JobEnded` where no row of the job is to be asked, or none now."""
        if self._over.is_set() or not self._services.jobs.is_open(self.job.seq):
            raise JobEnded

    def _learn(self, models: tuple[str, ...]) -> None:
        """Ask about a row directly where it is not known how its models can be asked."""
        traits, job = self._services.core.client.traits, self.job

        def known(model: str) -> bool:
            return traits.is_known(model, job.project)

        if all(map(known, models)):
            return

        def rows() -> Iterator[tuple[int, str]]:
            self._check()
            settled = self._services.jobs.settled(job)
            return unsettled(lambda: self._services.spool.opened(job.id), settled, _all(job))

        def wait(seconds: float) -> None:
            self.waiting_for = f"{LEARNING}: the models fail"
            self.wait(seconds)
            self._check()

        ask_first(
            rows,
            lambda number, text: self._answering.answer(
                job.seq, number, text, self._template, job.api_key
            ),
            lambda: any(map(known, models)),
            wait,
        )


def _all(job: Job) -> range:
    return range(1, job.rows + 1)
