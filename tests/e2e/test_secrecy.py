"""What the server's log holds, at its most talkative: no state, no key, no answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.serving import Server
from tests.scripted import Behaviour, Json, Raw, Reply, ScriptedProvider, completion, error
from tests.web.models import decision

STATE = "wombat-in-the-state"
KEY = "sk-tungsten-key-0123456789"
VALUE = "quokka-value"
SECRETS = re.compile("wombat|tungsten|quokka", re.IGNORECASE)
QUESTIONS = {"name": {"type": "text", "instructions": "Which name?"}}


def echo(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """Fails in every way, always quoting the prompt and the key."""
    words = f"{headers['authorization']} said {body['messages'][-1]['content']}"
    ways = [
        Reply(error(words), 500),
        Reply(error(words, code=words, type=words, param=words), 400),
        Reply(error(words), 401, {"X-Echo": KEY}),
        Reply(error(words), 429, {"Retry-After": "99999"}),
        Reply(words),
        Reply(completion(words)),
        Raw(words.encode()),
        Reply(error(words, code="model_not_found"), 404),
    ]
    return ways[n % len(ways)]


def answering(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """Finds the value in whatever it is asked."""
    return Reply(completion(json.dumps({"q1": {"value": VALUE, "confidence": 0.9}})))


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_at_debug_holds_no_state_no_key_and_no_answer(db: Path, form: str) -> None:
    with ScriptedProvider(echo) as failing, ScriptedProvider(answering) as good:
        settings = {
            "SVC_LOG": form,
            "SVC_LOG_LEVEL": "debug",
            "SVC_PROVIDER_FAILING_URL": failing.url,
            "SVC_PROVIDER_FAILING_KEY": KEY,
            "SVC_PROVIDER_GOOD_URL": good.url,
            "SVC_PROVIDER_GOOD_KEY": KEY,
        }
        with Server(db, **settings) as server:
            for n in range(12):
                asked = decision(f"{STATE} {n}", model="@failing/m", debias=False)
                assert server.post(asked).status_code in (429, 502)
            body = {"state": STATE, "questions": QUESTIONS, "model": "@good/m"}
            answered = server.post(body)
            assert answered.json()["answers"]["name"]["value"] == VALUE
            server.post({**body, "mode": STATE})
            server.post({**body, "questions": {STATE: {"type": STATE}}})
            assert server.stop() == 0
            log = server.log
    assert SECRETS.search(log) is None
    assert log.count("/v1/decide") == 15
    assert "@failing/m" in log  # it does tell the operator which model failed


def test_every_line_of_a_json_log_is_an_object_that_no_caller_can_forge(db: Path) -> None:
    with Server(db, "--demo", SVC_LOG="json", SVC_LOG_LEVEL="debug") as server:
        server.get("/a%0a%7B%22level%22:%22ERROR%22%7D")
        server.get("/%1b[31m%e2%80%a8")
        assert server.stop() == 0
        first, *lines = server.log.splitlines()
    assert first.startswith("listening on ")
    parsed = [json.loads(line) for line in lines]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in parsed)
    assert [line["path"] for line in parsed if line.get("status") == 404] == [
        '/a\ufffd{"level":"ERROR"}',
        "/\ufffd[31m\ufffd",
    ]
