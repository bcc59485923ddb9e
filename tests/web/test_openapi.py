"""`GET /openapi.json`."""

from __future__ import annotations

from svc import __version__
from svc.openapi.routes import ROUTES
from svc.web import auth
from tests.web.conftest import Start


def test_the_document_is_served(start: Start) -> None:
    response = start().test_client().get("/openapi.json")
    assert response.status_code == 200
    assert response.mimetype == "application/json"
    assert response.headers["x-request-id"]
    assert response.json is not None
    assert (response.json["openapi"], response.json["info"]["version"]) == ("3.1.0", __version__)


def test_every_route_is_described_and_no_other(start: Start) -> None:
    rules = list(start().url_map.iter_rules())
    served = {(rule.rule, method) for rule in rules for method in rule.methods or ()}
    described = {(route.path, route.method.upper()) for route in ROUTES}
    assert described == {one for one in served if one[1] not in ("HEAD", "OPTIONS")}


def test_the_routes_without_a_key_are_the_open_ones() -> None:
    assert {route.path for route in ROUTES if not route.guarded} == auth.OPEN
