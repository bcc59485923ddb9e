from __future__ import annotations

import json
import logging
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from svc import limits
from svc.http import ARRIVED
from svc.logs import FIELDS
from svc.metrics import Board, Metrics
from svc.ratelimit import Buckets
from svc.store.database import Database
from svc.store.keys import ApiKeys
from svc.turns import Turns
from svc.web import auth, error_handlers, hooks
from tests.web.conftest import Start
from tests.web.models import decision

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@pytest.mark.parametrize("sent", ["a", "~" * 64, '!"#$%&', "0b7c-1"])
def test_a_valid_request_id_is_taken_over(start: Start, sent: str) -> None:
    client = start().test_client()
    for response in (
        client.get("/health", headers={"x-request-id": sent}),
        client.get("/nowhere", headers={"X-Request-Id": sent}),
        client.post("/v1/decide", data="{", headers={"x-request-id": sent}),
        client.post("/v1/decide", json=decision(), headers={"x-request-id": sent}),
    ):
        assert response.headers.getlist("x-request-id") == [sent]


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", " ", "a\tb", "\xe9", "\x7f", "a\u00a0"])
def test_a_request_id_that_is_not_valid_is_replaced(start: Start, sent: str) -> None:
    made = start().test_client().get("/health", headers={"x-request-id": sent})
    assert made.headers["x-request-id"] not in ("", sent)
    assert made.headers["x-request-id"].isalnum()


def test_every_request_without_an_id_gets_its_own(start: Start) -> None:
    client = start().test_client()
    ids = {client.get("/health").headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20


def test_an_unforeseen_exception_keeps_the_request_id(start: Start) -> None:
    app = start()
    app.add_url_rule("/raises", view_func=lambda: 1 / 0)
    response = app.test_client().get("/raises", headers={"x-request-id": "mine"})
    assert (response.status_code, response.headers["x-request-id"]) == (500, "mine")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [getattr(r, FIELDS) for r in caplog.records if r.name == "svc.request"]


def test_every_request_has_one_log_line_with_its_id(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = start().test_client()
    client.get("/health?key=svc_1234", headers={"x-request-id": "one"})
    client.post("/v1/decide", data="no json", headers={"x-request-id": "two"})
    client.get("/nowhere", headers={"x-request-id": "three"})
    told = [{k: v for k, v in line.items() if k != "ms"} for line in lines(caplog)]
    assert told == [
        {"method": "GET", "path": "/health", "status": 200, "request_id": "one"},
        {"method": "POST", "path": "/v1/decide", "status": 400, "request_id": "two"},
        {"method": "GET", "path": "/nowhere", "status": 404, "request_id": "three"},
    ]
    assert all(line["ms"] >= 0 for line in lines(caplog))


def test_times_count_from_the_arrival_that_the_server_tells(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = start(deadline_s=60).test_client()
    waited = {ARRIVED: time.monotonic() - 50}
    assert client.post("/v1/decide", json=decision(), environ_base=waited).status_code == 200
    assert lines(caplog)[-1]["ms"] >= 50_000
    assert 'svc_decide_duration_seconds_bucket{le="30.0"} 0.0' in client.get("/metrics").text
    waited = {ARRIVED: time.monotonic() - 60}
    late = client.post("/v1/decide", json=decision("another"), environ_base=waited)
    assert (late.status_code, late.get_json()["error"]["type"]) == (504, "timeout")


def test_no_header_tells_when_a_request_arrived(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    start().test_client().get("/health", headers={ARRIVED: "1", "svc_arrived": "1"})
    assert lines(caplog)[-1]["ms"] < 50_000


def test_a_log_line_holds_nothing_of_the_body(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    start().test_client().post("/v1/decide", json=decision("a wombat"))
    logged = json.dumps([record.__dict__ for record in caplog.records], default=repr)
    assert "wombat" not in logged and '"cat' not in logged


def test_every_response_has_the_security_headers_once(start: Start) -> None:
    app = start()
    app.add_url_rule("/raises", view_func=lambda: 1 / 0)
    client = app.test_client()
    for response in (
        client.get("/health"),
        client.get("/metrics"),
        client.get("/nowhere"),
        client.get("/raises"),
        client.options("/v1/decide"),
        client.post("/v1/decide", json=decision()),
        client.post("/v1/decide", data="{"),
    ):
        for name, value in HEADERS.items():
            assert response.headers.getlist(name) == [value]


def test_a_view_may_say_something_else_about_security(start: Start) -> None:
    app = start()
    own = "default-src 'self'"
    app.add_url_rule("/own", view_func=lambda: ("", {"content-security-policy": own}))
    response = app.test_client().get("/own")
    assert response.headers.getlist("Content-Security-Policy") == [own]
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_path_in_the_log_is_short_and_visible(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    start().test_client().get("/a%1b[31m%e2%80%ae" + "x" * 5_000)
    path = lines(caplog)[-1]["path"]
    assert len(path) == 200 and path.isprintable()
    assert path.startswith("/a\ufffd[31m\ufffdxxx")


def test_strangers_fill_no_disk_and_are_counted_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now, metrics, database = [1_000.0], Metrics(Board()), Database.open(tmp_path / "svc.db")
    with closing(database):
        app, keys = Flask("svc"), ApiKeys(database)
        key = keys.create("ada", 600)
        assert key is not None
        hooks.register(app, 30, metrics, clock=lambda: now[0])
        auth.register(app, keys, Buckets(), Turns(), no_auth=False)
        error_handlers.register(app)
        app.add_url_rule("/who", view_func=lambda: "ok")
        client, good = app.test_client(), {"Authorization": f"Bearer {key.text}"}
        for _ in range(limits.STRANGERS_LOGGED + 40):
            assert client.get("/who").status_code == 401
        assert len(lines(caplog)) == limits.STRANGERS_LOGGED
        assert client.get("/who", headers=good).status_code == 200
        assert len(lines(caplog)) == limits.STRANGERS_LOGGED + 1
        now[0] += 60
        client.get("/who", headers=good)
        assert lines(caplog)[-2:][0] == {"n": 40}
        client.get("/who")
        assert lines(caplog)[-1]["status"] == 401
        # Where the database is gone nobody knows who asks either.
        database.close()
        for _ in range(limits.STRANGERS_LOGGED + 40):
            assert client.get("/who").status_code == 500
        assert len(lines(caplog)) == 2 * limits.STRANGERS_LOGGED + 3
    assert f"{limits.STRANGERS_LOGGED + 41}.0" in metrics.render()[0]
