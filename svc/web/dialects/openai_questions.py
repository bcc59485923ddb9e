"""The questions of OpenAI's dialect, put into the words of `/v1/decide`, and their answers back."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, post_load

from svc import jsontext, limits
from svc.jsontext import JsonObject
from svc.questions import TYPES, Described, Question, TextField, WordsField, amount
from svc.records import Answer, Source
from svc.schemas import OneOf, check_size, refuse_many_unknown, remembering
from svc.shapes import array
from svc.web.dialects.fields import Many, Passed, Told, Whole, each
from svc.web.dialects.pieces import (
    Content,
    Gallery,
    QuestionImageSchema,
    QuestionJsonSchema,
    QuestionTextSchema,
    question_text,
)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PARTS = {
    "input_text": QuestionTextSchema,
    "input_image": QuestionImageSchema,
    "input_json": QuestionJsonSchema,
}
# What a question of `/v1/decide` has under another name, or in another form, here.
_REPLACED = {"options": "choices"}
_TRANSLATED = ("type", "instructions", "options", "levels")


class Posed(ABC):
    """A checked question as the caller sent it.

    `kind` is its type here, and `type` the one in `/v1/decide`. `own` are the fields that it shares
    with a question of `/v1/decide`.
    """

    kind: ClassVar[str]
    type: ClassVar[str]

    def __init__(self, sent: JsonObject) -> None:
        self.name: str | None = sent.pop("name", None)
        self.instructions = sent.pop("instructions")
        self.own = sent

    @abstractmethod
    def asked(self) -> JsonObject:
        """The fields that only this type has in `/v1/decide`."""

    @abstractmethod
    def answer(self, fields: Mapping[str, Any]) -> JsonObject:
        """The fields of an answer that only this type has here, from those of `/v1/decide`."""


class Predicate(Posed):
    """How likely it is that something holds."""

    kind, type = "predicate", "noul"

    def asked(self) -> JsonObject:
        return {}

    def answer(self, fields: Mapping[str, Any]) -> JsonObject:
        return {"probability": fields["noul"]}


class Pick(Posed):
    """One of several values, which are texts or truth values."""

    kind, type = "choice", "choice"

    def __init__(self, sent: JsonObject) -> None:
        choices = sent.pop("choices")
        self.values = dict(zip(_keys(choices), choices, strict=True))
        super().__init__(sent)

    def asked(self) -> JsonObject:
        described = {key: one.get("description", "") for key, one in self.values.items()}
        return {"options": described, "escape": self.own.get("escape", False)}

    def answer(self, fields: Mapping[str, Any]) -> JsonObject:
        rows = fields["probabilities"].items()
        listed = [{"value": self._value(key), "probability": share} for key, share in rows]
        found: JsonObject = {"choice": self._value(fields["choice"]), "probabilities": listed}
        if "set" in fields:
            found["set"] = [self._value(key) for key in fields["set"]]
        return found

    def _value(self, key: str) -> str | bool:
        """The value of an option; the escape option, which has none, is its own."""
        return self.values[key]["value"] if key in self.values else key


class Rating(Posed):
    """One of several ordered levels."""

    kind, type = "score", "score"

    def __init__(self, sent: JsonObject) -> None:
        self.levels = sent.pop("levels")
        super().__init__(sent)

    def asked(self) -> JsonObject:
        return {"levels": list(map(_level_text, self.levels))}

    def answer(self, fields: Mapping[str, Any]) -> JsonObject:
        rows = zip(self.levels, fields["probabilities"], strict=True)
        listed = [
            {"value": number, "label": level["label"], "probability": share}
            for number, (level, share) in enumerate(rows)
        ]
        return {"probabilities": listed}


def _level_text(level: Mapping[str, str]) -> str:
    about = level.get("description", "")
    return f"{level['label']}: {about}" if about.strip() else level["label"]


def _keys(choices: Sequence[Mapping[str, Any]]) -> list[str]:
    """An option key for each choice: the text that it is, or that a model reads for it.

    Raises `ValidationError` for a value that is there twice.
    """
    values = [(type(one["value"]), one["value"]) for one in choices]
    texts = {value for kind, value in values if kind is str}
    keys: dict[tuple[type, Any], str] = {}
    for number, (kind, value) in enumerate(values):
        if (kind, value) in keys:
            raise ValidationError({"choices": {number: {"value": ["is there twice"]}}})
        keys[kind, value] = value if kind is str else _free(jsontext.dumps(value), texts)
    return list(keys.values())


def _free(wanted: str, taken: set[str]) -> str:
    """The wanted name, longer where it is taken, and now taken itself."""
    while wanted in taken:
        wanted += "*"
    taken.add(wanted)
    return wanted


class ValueField(Described[str | bool]):
    """A text, or true or false."""

    form = {"type": ["string", "boolean"]}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | bool:
        if isinstance(value, bool) or (isinstance(value, str) and value.strip()):
            return value
        raise ValidationError("must be text that is not blank, or true or false")


class ChoiceOptionSchema(Schema):
    """One value to choose; a text and a truth value are never the same."""

    value = ValueField(required=True)
    description = TextField("What it means.")


class ScoreLevelSchema(Schema):
    """One level, by its label."""

    label = WordsField(required=True)
    description = TextField("What it means.")


class _PosedSchema(Schema):
    """Further fields are those of a question of `/v1/decide`, which are checked there."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012
    posed: ClassVar[type[Posed]]

    instructions = Content(_PARTS, "A text, or a list of parts.", required=True)
    name = TextField("Comes back with the answer.", allow_none=True)

    @post_load
    def _pose(self, data: JsonObject, **_: Any) -> Posed:
        data.pop("type")
        return self.posed(data)


