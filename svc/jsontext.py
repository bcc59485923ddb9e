"""JSON as the caller wrote it: strict on the way in, compact and without loss on the way out."""

from __future__ import annotations

import decimal
import json
import math
import re
import secrets
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NoReturn

from svc.errors import InvalidJson

# A longer whole number is no float either.
INT_DIGITS = 400

# No float is written with more significant digits, or more characters.
FLOAT_DIGITS, FLOAT_CHARS = 17, 24

# Every decimal of so few characters, 15 digits at most, is that of a float above this and finite.
_EXACT_CHARS, _EXACT_ABOVE = 16, 1e-307

# Decimals of more characters are rounded before they become floats, to more digits than these have.
_NEAR_CHARS, _ROUNDED = 40, decimal.Context(prec=25, traps=[])

# What numbers are written with, as zeros; where so many follow each other there may be a long one.
_AS_ZEROS = bytes.maketrans(b"123456789.eE+-", b"0" * 14)
_LONG_NUMBER = b"0" * (_NEAR_CHARS + 1)

# Within these it takes a microsecond to write a float, and beyond them up to five.
_WRITTEN_BELOW = 1e60

# The bytes of which texts are left out together.
_COUNTED_TOGETHER = 65_536

# What is written in place of a `Literal` until its text is put there, and between values that are
# written together. Nobody can send a text that has them, since each process draws its own.
_PLACE, _BORDER = secrets.token_hex(16), secrets.token_hex(16)

_BYTE_ORDER_MARK = "\ufeff"

# How half of a surrogate pair begins, which JSON can only write so.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

# A first half without its second, or the other way round, where no backslash is escaped.
_HALF = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F])"
)

# What a terminal obeys, or shows otherwise than in order: controls, and marks of direction.
_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)

# A JSON object that was read from somewhere, or is to be sent.
JsonObject = dict[str, Any]


