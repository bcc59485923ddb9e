"""What happens around every request: its id, its deadline, its log line."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Flask, Response, g, request

from svc import limits
from svc.deadline import Deadline
from svc.http import ARRIVED, CALLER_LEFT, LEAVING, REQUEST_ID, SECURITY_HEADERS
from svc.logs import FIELDS, Sparingly
from svc.metrics import Metrics
from svc.phrases import visible
from svc.records import Decision
from svc.tracing import Trace, Traces

_VALID_ID = re.compile(rf"[\x21-\x7e]{{1,{limits.REQUEST_ID_CHARS}}}")
log = logging.getLogger("svc.request")


def register(
    app: Flask,
    deadline_s: float,
    metrics: Metrics,
    offer: Callable[[Any, Decision, Trace | None], None] = lambda *_: None,
    clock: Callable[[], float] = time.monotonic,
    traces: Traces | None = None,
) -> None:
    """Give every request of `app` an id, a deadline of `deadline_s` seconds and a log line.

    Its response gets the security headers and is counted, as is the decision that a view leaves
    in `g.decision`. This one is handed to `offer` once the answer has left, with its request, where
    the view leaves that in `g.asked`, and with where spans of what is done later go. All times
    count from the request's arrival, which a server that lets requests wait for a thread puts into
    the environ; with other servers it is the present. The same server tells when a caller has left:
    then the deadline has passed, unless the request has an `Idempotency-Key`, whose repeat gets the
    answer. Requests that were refused before anybody
    knew who asks are all counted, but only so many a minute by `clock` have a line in the log. What
    is done for a request goes into `traces`, where there are some.
    """
    strangers = Sparingly(limits.STRANGERS_LOGGED, clock)

    def begin() -> None:
        # Each use of the proxy `g` would look the object up again.
        kept, environ = g._get_current_object(), request.environ
        now = time.monotonic()
        kept.arrived = environ.get(ARRIVED, now)
        kept.deadline = deadline = Deadline(kept.arrived + deadline_s - now)
        if "HTTP_IDEMPOTENCY_KEY" not in environ and (call := environ.get(LEAVING)):
            call(deadline.cancel)
        if traces is not None:
            deadline.trace = traces.of(environ.get("HTTP_TRACEPARENT", ""))
        sent = environ.get("HTTP_X_REQUEST_ID", "")
        kept.request_id = sent if _VALID_ID.fullmatch(sent) else _new_id()

    def end(response: Response) -> Response:
        kept, status = g._get_current_object(), response.status_code
        if kept.deadline.cancelled and status >= 500:
            status = CALLER_LEFT
        response.headers[REQUEST_ID] = kept.request_id
        _secure(response)
        seconds = time.monotonic() - kept.arrived
        metrics.responded(status)
        if (decision := kept.get("decision")) is not None:
            metrics.decided(seconds, decision)
            if (asked := kept.get("asked")) is not None:
                response.call_on_close(partial(offer, asked, decision, kept.deadline.later))
        if told := strangers.left_out():
            log.info("requests of strangers were left out of the log", extra={FIELDS: {"n": told}})
        stranger = "access" not in kept and status >= 400
        if not stranger or strangers.take():
            _log(kept.request_id, status, seconds)
        return response

    app.before_request(begin)
    app.after_request(end)


def _new_id() -> str:
    """An id that no other request has.

    It is no secret. The system's own random bytes would take a call that releases the interpreter's
    lock.
    """
    return f"{random.getrandbits(128):032x}"


def _log(request_id: str, status: int, seconds: float) -> None:
    fields = {
        "method": request.environ["REQUEST_METHOD"],
        "path": visible(request.path),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "request_id": request_id,
    }
    log.info("request", extra={FIELDS: fields})


def _secure(response: Response) -> None:
    present = {name.lower() for name, _ in response.headers}
    for name, value in SECURITY_HEADERS.items():
        if name not in present:
            response.headers.add(name, value)
