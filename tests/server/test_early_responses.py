from __future__ import annotations

import json

import pytest
from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders, LimitRequestLine

from svc.http import SECURITY_HEADERS
from svc.server.early_responses import refusal, response


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (InvalidRequestLine("GET"), 400),
        (LimitRequestLine(9, 8), 413),
        (LimitRequestHeaders("too long"), 413),
        (RuntimeError("a secret"), 500),
    ],
)
def test_a_refusal_is_a_whole_response_in_the_error_shape(raised: Exception, status: int) -> None:
    head, _, body = response(refusal(raised), "mine").partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first.startswith(f"HTTP/1.1 {status} ")
    assert (headers["x-request-id"], headers["Content-Length"]) == ("mine", str(len(body)))
    assert SECURITY_HEADERS.items() <= headers.items()
    assert sorted(json.loads(body)["error"]) == ["message", "type"]
    assert b"secret" not in body
