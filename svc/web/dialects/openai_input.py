"""The input of OpenAI's dialect: a text, or messages, calls of tools and what these returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, post_load

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Described, TextField
from svc.schemas import OneOf
from svc.shapes import TEXT
from svc.web.dialects.fields import Many, Told
from svc.web.dialects.pieces import (
    Content,
    Data,
    Gallery,
    InputImageSchema,
    InputJsonSchema,
    InputTextSchema,
    OutputRefusalSchema,
    OutputTextSchema,
    Piece,
    shown,
    text_of,
)

MESSAGE = "message"
PHASES = ("commentary", "final_answer")
STATUSES = ("in_progress", "completed", "incomplete")

_TEXTS = {"input_text": InputTextSchema}
_EVIDENCE = {**_TEXTS, "input_image": InputImageSchema}
_PARTS = {**_EVIDENCE, "input_json": InputJsonSchema}
_SAID = {"output_text": OutputTextSchema, "refusal": OutputRefusalSchema}


@dataclass(frozen=True, slots=True)
class Item:
    """One item: what stands before its content, and the content, under its field's name."""

    head: Mapping[str, Any]
    field: str
    pieces: Sequence[Piece]

    def value(self, gallery: Gallery) -> JsonObject:
        """The item as a model is shown it."""
        pieces = [shown(piece, gallery) for piece in self.pieces]
        return {**self.head, self.field: pieces[0] if len(pieces) == 1 else pieces}


@dataclass(frozen=True, slots=True)
class Input:
    """All items; a text counts as what a user wrote."""

    items: Sequence[Item]

    def state(self, images: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
        """The input as a state; and the given `images`, with those of the input after them.

        Raises `ValidationError` where there are too many images.
        """
        gallery = Gallery(list(images))
        return self._value(gallery), tuple(gallery.urls)

    def _value(self, gallery: Gallery) -> Any:
        """The input as JSON.

        One user message is its content: a text, or the JSON that alone is in it. Several items are
        JSON, because nobody can write a message that looks like two in there.
        """
        first = self.items[0]
        if len(self.items) > 1 or first.head.get("role") != "user":
            return [item.value(gallery) for item in self.items]
        if len(first.pieces) == 1 and isinstance(first.pieces[0], Data):
            return first.pieces[0].value
        return text_of(first.pieces, gallery)


class _ItemSchema(Schema):
    """An item; `content` is the field that holds its content, `kept` what a model is shown too."""

    content_field: ClassVar[str] = "content"
    kept: ClassVar[tuple[str, ...]] = ("role", "phase")

    @post_load
    def _item(self, data: JsonObject, **_: Any) -> Item:
        content = data[self.content_field]
        head = {name: data[name] for name in self.kept if data.get(name) is not None}
        return Item(head, self.content_field, content if isinstance(content, list) else [content])


class _MessageSchema(_ItemSchema):
    type = OneOf((MESSAGE,))


class UserMessageSchema(_MessageSchema):
    """What a user wrote, showed or sent."""

    role = OneOf(("user",), required=True)
    content = Content(_PARTS, required=True)


class DeveloperMessageSchema(_MessageSchema):
    """What a developer wrote. It is part of the input, and never an instruction here."""

    role = OneOf(("developer",), required=True)
    content = Content(_TEXTS, required=True)


class SystemMessageSchema(_MessageSchema):
    """A system message. It is part of the input, and never an instruction here."""

    role = OneOf(("system",), required=True)
    content = Content(_TEXTS, required=True)


class AssistantMessageSchema(_MessageSchema):
    """What an assistant said."""

    role = OneOf(("assistant",), required=True)
    content = Content(_SAID, required=True)
    phase = OneOf(PHASES, allow_none=True)


class _ToolSchema(_ItemSchema):
    kept = ("type", "call_id", "namespace", "name")

    call_id = TextField("Which call.", required=True)
    id = TextField("Not used.", allow_none=True)
    status = OneOf(STATUSES, description="Not used.", allow_none=True)


class FunctionCallSchema(_ToolSchema):
    """A call of a function."""

    content_field = "arguments"

    type = OneOf(("function_call",), required=True)
    name = TextField(required=True)
    namespace = TextField(allow_none=True)
    arguments = TextField("JSON, as text.", required=True)


class CustomToolCallSchema(_ToolSchema):
    """A call of another tool."""

    content_field = "input"

    type = OneOf(("custom_tool_call",), required=True)
    name = TextField(required=True)
    namespace = TextField(allow_none=True)
    input = TextField(required=True)


class FunctionCallOutputSchema(_ToolSchema):
    """What a function returned."""

    content_field = "output"

    type = OneOf(("function_call_output",), required=True)
    output = Content(_EVIDENCE, required=True)


class CustomToolCallOutputSchema(_ToolSchema):
    """What another tool returned."""

    content_field = "output"

    type = OneOf(("custom_tool_call_output",), required=True)
    output = Content(_EVIDENCE, required=True)


_CALLS = {"function_call": FunctionCallSchema, "custom_tool_call": CustomToolCallSchema}
_OUTPUTS = {
    "function_call_output": FunctionCallOutputSchema,
    "custom_tool_call_output": CustomToolCallOutputSchema,
}
_ITEMS = {
    "user": UserMessageSchema,
    "developer": DeveloperMessageSchema,
    "system": SystemMessageSchema,
    "assistant": AssistantMessageSchema,
    **_CALLS,
    **_OUTPUTS,
}


def _tell(value: Mapping[str, Any]) -> tuple[str, Any]:
    """Messages are told apart by their roles, other items by their types."""
    kind = value.get("type", MESSAGE)
    return ("role", value.get("role")) if kind == MESSAGE else ("type", kind)


class InputField(Described[Input]):
    """A text, or a list of items."""

    items = Many(Told(_ITEMS, _tell), "items", 1, limits.INPUT_PARTS)
    form = {"anyOf": [{**TEXT, "maxLength": limits.STATE_CHARS}, items.form]}  # noqa: RUF012

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            "A text, or messages, calls of tools and their outputs. One user message counts as its "
            f"content; several items reach the model as JSON. At most {limits.STATE_CHARS:,} "
            f"characters in all, and {limits.IMAGES} images, those of instructions included.",
            **kwargs,
        )

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Input:
        if isinstance(value, str):
            return Input([Item({"role": "user"}, "content", [value])])
        if not isinstance(value, list):
            raise ValidationError("must be text or a list of items")
        try:
            items = self.items.deserialize(value)
        except RecursionError:
            raise ValidationError("is nested too deeply") from None
        _check_calls(items)
        return Input(items)


def _check_calls(items: Sequence[Item]) -> None:
    """Raise `ValidationError` for what a tool returned without having been called before it."""
    called = set()
    for number, item in enumerate(items):
        kind, call = item.head.get("type"), item.head.get("call_id")
        if kind in _CALLS:
            called.add((f"{kind}_output", call))
        elif kind in _OUTPUTS and (kind, call) not in called:
            raise ValidationError({number: {"call_id": ["belongs to no call before it"]}})
