"""What callers send to the routes that read anything but a decision request."""

from __future__ import annotations

import copy
import json
import urllib.parse
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from svc.app import create_app
from svc.bootstrap import build
from svc.demo import DemoServer
from svc.settings import load
from tests.contract.test_properties import WHOLE
from tests.fuzz.inputs import FUZZED, JSON, TEXT, as_json, damaged, damaged_bytes, nested, places

ERRORS = {400: "invalid_json", 404: "not_found", 413: "too_large", 422: "invalid_request"}
PARAMETERS = ("question", "project", "limit", "before", "weeks", "x")
FILTERS = (
    *("question", "answer", "min_confidence", "max_confidence", "ref", "tag", "model"),
    *("from", "to", "labelled", "project", "limit", "before", "format", "after", "reviewer"),
    *("answers", "last", "by"),
)


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of the whole application, whose only models are the demonstration's."""
    with DemoServer() as demo:
        variables = {
            "SVC_DB": str(tmp_path_factory.mktemp("fuzz") / "svc.db"),
            "SVC_MODEL": "@demo/lexical",
            "SVC_PROVIDER_DEMO_URL": demo.url,
        }
        services = build(load(variables))
        yield create_app(services).test_client()
        services.close()


@pytest.fixture(scope="module")
def label(sender: FlaskClient) -> dict[str, Any]:
    """A label that fits a decision."""
    made = sender.post("/v1/decide", data=json.dumps({**WHOLE, "model": "@demo/lexical"}))
    return {"decision_id": made.get_json()["id"], "question": "y", "label": 1}


def assert_answered_or_refused(response: Any) -> None:
    if response.status_code != 200:
        error = response.get_json()["error"]
        assert set(error) == {"type", "message"}
        assert error["type"] == ERRORS[response.status_code]


@FUZZED
@given(data=st.data())
def test_any_label_is_taken_or_refused(
    sender: FlaskClient, label: dict[str, Any], data: st.DataObject
) -> None:
    body = data.draw(st.one_of(damaged(label), damaged(label).map(lambda b: [b]), JSON))
    assert_answered_or_refused(sender.post("/v1/feedback", data=as_json(body)))


@FUZZED
@given(key=st.sampled_from("zyxwvut"), value=JSON)
def test_any_value_as_a_label_is_taken_or_refused(
    sender: FlaskClient, label: dict[str, Any], key: str, value: Any
) -> None:
    body = {**label, "question": key, "label": value}
    assert_answered_or_refused(sender.post("/v1/feedback", data=as_json(body)))


@pytest.fixture(scope="module")
def lines(label: dict[str, Any]) -> dict[str, Any]:
    """Labels in bulk that fit a decision."""
    drawn = {"sampled": "random", "chance": 0.5, "reviewer": "ann"}
    named = {"id": label["decision_id"], "labels": {"y": 1, "x": True}}
    return {"labels": [{**named, **drawn}, {"ref": "r", "labels": {"y": 0}}], "atomic": False}


@FUZZED
@given(data=st.data())
def test_any_labels_in_bulk_are_taken_or_refused(
    sender: FlaskClient, lines: dict[str, Any], data: st.DataObject
) -> None:
    body = data.draw(st.one_of(damaged_bytes(lines), damaged(lines).map(as_json)))
    query = data.draw(st.sampled_from(["", "?atomic=true", "?project=p", "?atomic="]))
    response = sender.post(f"/v1/feedback/bulk{query}", data=body)
    assert_answered_or_refused(response)


@FUZZED
@given(data=st.data())
def test_any_lines_of_labels_are_taken_or_refused(
    sender: FlaskClient, lines: dict[str, Any], data: st.DataObject
) -> None:
    good = [damaged_bytes(line) for line in lines["labels"]]
    line = st.one_of(*good, st.just(b""), st.binary(max_size=20))
    body = b"\n".join(data.draw(st.lists(line, max_size=4)))
    kind = "application/x-ndjson"
    assert_answered_or_refused(sender.post("/v1/feedback/bulk", data=body, content_type=kind))


@FUZZED
@given(data=st.data())
def test_any_skip_of_a_review_is_taken_or_refused(
    sender: FlaskClient, label: dict[str, Any], data: st.DataObject
) -> None:
    skip = {"decision_id": label["decision_id"], "question": "y", "reviewer": "ann"}
    sender.get("/v1/review?question=y&reviewer=ann")
    body = data.draw(st.one_of(damaged_bytes(skip), st.just(as_json(skip))))
    assert_answered_or_refused(sender.post("/v1/review/skip", data=body))


