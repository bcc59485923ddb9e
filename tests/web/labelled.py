"""A client whose decisions have stated probabilities, and whose answers get labels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from flask.testing import FlaskClient

from tests.preferring import PreferringModel, user_text
from tests.scripted import Behaviour, Json, Reply, completion
from tests.web.models import ANIMAL, reply_to

NOUL: Json = {"type": "noul", "instructions": "Is it spam?"}
CITY: Json = {"type": "text", "instructions": "Which city?", "nullable": True}
_CLAIM = re.compile(r"(?:cat|yes|value) ?= ?([^;<\n]+)")


def obeying(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """A model that says what the state tells it to: `cat=0.8; 3`, `yes=0.9`, `value="Rome", 1`."""
    if isinstance(content := body["messages"][-1]["content"], list):  # with images
        body = {**body, "messages": [{"content": content[0]["text"]}]}
    claim = _CLAIM.search(user_text(body))
    said = "0.5" if claim is None else claim[1]
    if "," in said:
        value, confidence = said.split(",")
        member = {"value": json.loads(value), "confidence": float(confidence)}
        return Reply(completion(json.dumps({"q1": member})))
    p = float(said)
    return Reply(reply_to(PreferringModel({"cat": p, "dog": 1 - p}, yes=p), body))


class Labelled:
    """Decides and labels over the client."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client

    def decide(self, state: Any, question: Json = ANIMAL, **fields: Any) -> Json:
        body = {"state": state, "questions": {"q": question}, **fields}
        response = self.client.post("/v1/decide", data=json.dumps(body))
        assert response.status_code == 200, response.text
        found: Json = json.loads(response.data)
        return found

    def feedback(self, decision_id: str, label: Any, question: str = "q") -> Json:
        response = self.send(decision_id, label, question)
        assert response.status_code == 200, response.text
        return dict(response.get_json())

    def send(self, decision_id: Any, label: Any, question: Any = "q") -> Any:
        body = {"decision_id": decision_id, "question": question, "label": label}
        return self.client.post("/v1/feedback", json=body)

    def teach(self, count: int, *, right: float = 0.6, p: float = 0.95, **fields: Any) -> Json:
        """`count` decisions with P(cat) = `p`, of which the share `right` are cats."""
        last: Json = {}
        for number in range(count):
            truth = "cat" if (number * 7) % 10 < right * 10 else "dog"
            decision = self.decide(f"cat={p}; {number}", debias=False, **fields)
            last = self.feedback(decision["id"], truth)
        return last

    def get(self, path: str, status: int = 200) -> Json:
        response = self.client.get(path)
        assert response.status_code == status, response.text
        return dict(response.get_json())
