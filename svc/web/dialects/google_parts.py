"""Texts and images in the way that Google's clients send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, post_load

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Described, TextField, amount
from svc.schemas import ImageField, OneOf
from svc.shapes import TEXT, array
from svc.web.dialects.fields import Told, each
from svc.web.dialects.pieces import Gallery, Picture, Piece, text_of

_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")


class MappedTextSchema(Schema):
    """A text."""

    class Meta:
        unknown = EXCLUDE

    type = OneOf(("text",), required=True)
    text = TextField(required=True)

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        return str(data["text"])


class MappedImageSchema(Schema):
    """An image: base64 data with its type, or an https address."""

    class Meta:
        unknown = EXCLUDE

    type = OneOf(("image",), required=True)
    data = TextField("Base64.")
    mime_type = OneOf(_IMAGES, description="The type of `data`.")
    uri = ImageField("In place of `data`.")

    @post_load
    def _piece(self, data: JsonObject, **_: Any) -> Piece:
        if "uri" in data:
            return Picture(data["uri"])
        if "data" not in data or "mime_type" not in data:
            raise ValidationError("needs data with a mime_type, or a uri")
        # The client writes base64 in the alphabet for addresses.
        plain = data["data"].replace("-", "+").replace("_", "/")
        url = f"data:{data['mime_type']};base64,{plain}"
        try:
            return Picture(ImageField().deserialize(url))
        except ValidationError as error:
            raise ValidationError({"data": error.messages}) from None


TEXT_PART = Told({"text": MappedTextSchema})
ANY_PART = Told({"text": MappedTextSchema, "image": MappedImageSchema})


class PartsField(Described[list[Piece]]):
    """A text, a part, or a list of parts."""

    def __init__(self, part: Told, description: str, **kwargs: Any) -> None:
        super().__init__(description, **kwargs)
        self.part = part
        self.form = {"anyOf": [TEXT, part.form, array(part.form, 1)]}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Piece]:
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list):
            return [self.part.deserialize(value)]
        amount(len(value), (1, limits.INPUT_PARTS), "parts")
        return each(self.part.deserialize, value)


def text_and_images(pieces: Sequence[Piece]) -> tuple[str, list[str]]:
    """Pieces as a text in which images have numbers, and these images.

    Raises `ValidationError` where there are too many.
    """
    gallery = Gallery()
    return text_of(pieces, gallery), gallery.urls