def _own(kind: str) -> Mapping[str, Passed]:
    """The fields that a question has here as in `/v1/decide`."""
    forms = TYPES[kind].json_schemas()
    if "escape" in forms:
        forms["escape"] = {**forms["escape"], "default": False}
    return {name: Passed(form) for name, form in forms.items() if name not in _TRANSLATED}


class PredicateQuestionSchema(_PosedSchema):
    """How likely it is that a statement about the input is true."""

    class Meta:
        include = _own(Predicate.type)

    posed = Predicate
    type = OneOf(("predicate",), required=True)


class ChoiceOfValuesSchema(_PosedSchema):
    """Which of several values fits the input best."""

    class Meta:
        include = _own(Pick.type)

    posed = Pick
    type = OneOf(("choice",), required=True)
    choices = Many(Whole(ChoiceOptionSchema), "choices", *limits.CHOICE_OPTIONS, required=True)


class ScoreOfLevelsSchema(_PosedSchema):
    """Which of several levels fits the input best, lowest first."""

    class Meta:
        include = _own(Rating.type)

    posed = Rating
    type = OneOf(("score",), required=True)
    levels = Many(Whole(ScoreLevelSchema), "levels", *limits.SCORE_LEVELS, required=True)


_KINDS: dict[str, type[_PosedSchema]] = {
    one.posed.kind: one
    for one in (PredicateQuestionSchema, ChoiceOfValuesSchema, ScoreOfLevelsSchema)
}
_POSED = Told(_KINDS)


@dataclass(frozen=True, slots=True)
class Listed:
    """Checked questions: as they are asked, by the keys that feedback knows them by, and as posed.

    `images` are those in their instructions.
    """

    asked: Mapping[str, Question]
    posed: Sequence[Posed]
    images: tuple[str, ...]

    def answers(self, answers: Mapping[str, Answer]) -> list[JsonObject]:
        """The answers in the order of the questions."""
        rows = zip(self.posed, self.asked, strict=True)
        return [_answer(posed, key, answers[key]) for posed, key in rows]

    def numbered(self, by_key: Mapping[str, Any]) -> JsonObject:
        """Messages about questions, by the questions' numbers."""
        return {"questions": {n: by_key[key] for n, key in enumerate(self.asked) if key in by_key}}


def _answer(posed: Posed, key: str, answer: Answer) -> JsonObject:
    head = {"name": posed.name, "question": key}
    if answer.source is Source.SKIPPED:
        return {"type": "refusal", **head, **answer.fields}
    replaced = ("type", posed.type)
    found = {name: value for name, value in answer.fields.items() if name not in replaced}
    if posed.kind == Rating.kind:
        found["score"] = answer.fields["score"]
    return {"type": posed.kind, **head, **found, **posed.answer(answer.fields)}


class ListedField(Described[Listed]):
    """The questions, in the order of their answers."""

    form = array(_POSED.form, 1, limits.LISTED_QUESTIONS)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            f"Asked with up to {limits.QUESTIONS} in a call. All texts of the questions together: "
            f"at most {limits.QUESTION_TEXT_CHARS:,} characters.",
            **kwargs,
        )

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Listed:
        if not isinstance(value, list):
            raise ValidationError("must be a list of questions")
        amount(len(value), (1, limits.LISTED_QUESTIONS), "questions")
        return _listed(value)


@remembering
def _listed(bodies: Sequence[Any]) -> Listed:
    """Questions that were checked before are the same objects, by which their prompts are kept."""
    posed = each(_POSED.deserialize, bodies)
    gallery = Gallery()
    questions = each(lambda one: _question(one, gallery), posed)
    asked = dict(zip(_names(posed), questions, strict=True))
    check_size(asked)
    return Listed(asked, posed, tuple(gallery.urls))


def _question(posed: Posed, gallery: Gallery) -> Question:
    instructions = question_text(posed.instructions, gallery)
    body = {**posed.own, **posed.asked(), "type": posed.type, "instructions": instructions}
    refuse_many_unknown(TYPES[posed.type], body)
    try:
        question: Question = TYPES[posed.type].load(body)
    except ValidationError as error:
        messages = error.messages if isinstance(error.messages, dict) else {"": error.messages}
        renamed = {_REPLACED.get(name, name): words for name, words in messages.items()}
        raise ValidationError(renamed) from None
    return question


def _names(posed: Sequence[Posed]) -> list[str]:
    """A key for each question: its name where no other has it, or else its place in the list."""
    often = Counter(one.name for one in posed)
    good = [
        one.name if one.name and often[one.name] == 1 and not _CONTROL.search(one.name) else None
        for one in posed
    ]
    taken = {name for name in good if name is not None}
    return [
        name if name is not None else _free(f"questions[{number}]", taken)
        for number, name in enumerate(good)
    ]
