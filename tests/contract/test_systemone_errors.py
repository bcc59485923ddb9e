"""Errors of `POST /v1/systemone` as the clients of the criteria shape read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from svc.app import create_app
from svc.bootstrap import build
from svc.settings import load
from svc.store import ApiKeys
from tests.openapi.judge import document

NOUL = {"type": "noul", "instructions": "Is it urgent?"}


def sent(client: FlaskClient, body: Any, **headers: str) -> TestResponse:
    data = body if isinstance(body, bytes) else None
    return client.post(
        "/v1/systemone", data=data, json=None if data is not None else body, headers=headers
    )


def asking(question: Any, **fields: Any) -> dict[str, Any]:
    return {"state": "x", "questions": {"q": question}, **fields}


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[tuple[FlaskClient, str]]:
    """A server with one API key, which may make one request in the next seconds, and the key."""
    variables = {"SVC_MODEL": "@some/m", "SVC_PROVIDER_SOME_URL": "http://127.0.0.1:9"}
    services = build(load({"SVC_DB": str(tmp_path / "svc.db"), **variables}))
    made = ApiKeys(services.database).create("ada", 6, "shop")
    assert made is not None
    yield create_app(services).test_client(), f"Bearer {made.text}"
    services.close()


@pytest.mark.parametrize(
    ("question", "place", "words"),
    [
        ({"type": "poem"}, ["type"], 'unknown type "poem"'),
        ({"type": 5}, ["type"], "unknown type"),
        ({"type": "boolean", "instructions": "?"}, ["type"], 'unknown type "boolean"'),
        ({"instructions": "?"}, ["type"], "is missing"),
        ({"type": "choice", "criteria": {"a": None}}, ["options"], "2 to 255"),
        ({"type": "choice", "criteria": ["a", "b"]}, ["criteria"], "must be an object"),
        ({"type": "score", "criteria": {"a": ""}}, ["criteria"], "must be a list"),
        ({"type": "noul", "criteria": "yes"}, ["criteria"], "must be an object"),
        ({"type": "string", "enum": ["a"]}, [], "choice"),
        ("noul", [], "must be an object"),
    ],
)
def test_a_refused_question_has_its_place_in_detail(
    client: FlaskClient, question: Any, place: list[str], words: str
) -> None:
    response = sent(client, asking(question))
    assert response.status_code == 422
    (wrong,) = response.get_json()["detail"]
    assert wrong["loc"] == ["body", "questions", "q", *place]
    assert words in wrong["msg"]
    assert wrong["type"] == "value_error"


def test_each_of_several_wrong_places_is_in_detail(client: FlaskClient) -> None:
    questions = {"a": {"type": "score", "criteria": ["low"]}, "b": "noul"}
    wrong = sent(client, {"questions": questions}).get_json()["detail"]
    places = [one["loc"] for one in wrong]
    assert ["body", "state"] in places
    assert ["body", "questions", "a", "levels"] in places
    assert ["body", "questions", "b"] in places


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff", b"[]", b'"x"', b"null", b"NaN"])
def test_a_body_that_is_no_json_object_is_422_here(client: FlaskClient, body: bytes) -> None:
    response = sent(client, body)
    assert response.status_code == 422
    told = response.get_json()
    assert told["error"]["type"] == "invalid_request"
    assert told["detail"] == [
        {"loc": ["body"], "msg": told["error"]["message"], "type": "json_invalid"}
    ]
    assert client.post("/v1/decide", data=body).status_code == 400


def test_an_unknown_mode_stays_400(client: FlaskClient) -> None:
    response = sent(client, asking(NOUL, mode="fast"))
    assert response.status_code == 400
    told = response.get_json()
    assert told["error"]["type"] == told["detail"]["error_type"] == "invalid_json"
    assert told["detail"]["message"] == told["error"]["message"]


@pytest.mark.parametrize("key", ["", "Bearer svc_unknown"])
def test_a_refused_key_is_an_authentication_error(keyed: tuple[FlaskClient, str], key: str) -> None:
    client, _ = keyed
    response = sent(client, asking(NOUL), Authorization=key)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    told = response.get_json()
    assert told["error"]["type"] == "unauthorized"
    assert told["detail"] == {
        "error_type": "authentication_error",
        "message": told["error"]["message"],
    }


def test_other_errors_have_their_type_and_message_in_detail(
    keyed: tuple[FlaskClient, str],
) -> None:
    client, key = keyed
    refused = sent(client, asking(NOUL, project="other"), Authorization=key)
    assert refused.status_code == 403
    assert refused.get_json()["detail"]["error_type"] == "forbidden"
    limited = sent(client, asking(NOUL), Authorization=key)
    assert limited.status_code == 429
    assert limited.headers["Retry-After"]
    assert limited.get_json()["detail"]["error_type"] == "rate_limited"


def test_a_long_key_is_cut_in_detail(client: FlaskClient) -> None:
    response = sent(client, {"state": "x", "questions": {"k" * 10_000: {"type": "poem"}}})
    assert len(response.data) < 2_000


def test_too_many_questions_are_refused_for_their_number_and_not_looked_at(
    client: FlaskClient,
) -> None:
    """95,000 of them took 0.7 s of a processor to be put into other words."""
    questions = {f"q{number}": {"type": "poem"} for number in range(1_001)}
    response = sent(client, {"state": "x", "questions": questions})
    assert response.status_code == 422
    assert "1 to 64 questions" in response.get_json()["error"]["message"]


def test_the_error_of_other_routes_stands_beside_detail(client: FlaskClient) -> None:
    told = sent(client, asking({"type": "poem"})).get_json()
    assert told["error"]["type"] == "invalid_request"
    assert told["error"]["message"].startswith('question "q" type: unknown type "poem"; allowed:')


def test_the_document_describes_detail() -> None:
    described = document()["paths"]["/v1/systemone"]["post"]["responses"]["4XX"]
    schema = described["content"]["application/json"]["schema"]
    assert set(schema["required"]) == {"error", "detail"}
