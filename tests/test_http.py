from __future__ import annotations

from svc.errors import InternalError, NotFound
from svc.http import error_body


def test_an_error_is_told_by_its_type_and_message() -> None:
    assert error_body(NotFound("no such route")) == {
        "error": {"type": "not_found", "message": "no such route"}
    }


def test_the_words_of_an_internal_error_are_for_the_log_alone() -> None:
    told = error_body(InternalError("a secret"))["error"]
    assert told["type"] == "internal_error"
    assert "secret" not in told["message"]
