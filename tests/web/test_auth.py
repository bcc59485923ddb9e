from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, g, jsonify
from werkzeug.test import TestResponse

from svc.metrics import Board, Metrics
from svc.ratelimit import Buckets
from svc.store.database import Database
from svc.store.keys import ApiKeys, NewKey
from svc.turns import Turns
from svc.web import auth, error_handlers, hooks
from svc.web.decorators import open_to_all
from tests.clock import Clock
from tests.web.conftest import Start
from tests.web.models import decision

LOCAL = "127.0.0.1"


class Socket:
    """As much of a connection as is looked at."""

    def __init__(self, address: Any, family: int = socket.AF_INET) -> None:
        self.family = family
        self._address = address

    def getsockname(self) -> Any:
        return self._address


class World:
    """An application with one route, which says who asks."""

    def __init__(
        self, database: Database, no_auth: bool = False, require_keys: bool = False
    ) -> None:
        self.keys, self.clock = ApiKeys(database), Clock()
        app = Flask("svc")
        hooks.register(app, 30, Metrics(Board()))
        auth.register(app, self.keys, Buckets(self.clock), Turns(self.clock), no_auth, require_keys)
        error_handlers.register(app)
        app.add_url_rule("/who", "who", view_func=lambda: jsonify(g.access.key_id, g.access.only))
        app.add_url_rule("/health", "health", view_func=open_to_all(lambda: "ok"))
        self._client = app.test_client()

    def key(self, name: str = "ada", rpm: int = 600, project: str | None = None) -> NewKey:
        made = self.keys.create(name, rpm, project)
        assert made is not None
        return made

    def ask(self, key: str | None = None, path: str = "/who", **given: Any) -> TestResponse:
        headers = dict(given.pop("headers", {}))
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return self._client.get(path, headers=headers, **given)

    def arriving(self, environ: dict[str, Any], **headers: str) -> TestResponse:
        return self.ask(headers={"Host": "localhost", **headers}, environ_base=environ)


Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    database = Database.open(tmp_path / "svc.db")
    yield lambda **options: World(database, **options)
    database.close()


# --- with keys ---


def test_a_key_is_known_by_its_id_and_project(make: Make) -> None:
    world = make()
    every, one = world.key("ada"), world.key("bob", project="shop")
    assert world.ask(every.text).get_json() == [every.id, None]
    assert world.ask(one.text).get_json() == [one.id, "shop"]


def test_a_refusal_says_whether_a_key_is_missing_or_no_good(make: Make) -> None:
    world = make()
    world.key()
    refusals = [world.ask(key).get_json()["error"]["message"] for key in (None, "svc_other")]
    assert refusals == [
        "an API key is required: send Authorization: Bearer <key>",
        "the API key is unknown or was revoked",
    ]


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER   {}", " Bearer {} "])
def test_the_scheme_may_be_written_in_any_case(make: Make, form: str) -> None:
    world = make()
    headers = {"Authorization": form.format(world.key().text)}
    assert world.ask(headers=headers).status_code == 200


@pytest.mark.parametrize(
    "form", ["", "{}", "Bearer", "Bearer ", "Basic {}", "Bearer {},", "Bearer x {}", "Bearer{}"]
)
def test_anything_else_in_the_header_is_no_key(make: Make, form: str) -> None:
    world = make()
    answer = world.ask(headers={"Authorization": form.format(world.key().text)})
    assert (answer.status_code, answer.get_json()["error"]["type"]) == (401, "unauthorized")


@pytest.mark.parametrize("sent", ["Bearer \xff\xfe", "Bearer " + "x" * 8_000, "Bearer \x00"])
def test_a_key_of_strange_bytes_is_unauthorized_and_not_repeated(make: Make, sent: str) -> None:
    world = make()
    world.key()
    answer = world.ask(environ_overrides={"HTTP_AUTHORIZATION": sent})
    assert answer.status_code == 401
    assert sent[7:] not in answer.get_data(as_text=True)


def test_a_key_in_the_query_or_a_cookie_is_none(make: Make) -> None:
    world = make()
    text = world.key().text
    assert world.ask(path=f"/who?api_key={text}&access_token={text}").status_code == 401
    assert world.ask(headers={"Cookie": f"Authorization=Bearer {text}"}).status_code == 401


def test_a_key_counts_from_when_it_is_made_until_it_is_revoked(make: Make) -> None:
    world = make()
    assert world.ask().get_json() == [None, None]
    made = world.key()
    assert world.ask().status_code == 401
    assert world.ask(made.text).status_code == 200
    world.keys.revoke(made.id)
    assert world.ask(made.text).status_code == 401
    assert world.ask().status_code == 401


def test_no_auth_does_not_open_what_keys_close(make: Make) -> None:
    world = make(no_auth=True)
    world.key()
    assert world.ask().status_code == 401


@pytest.mark.parametrize("path", ["/health", "/health/", "/health?x=1"])
def test_health_is_open(make: Make, path: str) -> None:
    world = make()
    world.key()
    assert world.ask(path=path).status_code in (200, 404)


