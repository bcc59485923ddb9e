"""Images are checked without being decoded."""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import ValidationError

from svc import limits
from svc.schemas.images import ImageField

HEAD = "data:image/png;base64,"


def problem_of(data: str) -> str | None:
    try:
        assert ImageField().deserialize(HEAD + data) == HEAD + data
    except ValidationError as error:
        return str(error.messages[0])
    return None


def strictly_decoded(data: str) -> bytes | None:
    with suppress(binascii.Error, ValueError):
        return base64.b64decode(data, validate=True)
    return None


@given(st.text("AZaz09+/=-_ \n\u00e9", max_size=12))
def test_what_passes_is_what_a_strict_decoder_takes(data: str) -> None:
    assert (problem_of(data) is None) is bool(strictly_decoded(data))


@given(st.binary(min_size=1, max_size=99))
def test_all_base64_passes(data: bytes) -> None:
    assert problem_of(base64.b64encode(data).decode()) is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "is empty"),
        ("=", "is not valid base64"),
        ("====", "is not valid base64"),
        ("A===", "is not valid base64"),
        ("AA=A", "is not valid base64"),
        ("AAAA====", "is not valid base64"),
        ("AAA\u0660", "is not valid base64"),
    ],
)
def test_what_is_wrong_is_said(data: str, problem: str) -> None:
    assert problem_of(data) == problem


@pytest.mark.parametrize("beyond", [0, 1, 2, 3, 4])
def test_the_size_is_that_of_what_is_encoded(beyond: int) -> None:
    data = base64.b64encode(bytes(limits.IMAGE_BYTES + beyond)).decode()
    assert problem_of(data) == (None if beyond == 0 else "is larger than 5 MB decoded")
