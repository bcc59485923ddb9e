"""The answers of OpenAI's dialect, in the order of the questions."""

from __future__ import annotations

from dataclasses import dataclass

from svc.jsontext import JsonObject
from svc.records import Answer, Decision
from svc.schemas import DecisionRequest, DecisionResponseSchema, Shown
from svc.shapes import (
    COUNT,
    FLAG,
    PROBABILITY,
    TEXT,
    Named,
    array,
    described,
    nullable,
    one_of_types,
    record,
)
from svc.web.dialects.openai_questions import Listed, Pick, Predicate, Rating


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """A checked request, and its questions as the caller sent them."""

    request: DecisionRequest
    listed: Listed

    def present(self, _key: str, answer: Answer) -> Answer:
        """An answer as it is stored: as that of `/v1/decide`."""
        return answer

    def response(self, decision: Decision) -> JsonObject:
        """The body of the response to the caller."""
        answers = self.listed.answers(decision.answers)
        return {**decision.response(), "answers": answers, "usage": usage(decision)}


def usage(decision: Decision) -> JsonObject:
    """The tokens of a decision, as OpenAI counts them."""
    spent = decision.details
    return {
        "input_tokens": decision.input_tokens,
        "input_tokens_details": {
            "cached_tokens": spent.cached,
            "cache_write_tokens": spent.cache_writes,
        },
        "output_tokens": decision.output_tokens,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning},
        "total_tokens": decision.input_tokens + decision.output_tokens,
    }


def any_listed_answer() -> Named:
    """The JSON schema of an answer, by its type."""
    name = described(nullable(TEXT), "The question's name, null where it has none.")
    key = described(TEXT, "The key that feedback knows the question by.")
    head = {"name": name, "question": key}
    told = {**head, "calibrated": FLAG}
    share, sure = {"probability": PROBABILITY}, {"confidence": PROBABILITY}
    values = array(record({"value": {"type": ["string", "boolean"]}, **share}))
    levels = array(record({"value": COUNT, "label": TEXT, **share}))
    kinds = {
        Predicate.kind: {**told, **share},
        Pick.kind: {
            **told,
            **sure,
            "choice": {"type": ["string", "boolean"]},
            "probabilities": values,
        },
        Rating.kind: {
            **told,
            **sure,
            "score": {"type": "number", "minimum": 0},
            "probabilities": levels,
        },
        "refusal": {**head, "skipped": {"const": True}},
    }
    names = {kind: f"Listed{kind.capitalize()}Answer" for kind in kinds}
    schemas = {
        kind: Named(names[kind], record({"type": {"const": kind}, **properties}))
        for kind, properties in kinds.items()
    }
    return Named("ListedAnswer", one_of_types(schemas, names))


class ListedResponseSchema(DecisionResponseSchema):
    """The answers of a decision in the order of the questions, and the tokens it took."""

    answers = Shown(array(any_listed_answer), "In the order of the questions.")
    usage = Shown(
        record(
            {
                "input_tokens": described(COUNT, "As the providers counted them; 0 when cached."),
                "input_tokens_details": record(
                    {"cached_tokens": COUNT, "cache_write_tokens": COUNT}
                ),
                "output_tokens": COUNT,
                "output_tokens_details": record({"reasoning_tokens": COUNT}),
                "total_tokens": COUNT,
            }
        )
    )
