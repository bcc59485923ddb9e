"""`GET /openapi.json`."""

from __future__ import annotations

import re

from svc import __version__
from tests.contract.test_access import OPEN
from tests.openapi.judge import document
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
    served = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule), method)
        for rule in rules
        for method in rule.methods or ()
    }
    described = {
        (path, method.upper()) for path, item in document()["paths"].items() for method in item
    }
    assert described == {one for one in served if one[1] not in ("HEAD", "OPTIONS")}


def test_every_operation_says_what_it_is_for() -> None:
    operations = [one for item in document()["paths"].values() for one in item.values()]
    assert all(one["summary"].endswith(".") for one in operations)


def test_the_open_routes_are_described_as_open() -> None:
    paths = document()["paths"]
    free = {path for path, item in paths.items() for one in item.values() if "security" in one}
    assert free == OPEN
