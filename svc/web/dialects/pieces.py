"""Pieces of content: text, JSON and images, and how a model is shown them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load

from svc import jsontext, limits
from svc.jsontext import JsonObject
from svc.questions import Anything, Described, TextField
from svc.schemas import ImageField, OneOf
from svc.shapes import TEXT, array
from svc.web.dialects.fields import Many, Told

DETAILS = ("low", "high", "auto", "original")

# How many characters of an image's digest stand in a question that shows it.
MARK_CHARS = 12

_TOO_MANY = f"shows over {limits.IMAGES} images, with those of instructions"


@dataclass(frozen=True, slots=True)
class Picture:
    """An image: an https address or a data URI."""

    url: str


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON value."""

    value: Any


Piece = str | Picture | Data


@dataclass(slots=True)
class Gallery:
    """The images of a request, each once, numbered from 1 in the order in which they are shown."""

    urls: list[str] = field(default_factory=list)

    def number(self, picture: Picture) -> int:
        """The number of an image, which is added where it is new.

        Raises `ValidationError` where there are too many: each is looked for among all others.
        """
        if picture.url not in self.urls:
            if len(self.urls) == limits.IMAGES:
                raise ValidationError(_TOO_MANY)
            self.urls.append(picture.url)
        return self.urls.index(picture.url) + 1


def shown(piece: Piece, gallery: Gallery) -> Any:
    """A piece as a JSON value; an image by its number."""
    if isinstance(piece, Picture):
        return f"[image {gallery.number(piece)}]"
    return piece.value if isinstance(piece, Data) else piece


def text_of(pieces: Sequence[Piece], gallery: Gallery) -> str:
    """Pieces as one text, with JSON in its compact form.

    Raises `ValidationError` where that nests too deeply, or there are too many images.
    """
    try:
        return "\n\n".join(jsontext.as_text(shown(piece, gallery)) for piece in pieces)
    except RecursionError:
        raise ValidationError("is nested too deeply") from None


def question_text(pieces: Sequence[Piece], gallery: Gallery) -> str:
    """The same for instructions, where another image makes another question.

    Calibration knows questions by their texts, so an image stands there with its digest.
    """
    marks = {
        piece: f"[image {gallery.number(piece)}: {_digest(piece)}]"
        for piece in pieces
        if isinstance(piece, Picture)
    }
    named = [marks[piece] if isinstance(piece, Picture) else piece for piece in pieces]
    return text_of(named, gallery)


def _digest(picture: Picture) -> str:
    return hashlib.sha256(picture.url.encode()).hexdigest()[:MARK_CHARS]


class BreakpointSchema(Schema):
    """Where a provider's prompt cache may end a prefix; it is checked and has no effect here."""

    mode = OneOf(("explicit",), required=True)


class QuestionTextSchema(Schema):
    """A text of instructions."""

    type = OneOf(("input_text",), required=True)
    text = TextField(required=True)

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        return str(data["text"])


class QuestionImageSchema(Schema):
    """An image in instructions: an https address or a base64 data URI."""

    type = OneOf(("input_image",), required=True)
    image_url = ImageField("As in `images` of `/v1/decide`.", required=True)
    detail = OneOf(DETAILS, description="Checked, and left to the provider.", allow_none=True)

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        return Picture(data["image_url"])


class QuestionJsonSchema(Schema):
    """JSON in instructions, which the model is shown as text."""

    type = OneOf(("input_json",), required=True)
    data = Anything("Any JSON.", required=True, allow_none=True)

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        return Data(data["data"])


class InputTextSchema(QuestionTextSchema):
    """A text of the input."""

    prompt_cache_breakpoint = fields.Nested(BreakpointSchema, allow_none=True)


class InputImageSchema(QuestionImageSchema):
    """An image of the input: an https address or a base64 data URI."""

    prompt_cache_breakpoint = fields.Nested(BreakpointSchema, allow_none=True)


class InputJsonSchema(QuestionJsonSchema):
    """JSON of the input."""

    prompt_cache_breakpoint = fields.Nested(BreakpointSchema, allow_none=True)


class OutputTextSchema(Schema):
    """What an assistant said."""

    type = OneOf(("output_text",), required=True)
    text = TextField(required=True)

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        return str(data["text"])


class OutputRefusalSchema(Schema):
    """What an assistant refused to do."""

    type = OneOf(("refusal",), required=True)
    refusal = TextField(required=True)

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        return Data({"refusal": data["refusal"]})


class Content(Described[list[Piece]]):
    """A text, or a list of parts."""

    def __init__(self, parts: Mapping[str, type[Schema]], description: str = "", **kw: Any) -> None:
        """`parts` are the schemas of the parts, by their types."""
        super().__init__(description, **kw)
        self.parts = Many(Told(parts), "parts", 1, limits.INPUT_PARTS)
        self.form = {"anyOf": [TEXT, array(self.parts.one.form, 1)]}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Piece]:
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list):
            raise ValidationError("must be text or a list of parts")
        return self.parts.deserialize(value)
