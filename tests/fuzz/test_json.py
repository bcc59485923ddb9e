"""The JSON entrance: strict, without loss, and never anything but a value or a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc import jsontext
from svc.errors import InvalidJson
from tests.contract.test_properties import WHOLE
from tests.fuzz.inputs import FUZZED, JSON, damaged_bytes


def refuse(name: str) -> Any:
    raise ValueError(name)


def standard(data: bytes) -> Any:
    """What the standard library makes of it, if it is strict JSON; raises `ValueError`."""
    value = json.loads(data.decode("utf-8"), parse_constant=refuse, parse_int=str, parse_float=str)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


@FUZZED
@given(data=st.one_of(st.binary(max_size=60), damaged_bytes(WHOLE)))
def test_what_is_strict_json_is_read_and_nothing_else(data: bytes) -> None:
    try:
        expected = standard(data)
    except (ValueError, RecursionError):
        with pytest.raises(InvalidJson):
            jsontext.loads(data)
        return
    try:
        found = jsontext.loads(data)
    except InvalidJson as error:
        assert "nested too deeply" in error.message
        return
    again = json.loads(jsontext.dumps(found), parse_int=str, parse_float=str)
    assert shape(again) == shape(expected)


def shape(value: Any) -> Any:
    """A value without its numbers, which may be spelled in other ways."""
    return json.loads(json.dumps(value), parse_int=lambda _: 0, parse_float=lambda _: 0)


@FUZZED
@given(value=JSON)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    written = json.dumps(value).encode()
    once = jsontext.dumps(jsontext.loads(written))
    assert jsontext.dumps(jsontext.loads(once.encode())) == once
    assert json.loads(once) == value
