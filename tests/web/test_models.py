from __future__ import annotations

import re

from tests.web.conftest import Start
from tests.web.models import decision

NAMES = ["svc-latest", "svc-1.0.0", "svc-1.1.0", "svc-1.2.0", "svc-1.3.0"]


def test_the_listing_names_latest_and_every_pin(start: Start) -> None:
    models = start().test_client().get("/v1/models").get_json()["models"]
    assert sorted(model["name"] for model in models) == sorted(NAMES)
    for model in models:
        assert sorted(model) == ["description", "name", "release_date"]
        assert model["description"]
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", model["release_date"])


def test_every_listed_name_can_be_asked_for(start: Start) -> None:
    client = start().test_client()
    for model in client.get("/v1/models").get_json()["models"]:
        name = model["name"]
        response = client.post("/v1/decide", json=decision(config=name, model="@scripted/m"))
        assert response.status_code == 200
        assert response.get_json()["config"] == ("svc-1.3.0" if name == "svc-latest" else name)


def test_latest_is_the_pin_of_the_operator(start: Start) -> None:
    client = start(SVC_LATEST_CONFIG="svc-1.0.0").test_client()
    models = {m["name"]: m for m in client.get("/v1/models").get_json()["models"]}
    assert "svc-1.0.0" in models["svc-latest"]["description"]
    assert models["svc-latest"]["release_date"] == models["svc-1.0.0"]["release_date"]
    answered = client.post("/v1/decide", json=decision()).get_json()
    assert answered["config"] == "svc-1.0.0"
