"""The client: one service, asked over HTTP by any number of threads."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import isfinite
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, TypeVar, overload
from urllib.parse import urlencode

from svc.client import pauses
from svc.client.connections import Answer, Connections
from svc.client.decisions import Decision, Label
from svc.client.errors import InvalidRequest, ServiceError, refused
from svc.client.forecasts import Forecast
from svc.client.questions import JsonObject, Question

ResultT = TypeVar("ResultT")

# The service answers within 120 seconds, with an error where it has to.
TIMEOUT_S = 130.0

# Requests at the same time in `decide_many`, unless told otherwise, and how many results for each
# of them may wait for the first one that is missing.
CONCURRENCY = 16
_AHEAD = 4


class Client:
    """Asks one service; a context manager that closes its connections.

    It sends again what a limit, a failed model or a broken connection left without an answer, up
    to `retries` times; a `Retry-After` of up to two minutes is waited for. Every call has an
    `Idempotency-Key` of its own, so that the service does its work once.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7777",
        api_key: str | None = None,
        project: str | None = None,
        *,
        retries: int = 4,
        timeout_s: float = TIMEOUT_S,
        connections: int = CONCURRENCY,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """`project` is that of all requests; `timeout_s` bounds each wait for the service."""
        self._project, self._retries, self._sleep = project, retries, sleep
        self._connections = Connections(url.rstrip("/"), api_key, connections, timeout_s)

    def decide(
        self,
        state: Any,
        questions: Mapping[str, Question] | None = None,
        /,
        *,
        model: Any = None,
        ref: str | None = None,
        tags: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        **by_key: Question,
    ) -> Decision:
        """The answers to questions about `state`, a text or any JSON value.

        Questions are given by name, or as a mapping where a key is no Python name. `model` is one
        id, a list of ids to fall back on, or a plan such as `{"council": [...]}`. `ref` and `tags`
        are the caller's own. `more` holds further fields of the request, such as `mode`. A repeat
        of a call with the same `idempotency_key` gets its decision; without one, each call has a
        key of its own. Raises `ServiceError`.
        """
        options = {"state": state, **_given(model=model, ref=ref, tags=tags)}
        body = self._body({**(questions or {}), **by_key}, options, more)
        answer = self._post("/v1/decide", body, idempotency_key)
        return _understood(lambda: Decision(answer, self.feedback))

    @overload
    def decide_many(
        self,
        states: Iterable[Any],
        questions: Mapping[str, Question] | None = None,
        /,
        *,
        concurrency: int = ...,
        progress: Callable[[int], object] | None = ...,
        errors: Literal["raise"] = ...,
        **options: Any,
    ) -> Iterator[Decision]: ...
    @overload
    def decide_many(
        self,
        states: Iterable[Any],
        questions: Mapping[str, Question] | None = None,
        /,
        *,
        concurrency: int = ...,
        progress: Callable[[int], object] | None = ...,
        errors: Literal["return"],
        **options: Any,
    ) -> Iterator[Decision | ServiceError]: ...
    def decide_many(
        self,
        states: Iterable[Any],
        questions: Mapping[str, Question] | None = None,
        /,
        *,
        concurrency: int = CONCURRENCY,
        progress: Callable[[int], object] | None = None,
        errors: Literal["raise", "return"] = "raise",
        **options: Any,
    ) -> Iterator[Decision | ServiceError]:
        """The decision on each of many states, in their order, `concurrency` of them at a time.

        `options` are questions and options of `decide`. States are taken from the iterable as they
        are needed. `progress` is called with the number of results so far. With `errors="return"`
        a state that could not be decided gives its error, and the others go on.
        """
        decide = partial(self._decided, questions, options)
        for number, result in enumerate(_in_order(decide, states, concurrency), 1):
            if isinstance(result, ServiceError) and errors == "raise":
                raise result
            if progress is not None:
                progress(number)
            yield result

    def forecast(
        self,
        sample: Sequence[Any],
        questions: Mapping[str, Question],
        *,
        rows: int | None = None,
        model: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> Forecast:
        """What it takes to decide `rows` states, by up to 100 of them; no model is asked.

        The states of the sample are best drawn by chance, as by `random.sample(states, 100)`.
        Without `rows` there are no others. `model` and `more` are those of `decide`. Raises
        `ServiceError`.
        """
        options = {"sample": list(sample), **_given(rows=rows, model=model)}
        answer = self._post("/v1/forecast", self._body(questions, options, more))
        return _understood(lambda: Forecast(answer))

    def feedback(self, decision_id: str, labels: Mapping[str, Label]) -> None:
        """Tell the true answers to questions of a decision, all or none. Raises `ServiceError`."""
        line = {"id": decision_id, "labels": dict(labels)}
        answer = self._post("/v1/feedback/bulk", {"labels": [line], "atomic": True})
        errors = _understood(
            lambda: [f"{one['field']}: {one['message']}" for one in answer["errors"]]
        )
        if errors:
            raise InvalidRequest(200, "invalid_request", "; ".join(errors), "-")

    def calibration(self, question: str) -> JsonObject:
        """The report on a question: accuracy, calibrator, thresholds. Raises `ServiceError`."""
        query = urlencode({"question": question, **_given(project=self._project)})
        return self._send("GET", f"/v1/calibration?{query}")

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _decided(
        self, questions: Mapping[str, Question] | None, options: Mapping[str, Any], state: Any
    ) -> Decision | ServiceError:
        try:
            return self.decide(state, questions, **options)
        except ServiceError as error:
            return error

    def _body(
        self,
        questions: Mapping[str, Question],
        options: Mapping[str, Any],
        more: Mapping[str, Any] | None,
    ) -> JsonObject:
        bodies = {key: question.body() for key, question in questions.items()}
        of_all = {"questions": bodies, **_given(project=self._project)}
        return {**options, **of_all, **(more or {})}

    def _post(
        self, path: str, body: Mapping[str, Any], idempotency_key: str | None = None
    ) -> JsonObject:
        """The body of the answer. Raises `ValueError` for what JSON cannot hold."""
        data = json.dumps(body, allow_nan=False).encode()
        # The same for every try, so that the service does the work once. As random as a UUID,
        # whose module takes longer to import than others of this one.
        key = os.urandom(16).hex() if idempotency_key is None else idempotency_key
        return self._send("POST", path, data, {"Idempotency-Key": key})

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> JsonObject:
        """The body of the answer, after as many tries as it takes and `retries` allows."""
        for tried in range(self._retries + 1):
            try:
                return _body_of(self._connections.exchange(method, path, body, headers))
            except ServiceError as error:
                if tried == self._retries or not pauses.may_pass(error):
                    raise
                self._sleep(pauses.pause_s(error, tried))
        raise AssertionError("a loop of at least one try ends in it")


def _body_of(answer: Answer) -> JsonObject:
    body = _parsed(answer.body)
    if answer.status == 200 and isinstance(body, dict):
        return body
    raise refused(answer.status, answer.headers, body)


def _parsed(text: bytes) -> Any:
    """The JSON of a body, None where it is none, or has a number that no float holds."""
    try:
        return _JSON.decode(text.decode())
    except (OverflowError, RecursionError, ValueError):
        return None


def _float_of(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("no float holds it")
    return number


def _int_of(text: str) -> int:
    number = int(text)
    float(number)
    return number


_JSON = json.JSONDecoder(parse_float=_float_of, parse_int=_int_of, parse_constant=_float_of)


def _understood(read: Callable[[], ResultT]) -> ResultT:
    """What `read` makes of an answer. Raises `InvalidRequest` where it is none of the service."""
    try:
        return read()
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        raise refused(200, {}, None) from None


def _given(**options: Any) -> JsonObject:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _in_order(
    work: Callable[[Any], ResultT], items: Iterable[Any], threads: int
) -> Iterator[ResultT]:
    """The result of each item, in their order, a few items for each thread ahead."""
    waiting: deque[Future[ResultT]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="svc-client") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
