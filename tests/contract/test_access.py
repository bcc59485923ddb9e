"""The contract's table of access: every route by what the caller sends.

A new route is a row of `ROUTES`, or one of `OPEN`; a test says when it is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from svc.app import create_app
from svc.bootstrap import build
from svc.settings import load
from svc.store.keys import ApiKeys
from tests.scripted import Json, ScriptedProvider
from tests.web.models import decision, replying

OPEN = {"/", "/health", "/ready", "/dashboard", "/openapi.json"}  # for everybody; they hold no data
OWN, OTHER = "shop", "bank"  # the project of the restricted key, and another

Call = tuple[str, str, Json | None]  # method, path, body

JOBS = {OWN: "", OTHER: "", "": ""}  # the id of a job by its project, once it was handed in


def listed(project: str) -> Json:
    """A decision in OpenAI's dialect."""
    question = {"type": "predicate", "instructions": "Is it about a cat?"}
    return {"input": "The cat sat.", "questions": [question], "project": project}


def job(project: str) -> Json:
    """A job of one row."""
    row = {"id": "a", "state": "The cat sat."}
    return {"questions": decision()["questions"], "rows": [row], "project": project}


def forecast(project: str) -> Json:
    """What many rows would take."""
    return {"questions": decision()["questions"], "sample": ["The cat sat."], "project": project}


def told(answer: TestResponse) -> str:
    """The kind of an error; in a dialect it stands under another name, or as the status alone."""
    error = answer.get_json()["error"]
    if "status" in error:
        return {"UNAUTHENTICATED": "unauthorized", "PERMISSION_DENIED": "forbidden"}[
            error["status"]
        ]
    return str(error.get("code", error["type"]))


@dataclass(frozen=True)
class Row:
    """`call` gets a project and the id of a decision of that project."""

    call: Callable[[str, str], Call]
    other: int = 403  # status with a key of another project
    restricted: int = 200  # status with a key of this project alone


ROUTES = {
    "decide": Row(lambda project, _: ("POST", "/v1/decide", decision(project=project))),
    "systemone": Row(lambda project, _: ("POST", "/v1/systemone", decision(project=project))),
    "a list of questions": Row(lambda project, _: ("POST", "/v1/decisions", listed(project))),
    "the same for Google's clients": Row(
        lambda project, _: ("POST", "/v1beta/decisions", listed(project))
    ),
    "feedback": Row(
        lambda _, decision_id: (
            "POST",
            "/v1/feedback",
            {"decision_id": decision_id, "question": "animal", "label": "cat"},
        ),
        other=404,
    ),
    "feedback in bulk": Row(
        lambda project, decision_id: (
            "POST",
            "/v1/feedback/bulk",
            {"labels": [{"id": decision_id, "labels": {"animal": "cat"}}], "project": project},
        ),
    ),
    "a job": Row(
        lambda project, _: ("POST", "/v1/batch", job(project)),
    ),
    "a forecast": Row(lambda project, _: ("POST", "/v1/forecast", forecast(project))),
    "jobs": Row(lambda project, _: ("GET", f"/v1/batch?project={project}", None)),
    "one job": Row(lambda project, _: ("GET", f"/v1/batch/{JOBS[project]}", None), other=404),
    "results": Row(
        lambda project, _: ("GET", f"/v1/batch/{JOBS[project]}/results", None), other=404
    ),
    "cancel": Row(
        lambda project, _: ("POST", f"/v1/batch/{JOBS[project]}/cancel", None), other=404
    ),
    "calibration": Row(
        lambda project, _: ("GET", f"/v1/calibration?question=animal&project={project}", None)
    ),
    "drift": Row(lambda project, _: ("GET", f"/v1/drift?question=animal&project={project}", None)),
    "rates": Row(lambda project, _: ("GET", f"/v1/rates?question=animal&project={project}", None)),
    "activity": Row(lambda project, _: ("GET", f"/v1/activity?project={project}", None)),
    "review": Row(
        lambda project, _: (
            "GET",
            f"/v1/review?question=animal&reviewer=ann&project={project}",
            None,
        )
    ),
    "skip": Row(
        lambda _, decision_id: (
            "POST",
            "/v1/review/skip",
            {"decision_id": decision_id, "question": "animal", "reviewer": "bob"},
        ),
        other=404,
    ),
    "disagreements": Row(
        lambda project, _: (
            "GET",
            f"/v1/review/disagreements?question=animal&project={project}",
            None,
        )
    ),
    "audit": Row(lambda project, _: ("GET", f"/v1/audit?project={project}", None)),
    "decisions": Row(
        lambda _, decision_id: ("GET", f"/v1/decisions/{decision_id}", None), other=404
    ),
    "projects": Row(lambda *_: ("GET", "/v1/projects", None), other=200),
    "questions": Row(lambda project, _: ("GET", f"/v1/questions?project={project}", None)),
    "export": Row(lambda project, _: ("GET", f"/v1/export?project={project}", None)),
    "lint": Row(lambda *_: ("POST", "/v1/lint", {"questions": decision()["questions"]}), other=200),
    "keys": Row(lambda *_: ("GET", "/v1/keys", None), restricted=403),
    "budgets": Row(lambda *_: ("GET", "/v1/budgets", None), other=200),
    "models": Row(lambda *_: ("GET", "/v1/models", None), other=200),
    "metrics": Row(lambda *_: ("GET", "/metrics", None), other=200),
    "no such route": Row(lambda *_: ("GET", "/v1/nowhere", None), other=404),
    "no such method": Row(lambda *_: ("GET", "/v1/decide", None), other=405),
}
# With a right key; else 200. Who gives the decision back was not handed it.
REACHED = {"no such route": 404, "no such method": 405, "skip": 422, "a job": 202}


