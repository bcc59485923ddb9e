"""Prompts as the service writes them, spelled out so that these tests need nothing of it."""

from __future__ import annotations

import json
import math
from typing import Any

from svc.demo.chat import complete

TEAM = (
    "Which team should handle this?",
    ["billing: Payments, invoices and refunds", "technical: Errors and outages"],
)
ESCAPE = "none_of_these: None of the other options fits"
MARK = "0123456789abcdef" * 2
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def question(number: int, instructions: str, *options: str, guidance: str = "Decide.") -> str:
    lettered = [f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False)]
    return "\n".join([f"Question {number}: {instructions}", *lettered, *filter(None, [guidance])])


def reply_lines(*wanted: str) -> str:
    lines = [f"Line {number}: {line}" for number, line in enumerate(wanted, 1)]
    return "\n".join([f"Reply with exactly {len(lines)} lines and nothing else.", *lines])


def reply_members(*forms: str) -> str:
    head = "Reply with one JSON object and nothing else, with these members:"
    return "\n".join([head, *(f'"q{number}": {form}' for number, form in enumerate(forms, 1))])


def prompt(state: str, *blocks: str, template: str = "1.2.0") -> str:
    """The blocks (questions, then the wanted reply) and the state in a template's order."""
    asked = "\n\n".join(["Questions:", *blocks])
    if template == "1.0.0":
        return f"Input:\n{state}\n\n{asked}"
    marked = f"<input-3fa9c1d2>\n{state}\n</input-3fa9c1d2>"
    return f"{marked}\n\n{asked}" if template == "1.1.0" else f"{asked}\n\n{marked}"


def cued(state: str, *blocks: str, cue: str = "Answers:") -> str:
    """The blocks (questions, the wanted reply, earlier answers), the state and a cue, as 1.3.0."""
    marked = f"Input:\n<input-{MARK}>\n{state}\n</input-{MARK}>"
    return "\n\n".join([*blocks, marked, cue])


def cued_lines(*wanted: str) -> str:
    head = f"Answer with exactly {len(wanted)} lines and nothing else, in this order:"
    return "\n".join([head, *wanted])


def body(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "lexical", "messages": [{"role": "user", "content": text}], **fields}


def ask(text: str, **fields: Any) -> dict[str, Any]:
    """The choice of a completion."""
    choice: dict[str, Any] = complete(json.dumps(body(text, **fields)).encode())["choices"][0]
    return choice


def shares(text: str) -> list[dict[str, float]]:
    """The probabilities at each label of a reply."""
    content = ask(text, logprobs=True, top_logprobs=20)["logprobs"]["content"]
    return [
        {entry["token"]: math.exp(entry["logprob"]) for entry in token["top_logprobs"]}
        for token in content[::2]
    ]


def one(state: str, instructions: str, *options: str) -> dict[str, float]:
    """The probabilities of one question: of its options' letters, or of yes and no."""
    labels = ", ".join(LETTERS[: len(options)])
    wanted = f"question 1, one of {labels}" if options else "question 1, yes or no"
    (found,) = shares(prompt(state, question(1, instructions, *options), reply_lines(wanted)))
    return found


def value(state: str, instructions: str, form: str) -> dict[str, Any]:
    """The member of an extraction question."""
    member = f'an object {{"value": {form}, "confidence": the probability from 0 to 1}}'
    text = prompt(state, question(1, instructions), reply_members(member))
    found: dict[str, Any] = json.loads(ask(text)["message"]["content"])["q1"]
    return found
