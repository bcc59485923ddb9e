from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from svc.errors import InvalidJson
from svc.jsontext import (
    Literal,
    dumps,
    dumps_each,
    finite,
    has_long_numbers,
    has_more_parts,
    loads,
    near_float,
)
from tests.fuzz.inputs import JSON


@pytest.mark.parametrize(
    "text",
    [
        "12345678901234567890123456789012345678901234567890",
        "1e400",
        "-1E-999999999999999999999",
        "0.1000000000000000055",
        "3.141592653589793238462643383279",
        "9" * 5_000,
    ],
)
def test_numbers_that_python_would_change_leave_as_they_came(text: str) -> None:
    body = f'{{"a":[{text},"b",1.5,null,true]}}'
    assert dumps(loads(body.encode())) == body


@given(st.lists(JSON | st.integers().map(lambda n: [Literal(f"{n}e400")]), min_size=1))
def test_many_values_are_written_as_each_alone(values: list[Any]) -> None:
    assert dumps_each(values) == [dumps(value) for value in values]


def test_a_text_is_never_taken_for_what_stands_for_a_number() -> None:
    spent = loads(dumps([Literal("1e400"), "", '"', "1e400", Literal("2e400")]).encode())
    assert spent == [Literal("1e400"), "", '"', "1e400", Literal("2e400")]


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [math.nan, Literal("1e400")]}])
def test_what_is_no_json_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        dumps(value)


def test_ordinary_numbers_are_ordinary_numbers() -> None:
    assert loads(b"[1, -2.5, 1.50, 1e3]") == [1, -2.5, 1.5, 1000.0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"{", "line 1, column 2"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'\xff{"a": 1}', "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udc00": 1}', "surrogate"),
        (b'{"a": 1} x', "not JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "not JSON"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_place(body: bytes, words: str) -> None:
    with pytest.raises(InvalidJson, match=words):
        loads(body)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert loads(b'"\\ud83d\\ude00"') == "\U0001f600"


# What stands in a text beside halves of surrogate pairs, escaped or not.
_PIECES = (
    *(r"\ud83d", r"\udE00", r"\uDbfF", r"\udc00", r"\\", r"\n", r"\"", r"\/", r"\u0041"),
    *("u", "d83d", "é"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join))
def test_halves_of_surrogate_pairs_are_refused_and_nothing_else(pieces: str) -> None:
    text = f'"{pieces}"'
    expected = json.loads(text)
    if re.search("[\ud800-\udfff]", expected):
        with pytest.raises(InvalidJson, match="half of a surrogate pair"):
            loads(text.encode())
    else:
        assert loads(text.encode()) == expected


def test_messages_name_what_was_read() -> None:
    for data in (b"", b"{", b"\xff", b"[NaN]", b"[" * 200_000, b'"\\ud800"'):
        with pytest.raises(InvalidJson, match=r"^the file "):
            loads(data, "the file")


def test_of_a_single_line_only_the_column_is_told() -> None:
    with pytest.raises(InvalidJson, match=r"the line is not JSON: Expecting value at column 2$"):
        loads(b"[", "the line", one_line=True)


@pytest.mark.parametrize("value", [True, None, "1", math.nan, -math.inf, [], Literal("1e999")])
def test_what_is_no_finite_number_is_none(value: Any) -> None:
    assert finite(value) is None


def test_a_huge_whole_number_is_finite() -> None:
    assert finite(10**400) == 10**400


@pytest.mark.parametrize("shift", range(8))
def test_parts_are_counted_outside_of_texts_wherever_these_stand(shift: int) -> None:
    """What is counted together ends in the midst of a text, at its quotes, and between texts."""
    members = [{"a,": "[,{" * 3, 'b\\"': [1, 2]}] * 6_000
    data = b" " * shift + json.dumps(members).encode()
    # Of each: its opening brackets and the commas in it, and the comma or the bracket before it.
    parts = 5 * len(members)
    assert len(data) > 3 * 65_536
    assert not has_more_parts(data, parts)
    assert has_more_parts(data, parts - 1)


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=None),
    st.integers(-330, 330),
    st.sampled_from(["{}e{}", "{}E{}", "{}"]),
)
def test_a_number_is_a_float_only_where_that_has_the_same_digits(
    mantissa: Decimal, exponent: int, form: str
) -> None:
    text = form.format(format(mantissa, "f"), exponent)
    assume("." in text or "e" in text.lower())
    (read,) = loads(f"[{text}]".encode())
    if isinstance(read, Literal):
        assert read.text == text
        # What is no float needs many digits, or lies where few numbers are.
        assert len(text) > 16 or not 1e-307 < abs(float(text)) < math.inf
    else:
        assert Decimal(repr(read)) == Decimal(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.1", 0.1),
        ("-1e-7", -1e-7),
        ("0." + "3" * 500, 1 / 3),
        ("-" + "9" * 60 + ".5e-60", -1.0),
        ("1" + "0" * 400 + ".0", math.inf),
        ("1e" + "9" * 400, math.inf),
        ("1e-" + "9" * 400, 0.0),
    ],
    ids=lambda text: str(text)[:12],
)
def test_a_decimal_of_many_digits_is_the_float_next_to_it(text: str, number: float) -> None:
    assert near_float(text) == number


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 400))
def test_digits_behind_those_of_a_float_change_nothing(number: float, more: int) -> None:
    mantissa, _, exponent = f"{number:.17e}".partition("e")
    assert near_float(f"{mantissa}{'0' * more}1e{exponent}") == pytest.approx(number, rel=1e-15)


@given(st.text("0123456789.eE+-,[ ", max_size=80), st.integers(38, 44))
def test_no_long_number_is_overlooked(text: str, digits: int) -> None:
    numbers = re.findall(r"[0-9.eE+-]+", text := f"{text}{'7' * digits},{text}")
    assert has_long_numbers(text.encode()) is any(len(number) > 40 for number in numbers)


def test_a_number_of_many_digits_is_made_a_float_once() -> None:
    """Thousands of rules may compare it, and took a second of a processor."""
    number = Literal("9" * 100_000)
    assert float(number) is float(number) and math.isinf(float(number))
    assert float(Literal("0.12345678901234567890")) == 0.12345678901234567890
