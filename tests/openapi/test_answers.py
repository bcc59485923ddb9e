"""What a server answers has no field that is not described, and none of another form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from svc.openapi.examples import examples
from tests.contract.test_properties import WHOLE
from tests.contract.test_table import CHOICE, INTEGER, MULTI, NOUL, NUMBER, SCORE, TEXT
from tests.openapi.judge import answered, document, judge, strict_judge, taken

STATE = {"plan": "pro", "amount": 12, "name": "Ada", "note": "urgent: 3 of them are missing"}
DEMO = "@demo/lexical"
EVERY: dict[str, Any] = {
    "choice": {**CHOICE, "min_confidence": 0.9, "coverage": 0.5, "coverage_per": "option"},
    "score": {**SCORE, "min_confidence": 0.9},
    "noul": {**NOUL, "coverage": 0.5},
    "multi": {**MULTI, "coverage": 0.5},
    "text": {**TEXT, "min_confidence": 0.9},
    "number": NUMBER,
    "integer": {**INTEGER, "nullable": True},
}
LABELS: dict[str, Any] = {
    "choice": "a",
    "score": 1,
    "noul": True,
    "multi": ["a"],
    "text": "Ada",
    "number": 12,
    "integer": 3,
}
REQUESTS: dict[str, dict[str, Any]] = {
    "every type": {},
    "a council": {"model": {"council": [DEMO, DEMO]}},
    "a cascade": {"model": {"cascade": [DEMO, DEMO], "escalate_below": 1}},
    "a race": {"model": {"race": [DEMO, DEMO]}},
    "explain": {"explain": True},
    "think": {"think": True},
    "strict": {"privacy": "strict"},
    "an image": {"images": ["https://x.example/i.png"]},
    "rules": {
        "questions": {
            kind: {**question, "rules": [{"if": {"plan": "pro"}, "answer": LABELS[kind]}]}
            for kind, question in EVERY.items()
        }
    },
    "stages": {
        "questions": {
            "first": NOUL,
            "second": {**TEXT, "depends_on": ["first"]},
            "skipped": {**NOUL, "when": {"plan": "free"}},
        }
    },
    "everything": WHOLE,
}
PASSING = {
    *("id", "decision_id", "next_before", "created_at", "leased_until", "state_hash"),
    *("expires_at", "latency_ms", "version"),
}


def send(client: FlaskClient, path: str, body: Any = None) -> Any:
    """What a route answers where it succeeds."""
    text = None if body is None else json.dumps(body)
    response = client.open(path, method="POST" if text else "GET", data=text)
    assert response.status_code in (200, 202), response.text
    return json.loads(response.data)


def settled(answer: Any) -> Any:
    """An answer without what differs from run to run."""
    if isinstance(answer, list):
        return [settled(one) for one in answer]
    if isinstance(answer, dict):
        return {
            name: ... if name in PASSING or name == "week" else settled(one)
            for name, one in answer.items()
        }
    return answer


def test_every_example_is_what_the_demonstration_model_answers(client: FlaskClient) -> None:
    ids: dict[str, str] = {}
    for example in examples():
        answer = send(client, example.path + example.query, _with(ids, example.request))
        assert settled(answer) == settled(example.answer), example.name
        strict_judge(answered(example.path)).validate(answer)
        strict_judge(answered(example.path)).validate(example.answer)
        ids |= {example.answer["id"]: answer["id"]} if "id" in answer else {}


def _with(ids: dict[str, str], request: Any) -> Any:
    """A request about the decision of today that an example's decision stands for."""
    if request is None or "decision_id" not in request:
        return request
    return {**request, "decision_id": ids[request["decision_id"]]}


def test_every_route_with_a_body_has_examples_that_its_schema_takes() -> None:
    components = {path: taken(path) for path in document()["paths"]}
    for path, component in components.items():
        if component is not None:
            found = [one for one in examples() if one.path == path]
            assert found
            for example in found:
                judge(component).validate(example.request)


@pytest.mark.parametrize("name", REQUESTS)
def test_every_field_of_a_decision_is_described(client: FlaskClient, name: str) -> None:
    body = {"state": STATE, "questions": EVERY, **REQUESTS[name]}
    strict_judge("DecisionResponse").validate(send(client, "/v1/decide", body))
    if name != "think":  # the criteria route has no other answers
        strict_judge("CriteriaResponse").validate(send(client, "/v1/systemone", body))


def test_every_field_of_the_audit_log_is_described(client: FlaskClient) -> None:
    for extra in REQUESTS.values():
        body = {"state": STATE, "questions": EVERY, **extra, "project": "audited"}
        send(client, "/v1/decide", body)
    page = send(client, "/v1/audit?project=audited&limit=10")
    assert page["next_before"] is not None
    strict_judge("AuditPage").validate(page)


@pytest.mark.parametrize("kind", EVERY)
def test_every_field_about_labelled_answers_is_described(client: FlaskClient, kind: str) -> None:
    project = f"labelled-{kind}"
    body = {"questions": {"q": EVERY[kind]}, "project": project, "debias": False}
    for number in range(40):
        answer = send(client, "/v1/decide", {**body, "state": f"a a urgent {number}"})
        label = LABELS[kind] if number % 2 else _other(kind, number)
        given = {"decision_id": answer["id"], "question": "q", "label": label}
        counted = send(client, "/v1/feedback", given)
    strict_judge("FeedbackResponse").validate(counted)
    strict_judge("DecisionResponse").validate(send(client, "/v1/decide", {**body, "state": "a"}))
    for route in ("calibration", "drift"):
        report = send(client, f"/v1/{route}?question=q&project={project}")
        strict_judge(answered(f"/v1/{route}")).validate(report)


def _other(kind: str, number: int) -> Any:
    """A label that is not the one of `LABELS`."""
    others = {"choice": "b", "score": 0, "noul": False, "multi": [], "text": "x"}
    return others.get(kind, number)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/nowhere", 404), ("/v1/drift", 422), ("/v1/decide", 405), ("/v1/audit?before=x", 404)],
)
def test_an_error_has_the_described_shape(client: FlaskClient, path: str, status: int) -> None:
    response = client.get(path)
    assert response.status_code == status
    strict_judge("Error").validate(response.get_json())
