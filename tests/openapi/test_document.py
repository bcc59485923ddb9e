"""The document as a document: valid, complete, and neither stricter nor laxer than the checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from marshmallow import Schema
from openapi_spec_validator import OpenAPIV31SpecValidator

from svc import errors
from svc.errors import ApiError
from svc.openapi import decision_request, decision_response
from svc.questions import TYPES
from svc.schemas.decision import DecisionRequestSchema
from svc.schemas.feedback import FeedbackRequestSchema
from tests.contract.test_properties import WHOLE
from tests.contract.test_table import ALLOWED, REFUSED
from tests.docs import pages
from tests.openapi.judge import document, judge, taken

# What takes more than one field to see, or what only a running server knows.
BEYOND_A_SCHEMA = {
    "a large object state",
    "too much question text",
    "a provider that is not configured",
    "a plain id without a default provider",
    "a provider missing from one place of a plan",
    "strict on a hosted named provider",
    "a plan of over 64 calls",
    "logprobs with text",
    "logprobs with number",
    "logprobs with integer",
    "logprobs with think",
    "logprobs with a question that thinks",
    "logprobs with 21 options",
    "the reserved option",
    "a min above max",
    "an example with a wrong label",
    "when without an object state",
    "rules without an object state",
    "an unknown dependency",
    "an unknown @key",
    "a dependency on itself",
    "a cycle",
    "9 stages",
    "explain with depends_on",
    "an image over 5 MB",
}
CHECKED: list[tuple[str, Schema]] = [
    ("DecisionRequest", DecisionRequestSchema()),
    ("FeedbackRequest", FeedbackRequestSchema()),
    *((f"{kind.capitalize()}Question", schema) for kind, schema in TYPES.items()),
]


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return document()


def test_the_document_is_valid_openapi(whole: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(whole).validate()


@pytest.mark.parametrize(("component", "schema"), CHECKED)
def test_every_field_that_is_checked_is_described(
    whole: dict[str, Any], component: str, schema: Schema
) -> None:
    described = whole["components"]["schemas"][component]
    assert described["properties"].keys() == schema.fields.keys()
    assert all(one["description"] for one in described["properties"].values())
    required = {name for name, field in schema.fields.items() if field.required}
    assert set(described["required"]) == required


def test_requests_that_take_turns_may_come_too_late(whole: dict[str, Any]) -> None:
    for method, path in [("get", "/v1/batch"), ("post", "/v1/forecast"), ("get", "/v1/review")]:
        assert "504" in whole["paths"][path][method]["responses"], path


def test_every_description_of_a_question_says_its_default(whole: dict[str, Any]) -> None:
    schemas = whole["components"]["schemas"]
    defaults = {
        ("DecisionRequest", "mode"): "auto",
        ("DecisionRequest", "debias"): True,
        ("DecisionRequest", "think"): False,
        ("DecisionRequest", "config"): "svc-latest",
        ("DecisionRequest", "privacy"): "standard",
        ("DecisionRequest", "explain"): False,
        ("ChoiceQuestion", "escape"): True,
        ("CriteriaChoiceQuestion", "escape"): False,
        ("MultiQuestion", "threshold"): 0.5,
        ("TextQuestion", "max_length"): 200,
        ("NumberQuestion", "nullable"): False,
    }
    for (component, field), default in defaults.items():
        assert schemas[component]["properties"][field]["default"] == default


def test_every_error_is_described_with_its_status(whole: dict[str, Any]) -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    for kind in kinds:
        if issubclass(kind, ApiError):
            assert kind.type in json.dumps(whole["components"]["responses"][f"Error{kind.status}"])


def test_every_route_may_be_no_valid_http_too_large_or_fail(whole: dict[str, Any]) -> None:
    operations = [one for item in whole["paths"].values() for one in item.values()]
    assert operations
    ways = ({"400", "413", "500"}, {"4XX", "5XX"})
    assert all(any(one["responses"].keys() >= way for way in ways) for one in operations)


def test_a_limit_and_a_refused_key_are_described_with_their_headers(whole: dict[str, Any]) -> None:
    responses = whole["components"]["responses"]
    assert all("x-request-id" in response["headers"] for response in responses.values())
    assert "Retry-After" in responses["Error429"]["headers"]
    assert "WWW-Authenticate" in responses["Error401"]["headers"]


@pytest.mark.parametrize(
    "question",
    [
        {"type": "choice", "criteria": {"a": None}},
        {"type": "choice", "criteria": {"a": None, " ": None}},
        {"type": "choice"},
        {"type": "score", "criteria": ["low"]},
        {"type": "noul", "criteria": ["yes"]},
        {"type": "multi", "criteria": []},
        {"type": "string", "enum": ["a"]},
        {"type": "poem"},
    ],
)
def test_the_criteria_schema_refuses_what_the_server_refuses(
    client: FlaskClient, question: Any
) -> None:
    body = {"state": "x", "questions": {"q": question}}
    assert not judge("CriteriaRequest").is_valid(body)
    assert client.post("/v1/systemone", json=body).status_code in (400, 422)


@pytest.mark.parametrize("row", ALLOWED)
def test_the_schema_takes_what_the_server_takes(row: str) -> None:
    judge("DecisionRequest").validate(ALLOWED[row])


def test_the_schema_takes_a_request_with_every_field() -> None:
    judge("DecisionRequest").validate(WHOLE)


def test_the_schema_judges_the_requests_of_the_pages_as_the_server_does() -> None:
    for request in pages.requests():
        component = taken(request.path)
        assert component is not None, request.place
        assert judge(component).is_valid(request.body) == request.works, request.place


@pytest.mark.parametrize("row", REFUSED)
def test_the_schema_refuses_what_the_server_refuses(row: str) -> None:
    valid = judge("DecisionRequest").is_valid(REFUSED[row][-1])
    assert valid == (row in BEYOND_A_SCHEMA)


@pytest.mark.parametrize("standing", [decision_request, decision_response])
def test_a_schema_for_tools_stands_alone(standing: Any) -> None:
    schema = standing()
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    references = set(_references(schema))
    assert references == {f"#/$defs/{name}" for name in schema["$defs"]}


def test_a_tools_schema_judges_as_the_documents() -> None:
    validator = Draft202012Validator(decision_request())
    validator.validate(WHOLE)
    for row, (*_, body) in REFUSED.items():
        assert validator.is_valid(body) == (row in BEYOND_A_SCHEMA)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