@pytest.mark.parametrize("path", ["/healthy", "/health/who", "/HEALTH", "/%2e/who", "/who?/health"])
def test_what_only_looks_like_health_is_not_open(make: Make, path: str) -> None:
    world = make()
    world.key()
    assert world.ask(path=path).status_code == 401


# --- the rate of a key ---


def test_a_key_gets_its_burst_and_then_a_true_retry_after(make: Make) -> None:
    world = make()
    text = world.key(rpm=40).text  # a burst of 6, then one in 1.5 s
    assert [world.ask(text).status_code for _ in range(7)] == [200] * 6 + [429]
    refused = world.ask(text)
    assert refused.get_json()["error"]["type"] == "rate_limited"
    assert refused.headers["Retry-After"] == "2"
    world.clock.now += int(refused.headers["Retry-After"])
    assert world.ask(text).status_code == 200


def test_keys_do_not_share_a_rate_and_wrong_ones_use_none(make: Make) -> None:
    world = make()
    one, other = world.key("ada", rpm=6).text, world.key("bob", rpm=6).text
    assert world.ask(one).status_code == 200
    assert {world.ask(one[:-1] + "!").status_code for _ in range(20)} == {401}
    assert [world.ask(text).status_code for text in (one, other)] == [429, 200]


def test_health_uses_none_of_the_rate(make: Make) -> None:
    world = make()
    text = world.key(rpm=6).text
    assert {world.ask(text, "/health").status_code for _ in range(5)} == {200}
    assert world.ask(text).status_code == 200


# --- without keys ---


@pytest.mark.parametrize(
    "environ",
    [
        {"gunicorn.socket": Socket((LOCAL, 7777)), "REMOTE_ADDR": "10.0.0.9"},
        {"gunicorn.socket": Socket(("::1", 7777, 0, 0), socket.AF_INET6)},
        {"gunicorn.socket": Socket(("::ffff:127.0.0.1", 7777, 0, 0), socket.AF_INET6)},
        {"gunicorn.socket": Socket("", socket.AF_UNIX), "REMOTE_ADDR": ""},
        {"REMOTE_ADDR": LOCAL},  # a server that shows no socket
        {"REMOTE_ADDR": "::1"},
    ],
)
def test_this_machine_is_answered(make: Make, environ: dict[str, Any]) -> None:
    assert make().arriving(environ).status_code == 200


FAR = [
    {"gunicorn.socket": Socket(("10.0.0.1", 7777)), "REMOTE_ADDR": LOCAL},
    {"gunicorn.socket": Socket(("fe80::1%eth0", 7777, 0, 2), socket.AF_INET6)},
    {"REMOTE_ADDR": "10.0.0.9"},
    {"REMOTE_ADDR": ""},
]


@pytest.mark.parametrize("environ", FAR)
def test_another_machine_is_forbidden_and_told_what_to_do(
    make: Make, environ: dict[str, Any]
) -> None:
    answer = make().arriving(environ)
    error = answer.get_json()["error"]
    assert (answer.status_code, error["type"]) == (403, "forbidden")
    assert "another machine" in error["message"]
    assert "svc keys create" in error["message"] and "--no-auth" in error["message"]


@pytest.mark.parametrize("environ", FAR)
@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Real-IP", "X-Forwarded-Host", "Forwarded", "X-Client-IP"]
)
def test_no_header_makes_another_machine_this_one(
    make: Make, environ: dict[str, Any], header: str
) -> None:
    value = f"for={LOCAL};host=localhost" if header == "Forwarded" else LOCAL
    assert make().arriving(environ, **{header: value}).status_code == 403


@pytest.mark.parametrize("environ", FAR)
def test_no_auth_answers_everybody_until_there_is_a_key(
    make: Make, environ: dict[str, Any]
) -> None:
    world = make(no_auth=True)
    headers = {"Host": "svc.example.org", "Origin": "https://evil.example"}
    assert world.arriving(environ, **headers).status_code == 200
    world.key()
    assert world.arriving(environ, **headers).status_code == 401


@pytest.mark.parametrize("host", ["rebound.example.org:7777", "10.0.0.1", "localhost.example.org"])
def test_a_name_that_is_not_this_machines_is_forbidden(make: Make, host: str) -> None:
    answer = make().ask(headers={"Host": host, "X-Forwarded-Host": "localhost"})
    assert answer.status_code == 403
    assert "Host" in answer.get_json()["error"]["message"]
    assert host not in answer.get_data(as_text=True)


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host"])
def test_what_a_proxy_on_this_machine_passes_on_is_forbidden(make: Make, header: str) -> None:
    answer = make().ask(headers={"Host": "localhost", header: "127.0.0.1"})
    assert answer.status_code == 403
    assert f"it has {header};" in answer.get_json()["error"]["message"]


