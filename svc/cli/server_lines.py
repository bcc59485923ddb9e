"""The lines of a run, answered by a running server, which keeps each decision."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import Any

import click

from svc import jsontext
from svc.batch import (
    FAILURES,
    RUN_ID,
    STANDARD,
    Ahead,
    InputLine,
    LineAnswer,
    Progress,
    Record,
    Result,
    RunEnds,
    answer_line,
    new_run_id,
)
from svc.cli.batch_options import Batch
from svc.cli.dry_run import forecast
from svc.cli.lines import Answerer, Answering, InProcessAnswerer, LineWork, Settled, in_threads
from svc.cli.plans import ModelOptions
from svc.cli.provider_batches import ProviderBatchAnswerer
from svc.cli.remote import Remote
from svc.cli.server import Answer, Server, TooSlow, Unreachable
from svc.errors import ApiError, SettingsError
from svc.inprocess import PaidBy
from svc.jsontext import JsonObject
from svc.schemas import load_decision

# A server that does not answer, because it is being started again, is asked for so long.
PATIENCE_S = 60.0
PAUSE_S = 0.5

# The time for the first look whether there is a server.
LOOK_S = 5.0

# A longer wait than this is no rate of a key or of a provider, but a daily budget that is spent.
LONGEST_WAIT_S = 120.0

# What is wrong with every line: the key, its project, or the name of the server.
_WRONG_FOR_ALL = (401, 403, 404, 405, 421)
_LIMITED = 429
_INVALID = 422

IDEMPOTENCY_KEY = "Idempotency-Key"

# What a decision costs at most; more is no cost.
_MOST_USD = 1e6

_SECONDS = re.compile(r"[0-9]{1,9}")


class ServerError(ApiError):
    """An error that the server answered with."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.type = status, kind


def answerer(
    asking: ModelOptions,
    answering: Answering,
    remote: Remote | None,
    batched: Batch | None = None,
    paid_by: PaidBy | None = None,
) -> Answerer:
    """Who answers the lines: the running server, or this process where there is none.

    In a run that is `batched`, these are the providers of the models. `paid_by` are the budgets
    that bound it. Raises `SettingsError`, and
    `UsageError` for options that exclude each other.
    """
    if paid_by is not None and (batched is not None or remote is not None):
        raise click.UsageError("--budget-db goes with neither --url nor --provider-batch.")
    if batched is not None:
        if remote is not None or asking.demo or batched.output == STANDARD:
            raise click.UsageError("--provider-batch goes with neither --url nor --demo nor -o -.")
        return ProviderBatchAnswerer(asking, answering, batched)
    if remote is None:
        return InProcessAnswerer(asking, answering, paid_by)
    return ServerAnswerer(remote.url, remote.key, remote.project, asking)


class ServerAnswerer:
    """Sends the lines to a running server."""

    def __init__(self, url: str, key: str | None, project: str | None, asking: ModelOptions):
        """Raises `SettingsError` for a malformed URL or key."""
        self._server = partial(Server, url, key)
        self._url = self._server(1).url
        of_project = {} if project is None else {"project": project}
        self._fields = {**asking.fields, **of_project}

    def settle(self, questions: JsonObject, at_once: int) -> Settled:
        self._look()
        request = load_decision({**self._fields, "questions": questions, "state": {}})
        identity = {"url": self._url, RUN_ID: new_run_id(), **self._fields}
        # The state of each line stands before this.
        rest = jsontext.dumps({"questions": questions, **self._fields})[1:]
        start = partial(self._start, rest, at_once)
        shared = {"questions": questions, **self._fields}
        return Settled(identity, request, at_once, start, partial(self._forecast, shared))

    def _forecast(self, shared: JsonObject, sample: Sequence[Any], rows: int) -> JsonObject:
        with closing(self._server(1)) as server:
            return forecast(server, shared, sample, rows)

    def _look(self) -> None:
        """Raise `SettingsError` where there is no server; later it may be starting again."""
        with closing(self._server(1)) as server:
            try:
                server.ask("GET", "/health", answer_s=LOOK_S)
            except TooSlow:
                # It is there, and busy.
                return
            except Unreachable as error:
                raise SettingsError(str(error)) from None

    @contextmanager
    def _start(self, rest: str, at_once: int) -> Iterator[LineWork]:
        with closing(self._server(at_once)) as server:
            yield _Lines(server, rest)


