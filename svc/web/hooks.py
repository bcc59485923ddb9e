"""What happens around every request: its id, its deadline, its log line."""

from __future__ import annotations

import logging
import re
import time
import uuid
from functools import partial

from flask import Flask, Response, g, request

from svc import limits
from svc.deadline import Deadline
from svc.logs import FIELDS
from svc.web.body import drain

REQUEST_ID = "x-request-id"
_VALID_ID = re.compile(rf"[\x21-\x7e]{{1,{limits.REQUEST_ID_CHARS}}}")
log = logging.getLogger("svc.request")


def register(app: Flask, deadline_s: float) -> None:
    """Give every request of `app` an id, a deadline of `deadline_s` seconds and a log line."""

    def begin() -> None:
        g.started = time.perf_counter()
        g.deadline = Deadline(deadline_s)
        sent = request.headers.get(REQUEST_ID, "")
        g.request_id = sent if _VALID_ID.fullmatch(sent) else uuid.uuid4().hex

    def end(response: Response) -> Response:
        response.headers[REQUEST_ID] = g.request_id
        if response.status_code >= 400:
            response.call_on_close(partial(drain, request.environ["wsgi.input"]))
        log.info(
            "request",
            extra={
                FIELDS: {
                    "method": request.method,
                    "path": request.path,
                    "status": response.status_code,
                    "ms": round((time.perf_counter() - g.started) * 1000, 1),
                    "request_id": g.request_id,
                }
            },
        )
        return response

    app.before_request(begin)
    app.after_request(end)
