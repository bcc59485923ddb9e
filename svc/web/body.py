"""A request's body: bounded, decompressed, parsed; and a response's JSON."""

from __future__ import annotations

import zlib
from typing import Any

from flask import Response, current_app, request

from svc import jsontext, limits
from svc.errors import InvalidJson, InvalidRequest, TooLarge, UnsupportedMedia
from svc.schemas import NumberedLine

_GZIP = 16 + zlib.MAX_WBITS
_WINDOW_BITS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}

# The bytes that deflate stands for with one (https://zlib.net/zlib_tech.html).
_MOST_PACKED = 1032

# A decoder gets so many bytes at once, because it copies what is left of them when it ends.
_PIECE_BYTES = 65_536

# Bytes of a body that cost less to read than anybody notices.
SMALL_BYTES = 65_536

# Questions of many options cost much to answer too; a body of so many bytes has few of them.
_FEW_BYTES = 8_192
_FEW_PARTS = 2_000

# The content types of a body that holds a JSON value in each line.
LINES = ("application/x-ndjson", "application/jsonl")


def read() -> bytes:
    """The body as it came. Raises `TooLarge` or `InvalidJson`."""
    limit = _limit()
    # A chunked body is cut off there without an error, so that one byte more shows its excess.
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise TooLarge(too_large_message(limit))
    if len(body) < (request.content_length or 0):
        raise InvalidJson("the body ended before its announced length")
    return body


def size_of_work(body: bytes) -> int:
    """How much work the body that came may be: its bytes, or more where it has many parts."""
    size = min(_limit(), len(body) * _MOST_PACKED) if _encoding() else len(body)
    if _FEW_BYTES < size <= SMALL_BYTES and jsontext.has_more_parts(body, _FEW_PARTS):
        return SMALL_BYTES + 1
    return size


def unpacked(body: bytes) -> bytes:
    """What came as `body`, as it was before it was compressed.

    Raises `TooLarge`, `UnsupportedMedia` or `InvalidJson`.
    """
    encoding = _encoding()
    return _decompress(body, encoding, _limit()) if encoding else body


def _limit() -> int:
    """How many bytes a body may have, as it comes and unpacked."""
    limit: int = current_app.config["MAX_CONTENT_LENGTH"]
    return limit


def _encoding() -> str:
    """The content encoding, empty where there is none."""
    encoding: str = request.environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    return "" if encoding == "identity" else encoding


def parse(body: bytes, most_parts: int = limits.BODY_PARTS) -> Any:
    """A body's JSON, whatever its content type. Raises `InvalidJson` or `InvalidRequest`.

    It may have `most_parts` members and elements.
    """
    check_parts(body, most_parts)
    return jsontext.loads(body)


def check_parts(body: bytes, most: int) -> None:
    """Raise `InvalidRequest` where JSON has more members and elements."""
    if jsontext.has_more_parts(body, most):
        raise InvalidRequest(
            f"the body has more than {most:,} members and elements; send less at once"
        )


def parse_lines(body: bytes) -> list[NumberedLine]:
    """The lines of a body of JSON lines, without blank ones. Raises `InvalidRequest`."""
    check_parts(body, limits.BODY_PARTS)
    # Blank lines are no parts, and to split the body at millions of them takes seconds.
    if body.count(b"\n") > limits.BULK_LINES:
        raise InvalidRequest(f"the body has more than {limits.BULK_LINES:,} line breaks")
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    if len(lines) > limits.BULK_LABELS:
        raise InvalidRequest(
            f"the body has {len(lines):,} lines, at most {limits.BULK_LABELS:,} are allowed"
        )
    return [_line(number, line) for number, line in lines]


def _line(number: int, line: bytes) -> NumberedLine:
    try:
        return NumberedLine(number, jsontext.loads(line, "the line", one_line=True))
    except InvalidJson as error:
        return NumberedLine(number, error=error.message)


def _decompress(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding not in _WINDOW_BITS:
        raise UnsupportedMedia(
            "the body's content encoding cannot be decoded; send it plain, gzip or deflate"
        )
    most = 1 if encoding == "deflate" else limits.GZIP_MEMBERS
    plain, rest = bytearray(), memoryview(body)
    for _ in range(most):
        try:
            rest = _decompress_one(rest, _WINDOW_BITS[encoding], plain, limit)
        except zlib.error:
            raise InvalidJson(f"the body is not valid {encoding}") from None
        if not rest:
            return bytes(plain)
    raise InvalidJson(f"the body goes on after the end of its {encoding} encoding")


def _decompress_one(data: memoryview, bits: int, plain: bytearray, limit: int) -> memoryview:
    """Append the content of one stream, or member, to `plain`; returns the `data` after it.

    Raises `TooLarge`, `InvalidJson` or `zlib.error`.
    """
    decoder = zlib.decompressobj(bits)
    while data and not decoder.eof:
        piece = data[:_PIECE_BYTES]
        plain += decoder.decompress(piece, limit + 1 - len(plain))
        if len(plain) > limit:
            raise TooLarge(too_large_message(limit))
        data = data[len(piece) - len(decoder.unused_data) :]
    if not decoder.eof:
        raise InvalidJson("the body is cut short within its encoding")
    return data


def too_large_message(limit: int) -> str:
    return f"the body is larger than {limit // (1024 * 1024)} MB"


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(jsontext.dumps(value), status, mimetype="application/json")
