"""The answers of Google's dialect, by the keys of the questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc.jsontext import JsonObject
from svc.records import Answer, Decision
from svc.schemas import DecisionRequest, Shown
from svc.shapes import COUNT, PROBABILITY, Named, described, mapping, one_of_types, record
from svc.web.dialects.google_questions import QUESTIONS
from svc.web.systemone import (
    SKIPPED,
    Criteria,
    CriteriaResponseSchema,
    skipped_answer,
    typed_answer,
)


@dataclass(frozen=True, slots=True)
class MappedRequest:
    """A checked request, which is one in the criteria shape but for its input."""

    criteria: Criteria

    @property
    def request(self) -> DecisionRequest:
        return self.criteria.request

    def present(self, key: str, answer: Answer) -> Answer:
        """An answer as it is stored: as on the criteria route."""
        return self.criteria.present(key, answer)

    def response(self, decision: Decision) -> JsonObject:
        """The body of the response to the caller."""
        answers = {key: _sure(answer.fields) for key, answer in decision.answers.items()}
        return {**decision.response(), "answers": answers, "usage": _usage(decision)}


def _sure(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an answer; that to a yes-no question has its confidence too."""
    if "noul" not in fields:
        return fields
    return {"confidence": max(fields["noul"], round(1 - fields["noul"], 6)), **fields}


def _usage(decision: Decision) -> JsonObject:
    return {
        "total_input_tokens": decision.input_tokens,
        "total_output_tokens": decision.output_tokens,
        "total_cached_tokens": decision.details.cached,
        "total_thought_tokens": decision.details.reasoning,
        "total_tokens": decision.input_tokens + decision.output_tokens,
    }


def any_mapped_answer() -> Named:
    """The JSON schema of an answer: as on the criteria route, and always with its confidence."""
    kinds = {kind: typed_answer(kind) for kind in QUESTIONS}
    yes_no = kinds["noul"]
    properties = {**yes_no["properties"], "confidence": PROBABILITY}
    required = [*yes_no["required"], "confidence"]
    kinds["noul"] = {**yes_no, "properties": properties, "required": required}
    names = {kind: f"Mapped{kind.capitalize()}Answer" for kind in kinds}
    schemas = {kind: Named(names[kind], schema) for kind, schema in kinds.items()}
    skipped = skipped_answer()
    all_names = {**names, SKIPPED: skipped.name}
    return Named("MappedAnswer", one_of_types({**schemas, SKIPPED: skipped}, all_names))


class MappedResponseSchema(CriteriaResponseSchema):
    """The answers of a decision by the keys of the questions, and the tokens it took."""

    answers = Shown(
        mapping(any_mapped_answer), "By question key; a yes-no answer has its `confidence` too."
    )
    usage = Shown(
        record(
            {
                "total_input_tokens": described(COUNT, "As counted by providers; 0 when cached."),
                "total_output_tokens": COUNT,
                "total_cached_tokens": COUNT,
                "total_thought_tokens": COUNT,
                "total_tokens": COUNT,
            }
        )
    )
