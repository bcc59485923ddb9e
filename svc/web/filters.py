"""The filters that lists of decisions share: which of a project's decisions are wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from svc import limits
from svc.learning import Answers, normal
from svc.questions import Anything, NumberField
from svc.shapes import NUMBER, TEXT, array
from svc.store import QuestionVersions, Wanted
from svc.store.decisions import AuditEntry, Match
from svc.web.query import QueryFlag, QueryText, StrictQuerySchema, project_field

# Unix milliseconds, as `created_at` has them.
_MILLISECONDS = re.compile(r"[0-9]{1,15}")
_NUMBER = re.compile(r"[0-9.eE+-]{1,30}")
_OF_QUESTION = ("answer", "min_confidence", "max_confidence")


@dataclass(frozen=True, slots=True)
class Filters:
    """What the query of a list says: `wanted` by columns, the rest by what was answered."""

    wanted: Wanted
    question: str | None = None
    answer: str | None = None
    low: float | None = None
    high: float | None = None

    def matching(self, versions: QuestionVersions) -> Callable[[AuditEntry], Match] | None:
        """Whether a decision was answered as wanted; None where any answer is."""
        if self.question is None:
            return None
        answers = Answers(versions)

        def matches(entry: AuditEntry) -> Match:
            read = answers.chars_read
            wanted = any(
                self.answer in (None, one.text)
                and (self.low is None or one.confidence >= self.low)
                and (self.high is None or one.confidence <= self.high)
                for one in answers.of(entry, self.question)
            )
            return Match(wanted, answers.chars_read - read)

        return matches


class QueryProbability(NumberField):
    """A number from 0 to 1."""

    def __init__(self, description: str) -> None:
        super().__init__(0, 1, description=description)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        try:
            number = float(value[0]) if _NUMBER.fullmatch(value[0]) else None
        except ValueError:
            number = None
        return super()._deserialize(number, attr, data, **kwargs)


class QueryMoment(Anything):
    """A moment as unix milliseconds, or as ISO 8601 writes it."""

    form = {"anyOf": [TEXT, NUMBER]}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        text = value[0]
        if _MILLISECONDS.fullmatch(text):
            return int(text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValidationError(
                "must be milliseconds since the epoch, or such as 2026-11-22 or "
                "2026-11-22T08:00:00Z, in UTC where no zone is given"
            ) from None
        whole = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(whole.timestamp() * 1000)


class QueryTags(Anything):
    """Any number of `name:value`; a name may hold no colon here."""

    form = array(TEXT)

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[tuple[str, str], ...]:
        pairs = [text.partition(":") for text in value]
        if not all(colon for _, colon, _ in pairs):
            raise ValidationError("must be name:value, such as ?tag=channel:mail")
        tags = dict.fromkeys((name, text) for name, _, text in pairs)
        if len(tags) > limits.TAGS:
            raise ValidationError(
                f"at most {limits.TAGS} are allowed, as many as a decision may have"
            )
        return tuple(tags)


class FiltersSchema(StrictQuerySchema):
    project = project_field()
    question = QueryText("Only decisions that answered this question; the filters below need it.")
    answer = QueryText(
        "Only those whose top answer was this: an option's key, a level's index, `true` or "
        '`false`, the selected keys as `["a","b"]`, or the value.'
    )
    min_confidence = QueryProbability("Only those whose answer was at least so sure.")
    max_confidence = QueryProbability("Only those whose answer was at most so sure.")
    ref = QueryText("Only decisions with this `ref`.")
    tag = QueryTags(
        "Only decisions with this tag, `name:value`; all of them, where several, "
        f"at most {limits.TAGS}."
    )
    model = QueryText("Only decisions that this model, by its full id, answered or helped answer.")
    since = QueryMoment(
        "Only decisions from this moment on: milliseconds since the epoch, or ISO 8601.",
        data_key="from",
    )
    until = QueryMoment("Only decisions before this moment.", data_key="to")
    labelled = QueryFlag("Only decisions with a label, or without; of `question`, where given.")

    @validates_schema(skip_on_field_errors=True)
    def _have_a_question(self, data: Mapping[str, Any], **_: Any) -> None:
        for name in _OF_QUESTION:
            if name in data and "question" not in data:
                raise ValidationError("needs a question: ?question=...", name)

    @post_load
    def _gather(self, data: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        columns = ("ref", "model", "since", "until", "labelled", "question")
        wanted = Wanted(tags=data.get("tag", ()), **{name: data.get(name) for name in columns})
        answer = normal(data["answer"]) if "answer" in data else None
        sure = (data.get("min_confidence"), data.get("max_confidence"))
        filters = Filters(wanted, wanted.question, answer, *sure)
        used = {*columns, *_OF_QUESTION, "tag"}
        return {**{k: v for k, v in data.items() if k not in used}, "filters": filters}
