from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from svc import __version__
from svc.app import create_app
from svc.bootstrap import build
from svc.errors import NotReady
from svc.settings import load
from svc.store import NANO, Budget, Per, Scope
from svc.store.keys import NewKey
from svc.tallies import OTHERS
from svc.web.readiness import Readiness
from tests.scripted import Reply, ScriptedProvider, always, error
from tests.store.copies import copied
from tests.store.records import record
from tests.web.conftest import Start
from tests.web.models import ANIMAL, decision, replying


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


def test_a_server_that_can_write_and_has_a_provider_is_ready(start: Start) -> None:
    response = start().test_client().get("/ready")
    assert (response.status_code, response.get_json()) == (200, {"status": "ready"})


def test_a_server_whose_database_takes_no_writes_is_not_ready(start: Start) -> None:
    app = start()
    app.extensions["svc"].database.close()
    response = app.test_client().get("/ready")
    assert (response.status_code, response.get_json()["error"]["type"]) == (503, "not_ready")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_server_whose_file_is_deleted_or_replaced_is_not_ready(
    start: Start, tmp_path: Path, replaced: bool
) -> None:
    app = start()
    if replaced:
        os.replace(copied(tmp_path / "other.db"), tmp_path / "svc.db")
    else:
        (tmp_path / "svc.db").unlink()
    response = app.test_client().get("/ready")
    assert (response.status_code, response.get_json()["error"]["type"]) == (503, "not_ready")


def test_a_server_without_a_provider_is_not_ready(tmp_path: Path) -> None:
    services = build(load({"SVC_DB": str(tmp_path / "svc.db")}))
    try:
        response = create_app(services).test_client().get("/ready")
    finally:
        services.close()
    assert response.status_code == 503
    assert response.get_json()["error"]["message"] == "no provider is configured"


def test_what_was_found_is_kept_for_a_second() -> None:
    now, asked = [0.0], []
    readiness = Readiness([lambda: str(asked.append(1) or len(asked))], lambda: now[0])  # type: ignore[func-returns-value]
    found = []
    for now[0] in (1.0, 1.5, 2.5):
        with pytest.raises(NotReady) as error:
            readiness.check()
        found.append(error.value.message)
    assert found == ["1", "1", "2"]


def test_the_first_check_is_waited_for_and_a_later_one_is_not() -> None:
    now, begun, goes_on = [0.0], threading.Event(), threading.Event()

    def check() -> str:
        begun.set()
        goes_on.wait(30)
        return ""

    readiness = Readiness([check], lambda: now[0])
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(readiness.check)
        assert begun.wait(30)
        second = threads.submit(readiness.check)
        goes_on.set()
        first.result(30), second.result(30)
        begun.clear(), goes_on.clear()
        now[0] = 2.0
        third = threads.submit(readiness.check)
        assert begun.wait(30)
        readiness.check()
        goes_on.set()
        third.result(30)


def scrape(client: FlaskClient) -> str:
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.content_type.startswith("text/plain; version=")
    return response.text


def test_decisions_and_responses_are_counted_on_both_routes(start: Start) -> None:
    client = start().test_client()
    unsure = {**ANIMAL, "min_confidence": 0.99}
    noul = {"type": "noul", "instructions": "Is it a cat?", "when": {"kind": "animal"}}
    asked = {"state": {"kind": "car"}, "questions": {"animal": unsure, "skipped": noul}}
    for _ in range(2):
        assert client.post("/v1/decide", json=asked).status_code == 200
    criteria = {"type": "choice", "criteria": {"cat": "", "dog": ""}, "instructions": "Which?"}
    asked = {"state": "The cat sat.", "questions": {"animal": criteria}}
    assert client.post("/v1/systemone", json=asked).status_code == 200
    client.post("/v1/decide", data="no json")
    client.get("/nowhere/" + "x" * 50)
    text = scrape(client)
    for line in (
        "svc_decisions_total 3.0",
        "svc_cache_hits_total 1.0",
        "svc_answers_total 3.0",
        "svc_abstains_total 2.0",
        "svc_decide_duration_seconds_count 3.0",
        'svc_http_responses_total{status="200"} 3.0',
        'svc_http_responses_total{status="400"} 1.0',
        'svc_http_responses_total{status="404"} 1.0',
    ):
        assert f"\n{line}\n" in text
    assert "nowhere" not in text and "svc_daily_quota_remaining" not in text


def test_a_decision_that_fails_is_a_response_and_no_decision(start: Start) -> None:
    client = start(always(Reply(error("busy"), 400))).test_client()
    assert client.post("/v1/decide", json=decision()).status_code == 502
    text = scrape(client)
    assert "svc_decisions_total 0.0" in text
    assert 'svc_http_responses_total{status="502"} 1.0' in text


def test_the_daily_quota_is_what_the_database_has_left_of_it(start: Start) -> None:
    with ScriptedProvider(replying()) as provider:
        app = start(
            SVC_DAILY_LIMIT="3",
            SVC_PROVIDER_URL=provider.url,
            SVC_MODEL="vendor/m",
            OPENROUTER_API_KEY="sk-test",
        )
        client = app.test_client()
        assert "svc_daily_quota_remaining 3.0" in scrape(client)
        assert client.post("/v1/decide", json=decision()).status_code == 200
        assert "svc_daily_quota_remaining 1.0" in scrape(client)


def test_a_key_of_one_project_sees_no_series_of_another(start: Start) -> None:
    app = start()
    services, client = app.extensions["svc"], app.test_client()
    whole, shop, other = (
        services.keys.create(name, 600, project)
        for name, project in (("whole", None), ("shop", "shop"), ("other", OTHERS))
    )

    def shown(key: NewKey, *names: str) -> set[str]:
        """The lines of series, without how many responses there were before."""
        headers = {"Authorization": f"Bearer {key.text}"}
        text = client.get("/metrics", headers=headers, query_string={"name[]": names}).text
        return {line for line in text.splitlines() if line[0] != "#" and "status=" not in line}

    for project in ("shop", "bank", "p" * 1_000):
        services.metrics.decided(0.1, record(project=project))
    for scope, subject in (
        *((Scope.PROJECT, "shop"), (Scope.PROJECT, "bank")),
        *((Scope.KEY, shop.id), (Scope.KEY, whole.id)),
    ):
        services.budgets.set(Budget(scope, subject, Per.DAY, NANO))
    own, every = shown(shop), shown(whole)
    hidden = {line for line in every if re.search(f'"(bank|{whole.id}|other)"', line)}
    assert own == every - hidden
    for name in ('"shop"', f'"{shop.id}"'):
        assert any(name in line for line in own)
    for name in ('"bank"', f'"{whole.id}"', 'project="other"'):
        assert any(name in line for line in hidden)
    (line,) = shown(shop, "svc_project_decisions_total")
    assert 'project="shop"' in line
    # A project may have the name under which those without a series are counted together.
    assert not any("project=" in line for line in shown(other))
