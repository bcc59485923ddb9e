"""The README's worked requests give the answers that stand under them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.app import create_app
from svc.bootstrap import Services
from tests import readme

EXAMPLES = readme.examples()


@pytest.fixture(scope="module")
def answers(services: Services) -> list[Any]:
    return readme.answer_all(create_app(services).test_client())


def test_the_readme_has_worked_requests() -> None:
    assert len(EXAMPLES) >= 12
    paths = {example.path.partition("?")[0] for example in EXAMPLES}
    assert paths == {"/v1/decide", "/v1/systemone", "/v1/feedback", "/v1/drift", "/v1/rates"}


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_a_worked_request_gives_the_answer_under_it(answers: list[Any], number: int) -> None:
    assert answers[number] == json.loads(EXAMPLES[number].answer)