class _Lines:
    """Answers lines by any number of threads."""

    outage: int | None = FAILURES
    steady = True

    def __init__(
        self, server: Server, rest: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server, self._rest, self._clock = server, rest, clock
        self._cut = threading.Event()
        self._limited_until = clock()

    def waiting(self) -> float:
        return max(0.0, self._limited_until - self._clock())

    def over(
        self, lines: Iterator[InputLine], at_once: int, progress: Progress, ahead: Ahead, run: str
    ) -> AbstractContextManager[Iterable[Result]]:
        return in_threads(lines, partial(self.work, run), at_once, self.cut, progress, ahead)

    def work(self, run: str, line: InputLine) -> Result:
        return answer_line(partial(self._answer, run, line.number), line)

    def cut(self) -> None:
        self._cut.set()
        self._server.cut()

    def _answer(self, run: str, number: int, record: Record) -> LineAnswer:
        ref = "" if record.ref is None else f'"ref":{jsontext.dumps(record.ref)},'
        text = f'{{"state":{jsontext.dumps(record.value)},{ref}{self._rest}'
        body = text.encode("utf-8", "replace")
        headers = {IDEMPOTENCY_KEY: _key(run, number, body)}
        patient_until = self._clock() + PATIENCE_S
        while not self._cut.is_set():
            try:
                answer = self._server.ask("POST", "/v1/decide", body, headers=headers)
            except Unreachable as error:
                if self._clock() > patient_until:
                    raise ServerError(503, "unreachable", str(error)) from None
                self._cut.wait(PAUSE_S)
                continue
            if headers and _is_not_kept(answer):
                headers = {}
                continue
            if answer.status != _LIMITED:
                return _answered(answer)
            wait_s = _wait_s(answer)
            self._limited_until = max(self._limited_until, self._clock() + wait_s)
            self._cut.wait(wait_s)
            patient_until = self._clock() + PATIENCE_S
        raise RunEnds("the run was ended")


def _key(run: str, number: int, body: bytes) -> str:
    """What tells a line of an output from all others, so that it is decided once."""
    return hashlib.sha256(b"%s %d %s" % (run.encode(), number, body)).hexdigest()


def _is_not_kept(answer: Answer) -> bool:
    """Whether the line was decided before, and the server has not kept the answer."""
    if answer.status != _INVALID or answer.error is None:
        return False
    return answer.error[1].startswith(f"{IDEMPOTENCY_KEY}: ")


def _wait_s(answer: Answer) -> float:
    """How long to wait for a rate; what is no number of seconds, such as a date, counts as one.

    Raises `RunEnds` where it is no rate.
    """
    told = answer.retry_after or ""
    seconds = max(1.0, float(told)) if _SECONDS.fullmatch(told) else 1.0
    if seconds > LONGEST_WAIT_S:
        raise RunEnds(f"the server is at a limit for {seconds:,.0f} s{_words(answer)}")
    return seconds


def _answered(answer: Answer) -> LineAnswer:
    """The decision of an answer. Raises `RunEnds` and `ServerError`."""
    if answer.status == 200 and isinstance(answer.value, dict) and "answers" in answer.value:
        cost = jsontext.finite(answer.value.get("cost_usd"))
        return LineAnswer(answer.value, 0.0 if cost is None or abs(cost) > _MOST_USD else cost)
    if answer.error is None or answer.status in _WRONG_FOR_ALL:
        raise RunEnds(f"the server answered {answer.status}{_words(answer)}")
    raise ServerError(answer.status, *answer.error)


def _words(answer: Answer) -> str:
    return ": it is no svc server" if answer.error is None else f": {answer.error[1]}"
