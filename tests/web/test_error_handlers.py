from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import Mapping

import pytest
from flask import Flask, abort
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder, run_wsgi_app

from tests.scripted import Behaviour, Json, Raw, Reply, always, completion, error
from tests.web.conftest import Start
from tests.web.models import decision, replying
from tests.web.shape import assert_error

HERE = {"REMOTE_ADDR": "127.0.0.1"}
PROVIDER_WORDS = "tungsten wombat at prompt: The cat sat on the mat."


def raising(app: Flask, exception: Exception) -> FlaskClient:
    """A client of `app` with a route that raises."""

    def view() -> None:
        raise exception

    app.add_url_rule("/raises", view_func=view)
    return app.test_client()


def test_a_refused_body_does_not_stay_in_memory(start: Start) -> None:
    app = start()
    bodies = [
        {"state": "x" * 1_000_000, "questions": {}},
        {"state": "x" * 1_000_000, "questions": {"q": {"type": "noul"}}},
        {"state": "x" * 1_000_000, "questions": {}, "unknown": 1},
    ]

    def refused() -> None:
        for body in bodies:
            # The client would hold the body as well.
            environ = EnvironBuilder(
                path="/v1/decide", method="POST", json=body, environ_base=HERE
            ).get_environ()
            iterable, status, _ = run_wsgi_app(app, environ)
            assert status.startswith("422"), b"".join(iterable)

    refused()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        refused()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held < 500_000


def test_an_unknown_route_is_404_not_found(start: Start) -> None:
    client = start().test_client()
    for path in ("/v1", "/v1/decide/more", "/v2/decide", "/%00", "/static/x"):
        assert_error(client.get(path), 404, "not_found")


def test_an_unknown_route_is_not_repeated_in_the_message(start: Start) -> None:
    response = start().test_client().get("/secret-in-the-path")
    assert "secret" not in assert_error(response, 404, "not_found")


def test_a_wrong_method_is_405_and_names_the_right_ones(start: Start) -> None:
    client = start().test_client()
    response = client.get("/v1/decide")
    message = assert_error(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "OPTIONS, POST"
    assert "POST" in message
    response = client.delete("/health")
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize(
    "path", ["/v1//decide", "/v1/decide//", "/v1/./decide", "/v1/decide;a", "/%2Fv1"]
)
def test_a_path_that_is_nearly_a_route_is_404_and_no_redirect(start: Start, path: str) -> None:
    app = start()
    for method in ("GET", "POST", "OPTIONS"):
        environ = {"PATH_INFO": path, "REQUEST_METHOD": method}
        response = app.test_client().open(environ_overrides=environ)
        assert_error(response, 404, "not_found")


def test_a_slash_at_the_end_is_no_other_route(start: Start) -> None:
    client = start().test_client()
    assert client.get("/health/").status_code == 200
    assert client.post("/v1/decide/", json=decision()).status_code == 200


def test_an_unforeseen_exception_is_500_with_nothing_of_it(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    client = raising(start(), ValueError("tungsten wombat"))
    response = client.get("/raises")
    message = assert_error(response, 500, "internal_error")
    assert "wombat" not in response.text and "ValueError" not in response.text
    assert "request id" in message
    first, second = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert first.exc_info is not None
    assert second.exc_info is None


def test_what_is_nested_too_deeply_for_some_function_is_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    message = assert_error(
        raising(start(), RecursionError("tungsten wombat")).get("/raises"), 400, "invalid_json"
    )
    assert message == "the body is nested too deeply"
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "nested too deeply" in record.getMessage() and "wombat" not in caplog.text


def test_an_http_exception_from_within_is_500_and_logged(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    app = start()
    app.add_url_rule("/aborts", view_func=lambda: abort(503, "tungsten wombat"))
    response = app.test_client().get("/aborts")
    assert_error(response, 500, "internal_error")
    assert "wombat" not in response.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "ServiceUnavailable" in record.getMessage()


def test_a_request_over_its_deadline_is_504(start: Start) -> None:
    client = start(replying(delay=30), deadline_s=0.3).test_client()
    message = assert_error(client.post("/v1/decide", json=decision()), 504, "timeout")
    assert "deadline" in message


def test_a_decision_that_cannot_be_stored_is_500(start: Start) -> None:
    app = start()
    app.extensions["svc"].database.close()
    response = app.test_client().post("/v1/decide", json=decision())
    assert_error(response, 500, "internal_error")
    assert "sqlite" not in response.text.lower() and "cat" not in response.text


def test_a_provider_that_limits_the_rate_is_429_with_its_retry_after(start: Start) -> None:
    limited = Reply(error(PROVIDER_WORDS), 429, {"Retry-After": "77"})
    client = start(always(limited), deadline_s=5).test_client()
    response = client.post("/v1/decide", json=decision())
    assert_error(response, 429, "rate_limited")
    assert response.headers["Retry-After"] == "77"
    assert "wombat" not in response.text


def test_a_spent_rate_of_a_provider_is_429_with_the_true_wait(start: Start) -> None:
    client = start(deadline_s=2, SVC_PROVIDER_SCRIPTED_RPM="1").test_client()
    one_call = decision(debias=False)
    assert client.post("/v1/decide", json=one_call).status_code == 200
    response = client.post("/v1/decide", json={**one_call, "state": "another"})
    assert_error(response, 429, "rate_limited")
    assert 50 <= int(response.headers["Retry-After"]) <= 60


@pytest.mark.parametrize(
    ("reply", "type_"),
    [
        (Reply(error(PROVIDER_WORDS, code="model_not_found"), 404), "model_unavailable"),
        (Reply(error(PROVIDER_WORDS), 401), "model_error"),
        (Reply(error(PROVIDER_WORDS), 400), "model_error"),
        (Reply(PROVIDER_WORDS), "model_error"),
        (Reply(completion(PROVIDER_WORDS)), "model_error"),
        (Reply([PROVIDER_WORDS]), "model_error"),
        (Reply({"choices": []}), "model_error"),
        (Raw(PROVIDER_WORDS.encode()), "model_error"),
    ],
)
def test_a_failing_provider_is_502_without_its_words(
    start: Start, reply: Reply, type_: str
) -> None:
    client = start(always(reply)).test_client()
    response = client.post("/v1/decide", json=decision())
    assert_error(response, 502, type_)
    assert "wombat" not in response.text and "cat" not in response.text


def test_a_provider_that_recovers_is_asked_again(start: Start) -> None:
    answer = replying()

    def recovering(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        return Reply(error("busy"), 503) if n < 2 else answer(body, n, headers)

    response = start(recovering).test_client().post("/v1/decide", json=decision())
    assert response.status_code == 200
    assert response.get_json()["answers"]["animal"]["choice"] == "cat"


def test_a_provider_that_is_not_configured_is_422_and_named(start: Start) -> None:
    client = start().test_client()
    response = client.post("/v1/decide", json=decision(model="@nowhere/m"))
    message = assert_error(response, 422, "invalid_request")
    assert "nowhere" in message and "scripted" in message
