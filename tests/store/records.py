"""Decisions to store."""

import hashlib
import json
from typing import Any

from svc.records import Answer, AskedQuestion, Decision, Source


def asked(key: str, instructions: str = "Which?", reading: Any = (0.7, 0.3)) -> AskedQuestion:
    definition = json.dumps({"type": "choice", "instructions": instructions})
    value = list(reading) if isinstance(reading, tuple) else reading
    return AskedQuestion(key, hashlib.sha256(definition.encode()).digest(), definition, value)


def record(*questions: AskedQuestion, **fields: Any) -> Decision:
    """A decision of one choice, or of `questions`, with `fields` replaced."""
    asked_questions = questions or (asked("topic"),)
    said = {"choice": "a", "probabilities": {"a": 0.7, "b": 0.3}, "confidence": 0.7}
    answer = Answer(Source.MODELS, said, top="a", confidence=0.7)
    given: dict[str, Any] = {
        "project": "default",
        "api_key": None,
        "state_hash": hashlib.sha256(b"state").digest(),
        "model": "@demo/lexical",
        "mode": "logprobs",
        "config": "svc-1.2.0",
        "privacy": "standard",
        "answers": {question.key: answer for question in asked_questions},
        "questions": asked_questions,
        "latency_ms": 12.5,
        "cost_usd": 0.000125,
        "cached": False,
        "images": (),
        **fields,
    }
    return Decision(**given)
