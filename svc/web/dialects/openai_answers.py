"""The answers of OpenAI's dialect, in the order of the questions."""

from __future__ import annotations

from dataclasses import dataclass

from svc.jsontext import JsonObject
from svc.records import Answer, Decision
from svc.schemas import REFUSED, DecisionRequest, DecisionResponseSchema, Shown, answer
from svc.shapes import (
    AMOUNT,
    COUNT,
    FLAG,
    PROBABILITY,
    TEXT,
    Json,
    Named,
    array,
    described,
    nullable,
    one_of_types,
    record,
)
from svc.web.dialects.openai_questions import Listed, Pick, Posed, Predicate, Rating


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """A checked request, and its questions as the caller sent them."""

    request: DecisionRequest
    listed: Listed

    def present(self, key: str, answer: Answer) -> Answer:
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
    share, sure = {"probability": PROBABILITY}, {"confidence": PROBABILITY}
    value = {"type": ["string", "boolean"]}
    own: dict[type[Posed], Json] = {
        Predicate: share,
        Pick: {
            **sure,
            "choice": value,
            "probabilities": array(record({"value": value, **share})),
        },
        Rating: {
            **sure,
            "score": AMOUNT,
            "probabilities": array(record({"value": COUNT, "label": TEXT, **share})),
        },
    }
    kinds = {
        posed.kind: record({**head, "calibrated": FLAG, **fields}, _others(posed.type, fields))
        for posed, fields in own.items()
    }
    kinds["refusal"] = record(
        {**head, "skipped": {"const": True}}, {"refused": REFUSED, "stage": COUNT}
    )
    names = {kind: f"Listed{kind.capitalize()}Answer" for kind in kinds}
    schemas = {kind: Named(names[kind], _typed(kind, schema)) for kind, schema in kinds.items()}
    return Named("ListedAnswer", one_of_types(schemas, names))


def _typed(kind: str, schema: Json) -> Json:
    properties = {"type": {"const": kind}, **schema["properties"]}
    return {**schema, "properties": properties, "required": ["type", *schema["required"]]}


def _others(kind: str, fields: Json) -> Json:
    """What an answer of `/v1/decide` may have besides its type's own fields."""
    others = answer(kind)["properties"]
    return {name: form for name, form in others.items() if name not in ("type", *fields, kind)}


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
