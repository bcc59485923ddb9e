"""What the demonstration model writes: one label a line, or JSON that matches a schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc.demo import extraction, model
from svc.demo.model import Evidence
from svc.demo.prompt_reading import PromptQuestion, Sheet, letters, read_prompt

# This share of the probability falls on the labels, the rest on other tokens.
SURE = 0.999

# No alternative has a lower probability.
LEAST = 1e-6

# A probability in a JSON reply has so many decimals.
DECIMALS = 4

# The longest extracted text where the question sets no limit.
MOST_CHARS = 10_000

# The length of a token in a reply that is not a label.
CHUNK_CHARS = 4

UNKNOWN = "I am a lexical matcher: I answer typed questions about an input, and do not chat."
REASONING = "I compared the words of the input with those of each option."

_NO_QUESTION = PromptQuestion("", (), ())
_LISTED = re.compile(r"for each of ([^;]+?)(?:;|, the probability|$)")
_LOW = re.compile(r"\bfrom (-?[\d.]{1,400}(?:e[+-]?\d{1,3})?)")
_HIGH = re.compile(r"\b(?:at most|to) (-?[\d.]{1,400}(?:e[+-]?\d{1,3})?)")


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    """A piece of the reply with its alternatives, most probable first; the first is the piece."""

    alternatives: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        return self.alternatives[0][0]


def reply_tokens(prompt: str, schema: dict[str, Any] | None) -> list[ReplyPiece]:
    """The reply to the last message of the user; with a `schema` it is JSON that matches it."""
    text, sheet = read_prompt(prompt)
    evidence = Evidence(text)
    if schema is None and sheet.lines:
        return _label_tokens(sheet, evidence)
    if schema is None and not sheet.members:
        return _chunks(UNKNOWN)
    proposal: dict[str, Any] = {"reasoning": REASONING} if schema else {}
    for name, number, form in sheet.members:
        question = sheet.questions.get(number, _NO_QUESTION)
        proposal[name] = _member(question, form, evidence)
    return _chunks(json.dumps(conform(schema or {}, proposal), separators=(",", ":")))


def conform(schema: object, proposal: Any) -> Any:
    """`proposal` as far as `schema` allows it, and the plainest allowed value where it does not."""
    if not isinstance(schema, Mapping) or not schema:
        return proposal
    for several in ("anyOf", "oneOf"):
        if isinstance(schema.get(several), list) and schema[several]:
            return conform(schema[several][-1 if proposal is None else 0], proposal)
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return proposal if proposal in schema["enum"] else schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kinds = schema.get("type")
    return _typed(schema, kinds if isinstance(kinds, list) else [kinds], proposal)


def _typed(schema: Mapping[str, Any], kinds: list[Any], proposal: Any) -> Any:
    """`proposal` when it is null or of the first kind, as allowed; else that kind's plainest."""
    if "null" in kinds and proposal is None:
        return None
    kind = next((kind for kind in kinds if isinstance(kind, str) and kind != "null"), None)
    if kind == "object" or (kind is None and "properties" in schema):
        given = proposal if isinstance(proposal, dict) else {}
        properties = schema.get("properties")
        fields = properties if isinstance(properties, Mapping) else {}
        return {name: conform(field, given.get(name)) for name, field in fields.items()}
    if kind == "array":
        given_items = proposal if isinstance(proposal, list) else []
        return [conform(schema.get("items"), item) for item in given_items]
    if kind == "integer" and isinstance(proposal, int | float):
        return int(proposal)
    if isinstance(proposal, _PYTHON.get(kind, ())):
        return proposal
    return _PLAINEST.get(kind)


_PLAINEST: dict[str | None, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False}
_PYTHON: dict[str | None, tuple[type, ...]] = {"string": (str,), "number": (int, float)}


def _label_tokens(sheet: Sheet, evidence: Evidence) -> list[ReplyPiece]:
    several = {line.question for line in sheet.lines if line.option is not None}
    applying = {
        number: model.applies(question, len(question.options) or 1, evidence)
        for number, question in sheet.questions.items()
        if number in several
    }
    tokens: list[ReplyPiece] = []
    for line in sheet.lines:
        if tokens:
            tokens.append(_token({"\n": 1.0}))
        if line.option is None:
            question = sheet.questions.get(line.question, _NO_QUESTION)
            tokens.append(_token(_labelled(question, line.labels, evidence)))
        else:
            shares = applying.get(line.question, [])[line.option :]
            tokens.append(_token(_yes_no(shares[0] if shares else 0.0)))
    return tokens


def _labelled(
    question: PromptQuestion, labels: tuple[str, ...], evidence: Evidence
) -> dict[str, float]:
    if set(labels) == {"yes", "no"}:
        return _yes_no(model.yes(question, labels[0] == "no", evidence))
    return dict(zip(labels, model.distribution(question, len(labels), evidence), strict=True))


def _yes_no(yes: float) -> dict[str, float]:
    return {"yes": yes, "no": 1 - yes}


def _member(question: PromptQuestion, form: str, evidence: Evidence) -> Any:
    """A question's member of a JSON reply, from the form's words."""
    if '"value"' in form:
        return _value(question, form, evidence)
    listed = _LISTED.search(form)
    if listed is None:
        return _top_labels(question, form, evidence)
    labels = tuple(listed[1].split(", "))
    if "applies" in form:
        shares = model.applies(question, len(labels), evidence)
        return {label: round(share, DECIMALS) for label, share in zip(labels, shares, strict=True)}
    by_label = _labelled(question, labels, evidence)
    return {label: round(share, DECIMALS) for label, share in by_label.items()}


def _top_labels(question: PromptQuestion, form: str, evidence: Evidence) -> list[dict[str, Any]]:
    wanted = re.search(r"\d{1,3}", form)
    count = len(question.options) or 1
    shares = model.distribution(question, count, evidence)
    ranked = sorted(zip(letters(), shares, strict=False), key=lambda row: -row[1])
    rows = ranked[: int(wanted[0]) if wanted else 5]
    return [{"label": label, "probability": round(share, DECIMALS)} for label, share in rows]


def _value(question: PromptQuestion, form: str, evidence: Evidence) -> dict[str, Any]:
    """The text, number or whole number that the input holds, or else the plainest guess."""
    form = form.partition('"confidence"')[0]
    low, high = _bound(_LOW, form, -math.inf), _bound(_HIGH, form, math.inf)
    found: extraction.Found
    if "number" in form or "integer" in form:
        whole = "whole" in form or "integer" in form
        found = extraction.number(question.instructions, evidence.text, whole, low, high)
        guess: Any = min(max(0.0, low), high)
    else:
        longest = int(max(0, min(high, MOST_CHARS)))
        found = extraction.phrase(question.instructions, evidence.text, longest)
        guess = evidence.text.strip()[:longest].strip()
        whole = False
    value, confidence = found
    if value is None and "null" not in form:
        value, confidence = guess, extraction.GUESS
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return {"value": value, "confidence": confidence}


def _bound(pattern: re.Pattern[str], form: str, default: float) -> float:
    match = pattern.search(form)
    try:
        bound = float(match[1]) if match else default
    except ValueError:
        return default
    return bound if math.isfinite(bound) else default


def _token(shares: Mapping[str, float]) -> ReplyPiece:
    ranked = sorted(shares.items(), key=lambda row: -row[1])
    return ReplyPiece(tuple((text, max(SURE * share, LEAST)) for text, share in ranked))


def _chunks(text: str) -> list[ReplyPiece]:
    return [
        _token({text[start : start + CHUNK_CHARS]: 1.0})
        for start in range(0, len(text), CHUNK_CHARS)
    ]