@dataclass(frozen=True)
class World:
    app: Flask
    keys: dict[str, str | None]  # by who sends it
    decisions: dict[str, str]  # an id by project

    def ask(self, call: Call, who: str) -> TestResponse:
        method, path, body = call
        key = self.keys[who]
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        client: FlaskClient = self.app.test_client()
        return client.open(path, method=method, json=body, headers=headers)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    db: Path = tmp_path_factory.mktemp("access") / "svc.db"
    with ScriptedProvider(replying()) as provider:
        variables = {
            "SVC_PROVIDER_SCRIPTED_URL": provider.url,
            "SVC_MODEL": "@scripted/m",
            "SVC_MASTER_KEY": "for jobs",
        }
        services = build(load({"SVC_DB": str(db), **variables}))
        made = World(create_app(services), made_keys(services.keys), {})
        for project in (OWN, OTHER):
            asked = made.ask(("POST", "/v1/decide", decision(project=project)), "every project")
            made.decisions[project] = asked.get_json()["id"]
            handed_in = made.ask(("POST", "/v1/batch", job(project)), "every project")
            JOBS[project] = handed_in.get_json()["id"]
        yield made
        services.close()


def made_keys(keys: ApiKeys) -> dict[str, str | None]:
    made = {
        name: keys.create(name, 100_000, project)
        for name, project in (("revoked", None), ("every project", None), ("one project", OWN))
    }
    ids = {name: key.id for name, key in made.items() if key}
    keys.revoke(ids["revoked"])
    texts = {name: key.text for name, key in made.items() if key}
    return {**texts, "no key": None, "wrong": "svc_wrong", "an id": ids["every project"]}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("who", ["no key", "wrong", "revoked", "an id"])
def test_nothing_can_be_probed_without_an_active_key(world: World, route: str, who: str) -> None:
    answer = world.ask(ROUTES[route].call(OWN, world.decisions[OWN]), who)
    assert (answer.status_code, told(answer)) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("who", ["every project", "one project"])
def test_a_right_key_reaches_every_route(world: World, route: str, who: str) -> None:
    row = ROUTES[route]
    answer = world.ask(row.call(OWN, world.decisions[OWN]), who)
    expected = row.restricted if who == "one project" else 200
    assert answer.status_code == REACHED.get(route, expected)


@pytest.mark.parametrize("route", ROUTES)
def test_a_key_of_one_project_does_not_reach_another(world: World, route: str) -> None:
    row = ROUTES[route]
    answer = world.ask(row.call(OTHER, world.decisions[OTHER]), "one project")
    assert answer.status_code == row.other
    if row.other in (403, 404):
        kind = {403: "forbidden", 404: "not_found"}[row.other]
        assert told(answer) == kind


@pytest.mark.parametrize("who", ["no key", "wrong", "revoked", "every project", "one project"])
def test_health_answers_everybody(world: World, who: str) -> None:
    assert world.ask(("GET", "/health", None), who).status_code == 200


@pytest.mark.parametrize("path", sorted(OPEN))
def test_what_is_open_never_asks_for_a_key(world: World, path: str) -> None:
    assert world.ask(("GET", path, None), "no key").status_code in (200, 404)


def test_the_header_of_googles_clients_is_a_key_too(world: World) -> None:
    call = world.app.test_client().get
    right = {"x-goog-api-key": str(world.keys["every project"])}
    assert call("/v1/models", headers=right).status_code == 200
    assert call("/v1/models", headers={"x-goog-api-key": "svc_wrong"}).status_code == 401
    both = {**right, "Authorization": "Bearer svc_wrong"}
    assert call("/v1/models", headers=both).status_code == 401


def test_every_route_has_its_row(world: World) -> None:
    listed = {
        path.partition("?")[0] for _, path, _ in (row.call("", "") for row in ROUTES.values())
    }
    served = {rule.rule.partition("<")[0] for rule in world.app.url_map.iter_rules()}
    assert served - OPEN <= listed
