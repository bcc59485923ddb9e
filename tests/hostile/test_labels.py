"""No body of labels of at most 16 MB costs a server more than a second, or 200 MB."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from tests.hostile.bodies import BODY_BYTES
from tests.hostile.test_bodies import MEMORY_MB, PROCESSOR_S
from tests.web.conftest import Start, start

__all__ = ["start"]  # the fixture

# About as long as 5,000 lines of one body may be.
LONG = "x" * 3_000


def _labels(line: str, count: int = 5_000) -> str:
    return '{"labels":[' + ",".join([line] * count) + "]}"


BODIES: dict[str, Callable[[], str]] = {
    "long refs": lambda: _labels(json.dumps({"ref": LONG, "labels": {"q": 1}})),
    "long ids": lambda: _labels(json.dumps({"id": LONG, "labels": {"q": 1}})),
    "long keys": lambda: _labels(json.dumps({"id": "x", "labels": {LONG: 1}})),
    "long labels": lambda: _labels(json.dumps({"id": "x", "labels": {"q": LONG}})),
    "long unknown fields": lambda: _labels(json.dumps({LONG: 1})),
    "many unknown fields": lambda: _labels(
        "{" + ",".join(f'"u{number}":1' for number in range(38)) + "}"
    ),
    "empty objects": lambda: _labels("{}"),
    "too many lines": lambda: _labels("0", 190_000),
    "one line with too many labels": lambda: _labels(
        '{"id":"x","labels":{' + ",".join(f'"u{number}":1' for number in range(190_000)) + "}}", 1
    ),
}
LINES: dict[str, Callable[[], str]] = {
    "blank lines": lambda: "\n" * BODY_BYTES,
    "lines that are no JSON": lambda: "{\n" * 190_000,
    "5,000 long lines that are no JSON": lambda: (LONG + "\n") * 5_000,
    "one long line": lambda: '"' + "x" * (BODY_BYTES - 2) + '"',
}
EVERY = [(name, "application/json") for name in BODIES] + [
    (name, "application/x-ndjson") for name in LINES
]


@pytest.fixture
def client(start: Start) -> FlaskClient:
    return start().test_client()


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_a_hostile_body_of_labels_costs_little(client: FlaskClient, name: str, kind: str) -> None:
    body = {**BODIES, **LINES}[name]().encode()
    assert len(body) <= BODY_BYTES
    before = time.thread_time()
    response = client.post("/v1/feedback/bulk", data=body, content_type=kind)
    assert time.thread_time() - before < PROCESSOR_S
    assert response.status_code in (200, 400, 422), response.text
    assert len(response.data) < 2_000_000
    tracemalloc.start()
    client.post("/v1/feedback/bulk", data=body, content_type=kind)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MEMORY_MB * 1024 * 1024
