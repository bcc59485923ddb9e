"""Images that go with a request: checked here, never fetched."""

from __future__ import annotations

import re
import string
from typing import Any
from urllib.parse import urlsplit

from marshmallow import ValidationError

from svc import limits
from svc.images import DataUri
from svc.questions import Described, TextField, amount
from svc.shapes import TEXT, array

_DATA = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_MEGABYTE_BYTES = 1024 * 1024

# A base64 character stands for six bits, so that four of them are three bytes.
_SIX_BITS = "[A-Za-z0-9+/]"
_SIX_BITS_BYTES = f"{string.ascii_letters}{string.digits}+/".encode("ascii")
_BASE64 = f"({_SIX_BITS}{{4}})*({_SIX_BITS}{{4}}|{_SIX_BITS}{{3}}=|{_SIX_BITS}{{2}}==)"

_DATA_URI = {"pattern": f"^data:image/(png|jpeg|webp|gif);base64,{_BASE64}$"}
_URL = {"pattern": "^https://[!-~]+$", "maxLength": limits.IMAGE_URL_CHARS}


class ImageField(TextField):
    """One https address or base64 data URI."""

    form = {**TEXT, "anyOf": [_URL, _DATA_URI]}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if problem := _problem(value):
            raise ValidationError(problem)
        return _checked(value)


class Images(Described[tuple[str, ...]]):
    """Https addresses and base64 data URIs, in the order given."""

    form = array(ImageField.form, 0, limits.IMAGES)

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise ValidationError("must be a list of https addresses or data URIs")
        amount(len(value), (0, limits.IMAGES), "images")
        for index, image in enumerate(value):
            problem = _problem(image)
            if problem:
                raise ValidationError(f"image {index} {problem}")
        return tuple(map(_checked, value))


def _checked(image: str) -> str:
    return DataUri(image) if image.startswith("data:") else str(image)


def _problem(image: Any) -> str:
    """What is wrong with an image; empty when nothing is."""
    if not isinstance(image, str):
        return "must be text"
    if image.startswith("data:"):
        return _data_problem(image)
    if not image.startswith("https://"):
        return "must be an https:// address or a data:image/...;base64, URI"
    if len(image) > limits.IMAGE_URL_CHARS:
        return f"has over {limits.IMAGE_URL_CHARS:,} characters"
    return "" if _has_host(image) else "is not a valid https:// address"


def _has_host(url: str) -> bool:
    try:
        return bool(_VISIBLE.fullmatch(url) and urlsplit(url).hostname)
    except ValueError:
        return False


def _data_problem(image: str) -> str:
    head = _DATA.match(image)
    if head is None:
        return "must be base64 data of type image/png, image/jpeg, image/webp or image/gif"
    if len(image) - head.end() > limits.IMAGE_BYTES * 4 // 3 + 4:
        return _TOO_LARGE
    encoded = image[head.end() :]
    unpadded = encoded.rstrip("=")
    if not _is_base64(unpadded, len(encoded) - len(unpadded)):
        return "is not valid base64"
    if not encoded:
        return "is empty"
    return _TOO_LARGE if len(unpadded) * 3 // 4 > limits.IMAGE_BYTES else ""


def _is_base64(unpadded: str, padding: int) -> bool:
    """Whether so much padding makes it base64; that takes a seventh of the time to decode it."""
    if padding > 2 or (len(unpadded) + padding) % 4 or not unpadded.isascii():
        return False
    return not unpadded.encode("ascii").translate(None, delete=_SIX_BITS_BYTES)


_TOO_LARGE = f"is larger than {limits.IMAGE_BYTES // _MEGABYTE_BYTES} MB decoded"