def test_with_a_key_a_proxy_may_say_that_it_is_one(make: Make) -> None:
    world = make()
    assert world.ask(world.key().text, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 200


def test_a_request_without_a_host_is_forbidden(make: Make) -> None:
    assert make().ask(environ_overrides={"HTTP_HOST": ""}).status_code == 403


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:7777", "http://localhost:7777"),
        ("LOCALHOST:7777", "http://localhost:7777"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("[::1]:7777", "http://[::1]:7777"),
    ],
)
def test_the_servers_own_page_is_answered(make: Make, host: str, origin: str) -> None:
    assert make().ask(headers={"Host": host, "Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost:3000",
        "http://localhost",
        "http://127.0.0.1:7777",
        "http://localhost:7777.evil.example",
        "http://localhost:7777@evil.example",
        "http://localhost:7777/",
        "http://localhost:7777, https://evil.example",
        "file://localhost:7777",
        "null",
        "",
    ],
)
def test_a_page_of_another_origin_is_forbidden(make: Make, origin: str) -> None:
    answer = make().ask(headers={"Host": "localhost:7777", "Origin": origin})
    assert answer.status_code == 403
    assert "Origin" in answer.get_json()["error"]["message"]
    assert "evil" not in answer.get_data(as_text=True)


def test_health_answers_every_name_and_page(make: Make) -> None:
    headers = {"Host": "svc.example.org", "Origin": "https://evil.example"}
    assert make().ask(path="/health", headers=headers).status_code == 200


def test_a_key_that_is_sent_before_there_is_any_does_no_harm(make: Make) -> None:
    assert make().ask("svc_of_a_client_that_always_sends_one").status_code == 200


# --- what routes do with it ---


def test_a_decision_without_a_project_is_for_the_keys_own(start: Start) -> None:
    app = start()
    services = app.extensions["svc"]
    made = services.keys.create("ada", 600, "shop")
    headers = {"Authorization": f"Bearer {made.text}"}
    for path in ("/v1/decide", "/v1/systemone"):
        answer = app.test_client().post(path, json=decision(), headers=headers)
        assert answer.get_json()["project"] == "shop"
        stored = services.decisions.get(answer.get_json()["id"])
        assert (stored.facts.project, stored.facts.api_key) == ("shop", made.id)


def test_a_decision_for_another_project_is_forbidden_before_any_model_is_asked(
    start: Start,
) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("a model was asked")

    app = start(never)
    made = app.extensions["svc"].keys.create("ada", 600, "shop")
    headers = {"Authorization": f"Bearer {made.text}"}
    for project in ("default", "Shop", "shop ", "bank-secret"):
        body = decision(project=project)
        answer = app.test_client().post("/v1/decide", json=body, headers=headers)
        assert (answer.status_code, answer.get_json()["error"]["type"]) == (403, "forbidden")
        assert "shop" not in answer.get_data(as_text=True).lower()


def test_a_decision_without_keys_is_for_the_project_it_names(start: Start) -> None:
    client = start().test_client()
    assert client.post("/v1/decide", json=decision()).get_json()["project"] == "default"
    named = client.post("/v1/decide", json=decision(project="shop"))
    assert named.get_json()["project"] == "shop"


@pytest.mark.parametrize(
    ("only", "project", "seen"), [(None, "a", True), ("a", "a", True), ("a", "b", False)]
)
def test_a_key_sees_the_decisions_of_its_project(
    only: str | None, project: str, seen: bool
) -> None:
    assert auth.Access("key_1", only).sees(project) is seen


def test_where_keys_are_required_nobody_is_answered_without_any(make: Make) -> None:
    world = make(require_keys=True)
    answer = world.arriving({"REMOTE_ADDR": LOCAL})
    assert answer.status_code == 401
    assert "its database has none" in answer.get_json()["error"]["message"]
    assert world.ask(path="/health").status_code == 200
    assert world.ask(world.key().text).status_code == 200


@pytest.mark.parametrize(
    "header",
    ["Forwarded", "Via", "X-Real-IP", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]
    + ["X-Forwarded-Server", "X-Forwarded-Port", "X-Forwarded-Prefix"],
)
def test_whatever_a_proxy_adds_is_refused_by_name(make: Make, header: str) -> None:
    answer = make().arriving({"REMOTE_ADDR": LOCAL}, **{header: "x"})
    assert answer.status_code == 403
    assert f"has {header};" in answer.get_json()["error"]["message"]


@pytest.mark.parametrize(
    ("site", "status"),
    [("cross-site", 403), ("same-site", 403), ("Cross-Site", 403), ("", 403), ("x", 403)]
    + [("same-origin", 200), ("none", 200)],
)
def test_a_browser_says_which_site_made_a_request(make: Make, site: str, status: int) -> None:
    world = make()
    answer = world.arriving({"REMOTE_ADDR": LOCAL}, **{"Sec-Fetch-Site": site})
    assert answer.status_code == status
    key = world.key().text
    assert world.ask(key, headers={"Sec-Fetch-Site": site, "Via": "x"}).status_code == 200