class Literal:
    """A number that no Python number represents exactly; it is written as it was read."""

    __slots__ = ("_float", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._float: float | None = None

    def __float__(self) -> float:
        """The nearest float; it is looked for once, as there may be 149,000 digits."""
        if self._float is None:
            self._float = float(self.text)
        return self._float

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        """Compare the texts; that 1e400 equals 10e399 is not found out."""
        return isinstance(other, Literal) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def has_more_parts(data: bytes, most: int) -> bool:
    """Whether JSON has more than `most` members and elements, without parsing it.

    Commas and brackets are counted, first all of them and then those outside of texts. Each part
    holds two texts at most, so that there are never many texts to be left out of the count.
    """
    if separators(data) <= most:
        return False
    unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
    return unescaped.count(b'"') > 4 * (most + 1) or _separators_outside(unescaped) > most


def _separators_outside(data: bytes) -> int:
    """Those outside of texts, looked at bit by bit: the pieces of all at once take much memory."""
    count = inside = 0
    for start in range(0, len(data), _COUNTED_TOGETHER):
        pieces = data[start : start + _COUNTED_TOGETHER].split(b'"')
        count += separators(b"".join(pieces[inside::2]))
        inside = (inside + len(pieces) - 1) % 2
    return count


def separators(data: bytes) -> int:
    """How many commas and opening brackets there are, those in texts too."""
    return sum(map(data.count, (b",", b"[", b"{")))


def loads(data: bytes, what: str = "the body", one_line: bool = False) -> Any:
    """Parse `data`, which messages call `what`; numbers that a float would change are `Literal`.

    Places in messages are a line and a column, or with `one_line` the column alone. Raises
    `InvalidJson` for anything that is not strict JSON in UTF-8: NaN and infinities, lone
    surrogates, nesting deeper than the parser goes.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJson(f"{what} is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise InvalidJson(f"{what} is empty; send a JSON object")
    try:
        if text.startswith(_BYTE_ORDER_MARK):
            raise json.JSONDecodeError("Unexpected UTF-8 byte order mark", text, 0)
        value = _decoder(what).decode(text)
    except json.JSONDecodeError as error:
        line = "" if one_line else f"line {error.lineno}, "
        place = f"{line}column {error.colno}"
        raise InvalidJson(f"{what} is not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise InvalidJson(f"{what} is nested too deeply") from None
    # The text takes up to four times as many bytes, and there are two of it by now.
    if _SURROGATE.search(data) and _HALF.search(data.replace(rb"\\", b"  ")):
        raise InvalidJson(f"{what} contains half of a surrogate pair")
    return value


@lru_cache(maxsize=64)
def _decoder(what: str) -> json.JSONDecoder:
    """The decoder that calls JSON `what`; to make one takes as long as to read a short text."""
    return json.JSONDecoder(
        parse_float=_parse_float,
        parse_int=_parse_int,
        parse_constant=partial(_refuse_constant, what),
    )


def has_long_numbers(data: bytes) -> bool:
    """Whether JSON may have numbers of over 40 characters; a text may look like one.

    Where it has none, the parser's own numbers do, which take a third of the time of others.
    """
    return _LONG_NUMBER in data.translate(_AS_ZEROS)


def near_float(text: str) -> float:
    """The float that a decimal stands for; of one with many digits only the first 25 count.

    To convert hundreds of digits exactly takes 20 microseconds where they are nearly halfway
    between two floats.
    """
    return float(text) if len(text) <= _NEAR_CHARS else float(_ROUNDED.create_decimal(text))


def finite(value: Any) -> float | int | None:
    """The number that a JSON value is, or None for anything else (booleans, NaN, infinities).

    For a number with more digits than a float holds it is the nearest float.
    """
    if isinstance(value, Literal):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        # A whole number too large for a float is finite all the same.
        return value


def nests_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested in `value` more than `levels` deep."""
    if not isinstance(value, (list, dict)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(nests_deeper(one, levels - 1) for one in inner)


def has_infinite(value: Any) -> bool:
    """Whether a number in `value` is larger than every float."""
    if isinstance(value, (list, dict)):
        return any(map(has_infinite, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Literal) and finite(value) is None


def dumps(value: Any) -> str:
    """Compact JSON with numbers as they were read. Raises `RecursionError` at too deep nesting."""
    literals: list[str] = []
    encoder = json.JSONEncoder(
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
        default=partial(_set_aside, literals),
    )
    text = encoder.encode(value)
    if not literals:
        return text
    pieces = zip(text.split(f'"{_PLACE}"'), [*literals, ""], strict=True)
    return "".join(chain.from_iterable(pieces))


def dumps_each(values: Sequence[Any]) -> list[str]:
    """`dumps` of each of at least one value, in less than half the time of one after the other."""
    bordered = [_BORDER] * (2 * len(values) - 1)
    bordered[::2] = values
    return dumps(bordered)[1:-1].split(f',"{_BORDER}",')


def visible(text: str) -> str:
    """Lines of JSON, with escapes for the characters in its texts that a terminal would obey."""
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def as_text(value: Any) -> str:
    """A value as a model reads it: text as it is, anything else as `dumps` writes it."""
    return value if isinstance(value, str) else dumps(value)


def _set_aside(literals: list[str], value: Any) -> str:
    """What the encoder writes for a value that it does not know, whose text is kept."""
    if not isinstance(value, Literal):
        raise TypeError(f"{type(value).__name__} is not a JSON value")
    literals.append(value.text)
    return _PLACE


def _parse_float(text: str) -> float | Literal:
    if len(text) > FLOAT_CHARS and len(_digits(text)) > FLOAT_DIGITS:
        return Literal(text)
    number = float(text)
    size = abs(number)
    if len(text) <= _EXACT_CHARS and _EXACT_ABOVE < size < math.inf:
        return number
    if number and not 1 / _WRITTEN_BELOW < size < _WRITTEN_BELOW:
        return Literal(text)
    written = repr(number)
    # A float is so near to its text that with equal digits the exponents are equal too.
    same = written == text or _digits(written) == _digits(text)
    return number if same else Literal(text)


def _digits(number: str) -> str:
    """The digits of a number without its exponent, and without zeros in front and at the end."""
    mantissa = number.partition("e")[0].partition("E")[0]
    return mantissa.replace(".", "").strip("-0")


def _parse_int(text: str) -> int | Literal:
    # The time to convert a number grows with the square of its digits.
    return int(text) if len(text) <= INT_DIGITS else Literal(text)


def _refuse_constant(what: str, name: str) -> NoReturn:
    raise InvalidJson(f"{what} is not JSON: {name} is not a JSON number")


def leading(items: Iterable[JsonObject], most_bytes: int) -> list[JsonObject]:
    """The first of `items`, at least one, as far as their JSON has `most_bytes` together."""
    kept: list[JsonObject] = []
    for item in items:
        most_bytes -= len(dumps(item).encode("utf-8", "replace"))
        if kept and most_bytes < 0:
            break
        kept.append(item)
    return kept
