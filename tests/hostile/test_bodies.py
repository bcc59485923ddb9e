"""No body of at most 16 MB costs a server more than a second, or 200 MB."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from flask.testing import FlaskClient

from tests.hostile.bodies import BODIES, BODY_BYTES, almost_found_in_samples
from tests.web.conftest import Start, start

__all__ = ["start"]  # the fixture

# A machine that is busy, or slow, is given some more.
PROCESSOR_S = 3.0
MEMORY_MB = 200


@pytest.fixture
def client(start: Start) -> FlaskClient:
    return start().test_client()


@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_body_costs_little_time(client: FlaskClient, name: str) -> None:
    body = BODIES[name]().encode()
    assert len(body) <= BODY_BYTES
    before = time.thread_time()
    response = client.post("/v1/decide", data=body)
    assert time.thread_time() - before < PROCESSOR_S
    assert response.status_code in (200, 400, 422), response.text


@pytest.mark.parametrize(("letter", "count", "sampled"), [("a", 14_900, 1), ("\u00df", 9_000, 2)])
def test_a_hostile_forecast_costs_little_time(
    client: FlaskClient, letter: str, count: int, sampled: int
) -> None:
    body = almost_found_in_samples(letter, 44, count)
    before = time.thread_time()
    response = client.post("/v1/forecast", data=body)
    assert time.thread_time() - before < PROCESSOR_S
    assert response.get_json()["sampled"] == sampled


@pytest.mark.parametrize(
    ("value", "operands", "sampled"),
    [
        ("1e310", ["1e309"] * 16_000, 6),
        ("1e310", ["1"] * 32_000, 5),
        ("[0]", ["[1]"] * 24_000, 5),
    ],
)
def test_a_forecast_with_long_lists_of_values_costs_little_time(
    client: FlaskClient, value: str, operands: list[str], sampled: int
) -> None:
    """Each row of a sample would be compared with all of them, and none is equal."""
    when = f'"when":{{"a":[{",".join(operands)}]}}'
    sample = ",".join([f'{{"a":{value}}}'] * 100)
    body = (
        f'{{"questions":{{"q":{{"type":"noul","instructions":"?",{when}}}}},"sample":[{sample}]}}'
    )
    before = time.thread_time()
    response = client.post("/v1/forecast", data=body)
    assert time.thread_time() - before < PROCESSOR_S
    assert response.get_json()["sampled"] == sampled


@pytest.mark.parametrize(("as_lines", "count"), [(True, 99_000), (False, 83_000)])
def test_hostile_rows_of_a_job_cost_little_time(start: Start, as_lines: bool, count: int) -> None:
    """Each has names beyond ASCII, an escaped surrogate pair and a number that no float holds."""
    client = start(SVC_MASTER_KEY="master").test_client()
    row = r'{"id":"%d","ref":"ré\ud83d\ude00%d","state":1.%s,"tags":{"é":"é"}}'
    rows = [row % (n, n, "23456789012345678901234567890") for n in range(count)]
    questions = '{"questions":{"q":{"type":"noul","instructions":"Is it?"}},"model":"@ollama/m"'
    if as_lines:
        body, media = "\n".join([questions + "}", *rows]), "application/x-ndjson"
    else:
        body, media = f'{questions},"rows":[{",".join(rows)}]}}', "application/json"
    assert len(body.encode()) <= BODY_BYTES
    before = time.thread_time()
    response = client.post("/v1/batch", data=body.encode(), content_type=media)
    assert time.thread_time() - before < PROCESSOR_S
    assert response.status_code == 202, response.text


@pytest.mark.parametrize(
    "name",
    [
        "unknown fields",
        "empty lists",
        "numbers beyond a float",
        "one text with an emoji, written and as escapes",
    ],
)
def test_a_hostile_body_costs_little_memory(client: FlaskClient, name: str) -> None:
    body = BODIES[name]().encode()
    tracemalloc.start()
    client.post("/v1/decide", data=body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MEMORY_MB * 1024 * 1024
