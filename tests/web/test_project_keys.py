"""A project's own key, from the table to the wire."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest
from flask import Flask

from svc.store.project_keys import ProjectKeys
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, error
from tests.web.conftest import Start
from tests.web.models import PREFERS_CATS, decision, reply_to

MASTER, SERVERS_KEY, KEY = "correct horse", "sk-of-the-server", "sk-or-tungsten"
MODEL, NAMED = "vendor/m", "@scripted/m"


class Aggregator:
    """Answers, and keeps the keys that it was asked with."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        self.keys.append(headers.get("authorization", ""))
        return Reply(reply_to(PREFERS_CATS, body))


def with_aggregator(start: Start, aggregator: ScriptedProvider, **environ: str) -> Flask:
    variables = {"SVC_PROVIDER_URL": aggregator.url, "OPENROUTER_API_KEY": SERVERS_KEY}
    return start(**{**variables, "SVC_MASTER_KEY": MASTER, **environ})


def give(app: Flask, project: str) -> ProjectKeys:
    keys = ProjectKeys(app.extensions["svc"].database, MASTER)
    keys.set(project, KEY)
    return keys


def ask(app: Flask, state: str, **fields: object) -> tuple[int, Json]:
    body = decision(state, debias=False, **fields)
    answer = app.test_client().post("/v1/decide", json=body)
    return answer.status_code, answer.get_json()


def test_a_projects_calls_to_the_aggregator_have_its_key_and_no_others(start: Start) -> None:
    handler = Aggregator()
    with ScriptedProvider(handler) as provider:
        app = with_aggregator(start, provider)
        keys = give(app, "shop")
        for state, project in (("a", "shop"), ("b", "default"), ("c", "Shop")):
            assert ask(app, state, project=project, model=MODEL)[0] == 200
        keys.remove("shop")
        assert ask(app, "d", project="shop", model=MODEL)[0] == 200
    own, servers = f"Bearer {KEY}", f"Bearer {SERVERS_KEY}"
    assert handler.keys == [own, servers, servers, servers]


def test_a_named_provider_never_gets_a_projects_key(start: Start) -> None:
    named, aggregator = Aggregator(), Aggregator()
    with ScriptedProvider(named) as first, ScriptedProvider(aggregator) as second:
        app = with_aggregator(start, second, SVC_PROVIDER_NAMED_URL=first.url)
        give(app, "shop")
        council = {"council": ["@named/m", MODEL]}
        assert ask(app, "a", project="shop", model=council)[0] == 200
        assert ask(app, "b", project="shop", model="@named/m")[0] == 200
    assert named.keys == ["", ""]
    assert aggregator.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("master", ["", "another horse"])
def test_without_its_master_key_a_project_is_refused_and_all_others_answered(
    start: Start, master: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    handler = Aggregator()
    with ScriptedProvider(handler) as provider:
        app = with_aggregator(start, provider, SVC_MASTER_KEY=master)
        give(app, "shop")
        status, body = ask(app, "a", project="shop", model=MODEL)
        assert (status, body["error"]["type"]) == (422, "invalid_request")
        assert "SVC_MASTER_KEY" in body["error"]["message"]
        assert handler.keys == []
        assert ask(app, "b", project="shop", model=NAMED)[0] == 200
        assert ask(app, "c", project="bank", model=MODEL)[0] == 200
    said = str(body) + caplog.text
    assert "SVC_MASTER_KEY" in caplog.text
    assert KEY not in said and MASTER not in said


def test_a_projects_key_that_the_aggregator_quotes_is_not_logged(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def quoting(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        return Reply(error(f"no such key: {headers['authorization']}"), 401)

    with ScriptedProvider(quoting) as provider:
        app = with_aggregator(start, provider)
        give(app, "shop")
        status, body = ask(app, "a", project="shop", model=MODEL)
    assert status == 502
    assert "tungsten" not in str(body) + caplog.text
    assert MODEL in caplog.text
