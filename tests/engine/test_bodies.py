"""What the calls of a decision take is known before they are made."""

from __future__ import annotations

from typing import Any

import pytest

from svc.jsontext import dumps
from svc.providers.bodies import ChatCall
from svc.providers.replies import Completion
from svc.schemas import load_decision
from tests.engine.fakes import Answerer, answering, world
from tests.engine.models import CHOICE, MULTI, NOUL, SCORE, TEXT, asking, saying, user_text
from tests.preferring import PreferringModel

LONG = "A long instruction. " * 40
# More than one word in each body, so that a difference shows.
NOULS = [{**NOUL, "instructions": f"{number} {LONG}"} for number in range(12)]
LONGEST = {**TEXT, "max_length": 2_000}


def by_label(name: str, call: ChatCall) -> Completion:
    """A model that answers a single label but never several lines."""
    if "lines and nothing else" in user_text(call):
        return Completion("What a question!", (), input_tokens=10)
    return answering(PreferringModel())(name, call)


def sent(call: ChatCall) -> int:
    """About how many bytes the body of a call has."""
    return len(dumps([*call.messages, call.schema]).encode())


def stages(letter: str) -> tuple[dict[str, Any], Answerer]:
    """Questions of which the last sees ten answers that are as long as they may be."""
    before = {f"t{number}": LONGEST for number in range(10)}
    last = {**TEXT, "depends_on": list(before)}
    texts = [{"value": letter * 2_000, "confidence": 0.9}] * 10
    return {"state": "s", "questions": {**before, "last": last}}, saying(*texts)


@pytest.mark.parametrize(
    ("body", "model", "most"),
    [
        (asking(*NOULS), answering(PreferringModel()), 1.5),
        (asking(*NOULS, CHOICE, MULTI, SCORE), by_label, 1.5),
        # More labels than a request has calls are asked for in JSON.
        (asking(*[MULTI] * 33), by_label, 1.5),
        (asking(*[MULTI] * 17, model={"council": ["@here/m", "@here/n"]}), by_label, 1.5),
        (asking(*NOULS, mode="verbal"), answering(PreferringModel()), 1.5),
        (asking({**NOULS[0], "think": True}, *NOULS[1:]), by_label, 1.5),
        (*stages('"'), 1.5),
        (*stages("\N{PARTY POPPER}"), 1.5),
        (*stages("x"), 4.0),
    ],
    ids=[
        "lines",
        "by label",
        "too many labels",
        "too many for a council",
        "verbal",
        "one thinks",
        "quotation marks",
        "emoji",
        "letters",
    ],
)
def test_calls_and_their_bytes_are_counted_before_they_are_made(
    body: dict[str, Any], model: Answerer, most: float
) -> None:
    with world(m=model, n=model) as made:
        # From the first one it is known how the model is asked.
        made.decide(body)
        made.client.calls.clear()
        made.decide(body)
        calls = [call for _, call in made.client.calls]
        bodies = made.engine.bodies(load_decision(body))
    assert len(calls) == bodies.calls
    total = sum(map(sent, calls))
    around = 300 * len(calls)
    assert total <= bodies.size + len(calls) * len("s") <= most * total + around
