"""What every response holds, whatever it is about."""

from __future__ import annotations

from werkzeug.test import TestResponse


def assert_error(response: TestResponse, status: int, type_: str) -> str:
    """Check the one error shape and return the message."""
    assert response.status_code == status, response.text
    assert response.mimetype == "application/json"
    assert 1 <= len(response.headers["x-request-id"]) <= 64
    body = response.get_json()
    assert list(body) == ["error"]
    assert sorted(body["error"]) == ["message", "type"]
    assert body["error"]["type"] == type_
    message = body["error"]["message"]
    assert isinstance(message, str) and message and "\n" not in message
    return message
