"""The official client of the criteria shape reads answers from a really started server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from typesafe_sdk import (
    Choice,
    Noul,
    Score,
    TypeSafeAuthenticationError,
    TypeSafeClient,
    TypeSafeUnprocessableEntityError,
)

from tests.e2e.serving import Server
from tests.e2e.test_access import make_key

STATE = {"subject": "Refund", "body": "I want my money back, my order 41 arrived broken"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    db: Path = tmp_path_factory.mktemp("typesafe") / "svc.db"
    with Server(db, "--demo") as server:
        yield server.url


@pytest.fixture
def client(url: str) -> Iterator[TypeSafeClient]:
    with TypeSafeClient(api_key="any", base_url=url) as client:
        yield client


def test_choice_score_and_noul_answers_are_read(client: TypeSafeClient) -> None:
    answers = client.system_one(
        state=STATE,
        questions={
            "what": Choice(criteria={"refund": "money back", "exchange": None, "3": ["x"]}),
            "how angry": Score(criteria=["calm", {"mood": "annoyed"}, "furious"]),
            "broken": Noul(instructions={"ask": "is it broken?"}, criteria={"true": "it broke"}),
        },
    )
    what = answers.choices["what"]
    assert what.choice == "refund"
    assert list(what.probabilities) == ["refund", "exchange", "3"]
    assert sum(what.probabilities.values()) == pytest.approx(1)
    angry = answers.scores["how angry"]
    assert angry.legend == {0: "calm", 1: {"mood": "annoyed"}, 2: "furious"}
    assert angry.score == pytest.approx(sum(i * p for i, p in angry.probabilities.items()))
    assert 0 <= answers.nouls["broken"].noul <= 1
    assert answers.usage.input_tokens
    assert answers.model == "@demo/lexical"


@pytest.mark.parametrize(
    "other",
    [
        {"type": "string", "instructions": "Which order?"},
        {"type": "integer", "instructions": "Which order?"},
        {"type": "number", "instructions": "Which order?", "nullable": True},
        {"type": "multi", "instructions": "Which?", "criteria": {"a": None}},
        {"type": "choice", "criteria": {"a": "", "b": ""}, "when": {"subject": "Invoice"}},
        {"type": "noul", "rules": [{"if": {"subject": "Refund"}, "answer": True}]},
        {"type": "choice", "criteria": {"a": "", "b": ""}, "depends_on": ["broken"]},
        {"type": "choice", "criteria": {"a": "", "b": ""}, "min_confidence": 1, "coverage": 0.9},
    ],
)
def test_no_other_answer_breaks_the_ones_it_knows(
    client: TypeSafeClient, url: str, other: dict[str, Any]
) -> None:
    known = {"type": "noul", "instructions": "Is it broken?"}
    answers = client.system_one(
        state=STATE,
        questions={"broken": Noul(instructions="x")},
        extra_body={"questions": {"broken": known, "other": other}},
    )
    assert 0 <= answers.nouls["broken"].noul <= 1


def test_a_body_that_the_client_compressed_is_refused_with_what_to_send_instead(url: str) -> None:
    headers = {"Content-Encoding": "zstd", "Authorization": "Bearer any"}
    response = requests.post(f"{url}/v1/systemone", b"(\xb5/\xfd", headers=headers, timeout=30)
    assert (response.status_code, response.json()["error"]["type"]) == (
        415,
        "unsupported_media_type",
    )
    assert "gzip" in response.json()["error"]["message"]


def test_a_refused_question_is_the_clients_error_with_its_place(client: TypeSafeClient) -> None:
    with pytest.raises(TypeSafeUnprocessableEntityError) as refused:
        client.system_one(state="x", questions={"q": Choice(criteria={"a": "alone"})})
    assert "2 to 255" in str(refused.value)
    assert refused.value.body["detail"][0]["loc"] == ["body", "questions", "q", "options"]


def test_a_refused_key_is_the_clients_authentication_error(db: Path) -> None:
    make_key(db, "ada")
    with (
        Server(db, "--demo") as server,
        TypeSafeClient(api_key="another", base_url=server.url) as client,
    ):
        with pytest.raises(TypeSafeAuthenticationError) as refused:
            client.system_one(state="x", questions={"q": Noul(instructions="?")})
    assert refused.value.body["detail"]["error_type"] == "authentication_error"


def test_the_models_are_listed(client: TypeSafeClient) -> None:
    names = [model.name for model in client.models.list().models]
    assert names == ["svc-latest", "svc-1.0.0", "svc-1.1.0", "svc-1.2.0", "svc-1.3.0"]
