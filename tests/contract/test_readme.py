"""The README's worked requests give the answers that stand under them."""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient

from tests import readme

EXAMPLES = readme.examples()


def test_the_readme_has_worked_requests() -> None:
    assert len(EXAMPLES) >= 10
    assert {example.path for example in EXAMPLES} == {"/v1/decide", "/v1/systemone"}


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_a_worked_request_gives_the_answer_under_it(client: FlaskClient, number: int) -> None:
    example = EXAMPLES[number]
    response = client.post(example.path, data=json.dumps(example.body))
    assert readme.settled(json.loads(response.data)) == json.loads(example.answer)
