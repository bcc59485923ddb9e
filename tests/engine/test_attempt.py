"""One way of asking: what its replies cost to read is waited for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from svc.engine.attempt import CallTarget, Runner
from svc.engine.calls import Call, Outcome
from svc.engine.prompt import PromptInput
from svc.pins import NEWEST, PINS
from svc.providers import Way
from svc.providers.replies import Completion, Token
from svc.records import Model
from svc.schemas import load_questions
from tests.engine.models import CHOICE, NOUL

TARGET = CallTarget(Model("@here/m", "here", "m"), strict=False)
QUESTIONS = tuple(load_questions({"a": NOUL, "b": CHOICE}).values())


def test_each_reply_is_read_in_a_turn_of_its_length() -> None:
    lengths: list[int] = []
    text = json.dumps({"q1": {"yes": 0.8, "no": 0.2}, "q2": {"A": 0.7, "B": 0.3}})
    tokens = tuple(Token(one, -0.1, ((one, -0.1),)) for one in ("yes", "\n", "A"))

    @contextmanager
    def turn(chars: int) -> Iterator[None]:
        lengths.append(chars)
        yield

    def carry_out(calls: Sequence[Call]) -> Sequence[Outcome]:
        # Those that are asked for labels get tokens.
        return [
            Completion("yes\nA", tokens) if call.content.logprobs else Completion(text)  # type: ignore[union-attr]
            for call in calls
        ]

    runner = Runner(carry_out, turn)
    material = PromptInput(PINS[NEWEST], QUESTIONS, "s")
    asked = [runner.attempt(way, (False, True), TARGET, material, False) for way in WAYS]
    assert [len(attempt.readings) for attempt in asked] == [2, 2]
    # Each token may have twenty alternatives.
    assert lengths == [len(text)] * 2 + [len("yes\nA") + 3 * 80] * 2


WAYS = (Way.SCHEMA, Way.LINES)
