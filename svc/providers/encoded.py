"""The JSON of a call's body, made without looking through its images once more."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from svc.images import DataUri
from svc.jsontext import JsonObject

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


# A body as it is sent, whole or in pieces.
Body = bytes | tuple[bytes, ...]


def encoded(body: JsonObject, images: Sequence[str]) -> Body:
    """The JSON in UTF-8; of `images` those that are data URIs are shared by all calls.

    A request may take 64 calls of 14 MB. To encode one of these as any other text takes 50 ms of a
    processor, which is most of what the call takes.
    """
    shared = {image for image in images if isinstance(image, DataUri)}
    if not shared:
        return _ENCODER.encode(body).encode("utf-8", "replace")
    # No author of a state knows the mark of the images. One digit after it says which of the eight.
    mark, numbered = secrets.token_hex(16), list(shared)
    marks: dict[str, str] = {image: f"{mark}{number}" for number, image in enumerate(numbered)}
    first, *others = _ENCODER.encode(_marked(body, marks)).split(mark)
    pieces = [first.encode("utf-8", "replace")]
    for other in others:
        pieces += numbered[int(other[0])].utf8, other[1:].encode("utf-8", "replace")
    return tuple(pieces)


def _marked(value: Any, marks: Mapping[str, str]) -> Any:
    """The value with a mark in place of each image."""
    if isinstance(value, str):
        return marks.get(value, value)
    if isinstance(value, dict):
        return {name: _marked(one, marks) for name, one in value.items()}
    return [_marked(one, marks) for one in value] if isinstance(value, list | tuple) else value
