"""The JSON entrance: strict, without loss, and never anything but a value or a refusal."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc import jsontext
from svc.errors import InvalidJson
from tests.contract.test_properties import WHOLE
from tests.fuzz.inputs import FUZZED, JSON, damaged_bytes


def refuse(name: str) -> Any:
    raise ValueError(name)


def standard(data: bytes) -> Any:
    """What the standard library makes of it, if it is strict JSON; raises `ValueError`."""
    text = data.decode("utf-8")
    value = json.loads(text, parse_constant=refuse, parse_int=number, parse_float=number)
    # A member that a later one of the same name replaces has to be sound too.
    every = json.loads(text, parse_int=number, parse_float=number, object_pairs_hook=list)
    json.dumps(every, ensure_ascii=False, default=str).encode("utf-8")
    return value


def number(text: str) -> Decimal | str:
    """A number however it is spelled; one beyond what even this holds stays as it is written."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


@FUZZED
@given(data=st.one_of(st.binary(max_size=60), damaged_bytes(WHOLE)))
@example(data=b"[null,[null],0.00]")
@example(data=b"[1e99999999999999999999]")
@example(data=rb'{"a":"\ud800","a":1}')
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
    assert json.loads(jsontext.dumps(found), parse_int=number, parse_float=number) == expected


@FUZZED
@given(value=JSON)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    written = json.dumps(value).encode()
    once = jsontext.dumps(jsontext.loads(written))
    assert jsontext.dumps(jsontext.loads(once.encode())) == once
    assert json.loads(once) == value