@FUZZED
@given(
    path=st.sampled_from(
        [
            *("audit", "export", "review", "review/disagreements", "activity", "questions"),
            *("projects", "decisions/dec_x"),
        ]
    ),
    query=st.lists(
        st.tuples(
            st.sampled_from(FILTERS),
            st.one_of(
                TEXT,
                st.integers(-(10**16), 10**16).map(str),
                st.datetimes().map(str),
                st.sampled_from(
                    ["y", "a:b", "true", "0.5", "1e400", "jsonl", "csv", "[", '["a"]', "ann", "day"]
                ),
            ),
        ),
        max_size=6,
    ),
)
def test_any_filters_are_answered_or_refused(
    sender: FlaskClient, label: dict[str, Any], path: str, query: list[tuple[str, str]]
) -> None:
    response = sender.get(f"/v1/{path}?{urllib.parse.urlencode(query)}")
    assert_answered_or_refused(response)


@FUZZED
@given(query=st.dictionaries(TEXT, TEXT, max_size=4), method=st.sampled_from(["GET", "HEAD"]))
def test_budgets_are_listed_whatever_the_query_says(
    sender: FlaskClient, query: dict[str, str], method: str
) -> None:
    response = sender.open(f"/v1/budgets?{urllib.parse.urlencode(query)}", method=method)
    assert response.status_code == 200


@FUZZED
@given(budget=JSON)
def test_any_budget_of_a_job_is_refused_or_waits_for_a_master_key(
    sender: FlaskClient, budget: Any
) -> None:
    question = {"q": {"type": "noul", "instructions": "Late?"}}
    body = {"questions": question, "rows": [{"id": "a", "state": "x"}], "budget_usd": budget}
    response = sender.post("/v1/batch", data=as_json(body))
    assert response.status_code in (400, 422)
    assert_answered_or_refused(response)


@FUZZED
@given(part=st.text(max_size=40))
def test_any_id_of_a_decision_is_found_or_not(sender: FlaskClient, part: str) -> None:
    path = urllib.parse.quote(part.encode("utf-8", "surrogatepass"), safe="")
    response = sender.get(f"/v1/decisions/{path}")
    assert response.status_code in (200, 308, 404, 405)


@pytest.mark.parametrize("depth", [300, 970, 3_000])
def test_nesting_anywhere_in_a_request_is_answered_or_refused(
    sender: FlaskClient, depth: int
) -> None:
    """Without hypothesis, which lets Python recurse further than it usually does."""
    for number in range(len(list(places(WHOLE)))):
        body = copy.deepcopy(WHOLE)
        place, key = list(places(body))[number]
        place[key] = nested(depth)
        assert_answered_or_refused(sender.post("/v1/decide", data=as_json(body)))


@FUZZED
@given(
    path=st.sampled_from(["audit", "drift", "calibration", "rates", "models"]),
    query=st.dictionaries(
        st.sampled_from(PARAMETERS),
        st.one_of(TEXT, st.integers(-5, 2000).map(str), st.sampled_from(["y", "z", "default"])),
    ),
    raw=st.one_of(st.just(b""), st.binary(max_size=20)),
)
def test_any_query_is_answered_or_refused(
    sender: FlaskClient, path: str, query: dict[str, str], raw: bytes
) -> None:
    given_query = urllib.parse.urlencode(query) + "&" + raw.decode("latin-1")
    response = sender.get(f"/v1/{path}", query_string=given_query)
    assert_answered_or_refused(response)


@FUZZED
@given(
    data=damaged_bytes(WHOLE),
    packed=st.sampled_from([zlib.compress, bytes]),
    cut=st.integers(0, 30),
)
def test_any_compressed_body_is_answered_or_refused(
    sender: FlaskClient, data: bytes, packed: Any, cut: int
) -> None:
    body = packed(data)
    headers = {"Content-Encoding": "deflate"}
    response = sender.post("/v1/systemone", data=body[: len(body) - cut], headers=headers)
    if response.status_code != 502:  # a model that the demonstration does not have
        assert_answered_or_refused(response)
