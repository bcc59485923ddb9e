"""What callers call a decision, with a reference and tags of their own, and who labels it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError

from svc import limits
from svc.jsontext import JsonObject
from svc.names import UnsoundName, is_visible, visible_text
from svc.phrases import quoted
from svc.questions import Described, TextField, amount
from svc.shapes import NO_CONTROL, VISIBLE, Json, mapping


def _form(most: int) -> Json:
    pattern = f"^{VISIBLE}({NO_CONTROL}*{VISIBLE})?$"
    return {"type": "string", "pattern": pattern, "maxLength": most}


def _visible(text: Any, most: int) -> str:
    if not isinstance(text, str):
        raise ValidationError("must be text")
    try:
        return visible_text(text, most)
    except UnsoundName as error:
        raise ValidationError(str(error)) from None


class RefField(TextField):
    """A caller's own id of what a decision is about."""

    form = _form(limits.REF_CHARS)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return _visible(value, limits.REF_CHARS)


class RowIdField(TextField):
    """A caller's own id of a row."""

    form = {"type": "string", "minLength": 1, "maxLength": limits.JOB_ROW_ID_CHARS}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= limits.JOB_ROW_ID_CHARS:
            raise ValidationError(f"must be text of 1 to {limits.JOB_ROW_ID_CHARS} characters")
        return value


class ReviewerField(TextField):
    """The name of somebody who labels."""

    form = _form(limits.REVIEWER_CHARS)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return _visible(value, limits.REVIEWER_CHARS)


class TagsField(Described[Mapping[str, str]]):
    """A small object of names and texts."""

    form = {  # noqa: RUF012
        **mapping(_form(limits.TAG_CHARS)),
        "propertyNames": _form(limits.TAG_NAME_CHARS),
        "maxProperties": limits.TAGS,
    }

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> Mapping[str, str]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object of name to text")
        amount(len(value), (0, limits.TAGS), "tags")
        return {_named(name): _tag(name, text) for name, text in value.items()}


def is_sound_ref(ref: str) -> bool:
    """Whether `RefField` takes a text, which is found out sooner than by asking it."""
    return is_visible(ref, limits.REF_CHARS)


def has_sound_tags(tags: JsonObject) -> bool:
    """The same of `TagsField` and an object."""
    return len(tags) <= limits.TAGS and all(
        is_visible(name, limits.TAG_NAME_CHARS)
        and isinstance(text, str)
        and is_visible(text, limits.TAG_CHARS)
        for name, text in tags.items()
    )


def _named(name: str) -> str:
    try:
        return _visible(name, limits.TAG_NAME_CHARS)
    except ValidationError as error:
        raise ValidationError(f"the name {quoted(name)} {error.messages[0]}") from None


def _tag(name: str, text: Any) -> str:
    try:
        return _visible(text, limits.TAG_CHARS)
    except ValidationError as error:
        raise ValidationError(f"the text of {quoted(name)} {error.messages[0]}") from None
