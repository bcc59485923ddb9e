"""The official client of Google decides on a really started server, by address and key alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai.types import HttpOptions

from tests.e2e.serving import Server
from tests.e2e.test_access import make_key

CALLS = json.loads(Path(__file__).with_name("google_calls.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client with the key of a server that asks for one."""
    db = tmp_path_factory.mktemp("google") / "svc.db"
    _, key = make_key(db, "all")
    with Server(db, "--demo") as server:
        yield genai.Client(api_key=key, http_options=HttpOptions(base_url=server.url))


def test_the_list_of_calls_is_long() -> None:
    assert len(CALLS) >= 20


@pytest.mark.parametrize("call", CALLS, ids=[one["name"] for one in CALLS])
def test_a_call_with_every_documented_field_is_answered(client: Any, call: dict[str, Any]) -> None:
    decision = client.decisions.create(**call["call"])
    asked = call["call"]["questions"]
    assert list(decision.answers) == list(asked)
    for key, question in asked.items():
        answer = decision.answers[key]
        assert answer.type == question["type"]
        assert 0 <= answer.confidence <= 1
        if answer.type == "choice":
            assert list(answer.probabilities) == list(question["criteria"])
        elif answer.type == "score":
            assert list(answer.legend.values()) == question["criteria"]
    used = decision.usage
    assert used.total_tokens == used.total_input_tokens + used.total_output_tokens


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"input": [{"type": "audio", "uri": "https://x.example/a"}]},
            "must be one of text",
        ),
        ({"questions": {"q": {"type": "noul", "instructions": " "}}, "input": []}, "1 to"),
    ],
)
def test_a_bad_request_is_one_to_its_client(client: Any, fields: Any, words: str) -> None:
    question = {"type": "noul", "instructions": "Is it?"}
    call = {"model": "any", "input": "x", "questions": {"q": question}, **fields}
    with pytest.raises(Exception, match="400") as raised:
        client.decisions.create(**call)
    assert type(raised.value).__name__ == "BadRequestError"
    assert words in str(raised.value)
