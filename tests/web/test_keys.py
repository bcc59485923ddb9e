from __future__ import annotations

from svc.bootstrap import Services
from tests.web.conftest import Start


def test_keys_are_listed_without_their_texts(start: Start) -> None:
    app = start()
    services: Services = app.extensions["svc"]
    made = {
        name: services.keys.create(name, rpm, project, concurrency)
        for name, rpm, project, concurrency in (("ops", 600, None, None), ("shop", 60, "shop", 4))
    }
    ops, shop = made["ops"], made["shop"]
    assert ops and shop
    services.keys.revoke(shop.id)
    headers = {"Authorization": f"Bearer {ops.text}"}
    response = app.test_client().get("/v1/keys", headers=headers)
    first, second = response.get_json()["keys"]
    assert (first["id"], first["name"], first["rpm"]) == (ops.id, "ops", 600)
    assert (first["project"], first["concurrency"], first["revoked_at"]) == (None, None, None)
    assert (second["project"], second["concurrency"]) == ("shop", 4)
    assert second["revoked_at"] >= second["created_at"] > 0
    assert ops.text not in response.text and shop.text not in response.text


def test_the_holder_of_a_key_for_one_project_may_not_see_the_others(start: Start) -> None:
    app = start()
    key = app.extensions["svc"].keys.create("shop", 600, "shop")
    headers = {"Authorization": f"Bearer {key.text}"}
    response = app.test_client().get("/v1/keys", headers=headers)
    assert (response.status_code, response.get_json()["error"]["type"]) == (403, "forbidden")
    assert "may not see who has keys" in response.get_json()["error"]["message"]


def test_without_keys_the_list_is_empty(start: Start) -> None:
    assert start().test_client().get("/v1/keys").get_json() == {"keys": []}
