from __future__ import annotations

from svc import __version__
from tests.web.conftest import Start


def test_health_says_ok_and_the_version(start: Start) -> None:
    response = start().test_client().get("/health")
    assert (response.status_code, response.mimetype) == (200, "application/json")
    assert response.get_json() == {"status": "ok", "version": __version__}


def test_health_answers_while_the_database_is_gone(start: Start) -> None:
    app = start()
    app.extensions["svc"].database.close()
    assert app.test_client().get("/health").status_code == 200


def test_health_answers_a_head_request_without_a_body(start: Start) -> None:
    response = start().test_client().head("/health")
    assert (response.status_code, response.data) == (200, b"")
