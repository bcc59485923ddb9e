"""A request's body: bounded, decompressed, parsed; and a response's JSON."""

from __future__ import annotations

import zlib
from typing import Any

from flask import Response, current_app, request

from svc import jsontext
from svc.errors import InvalidJson, TooLarge, UnsupportedMedia

_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


def read_json() -> Any:
    """The parsed body, whatever its content type.

    Raises `TooLarge`, `UnsupportedMedia` or `InvalidJson`.
    """
    limit: int = current_app.config["MAX_CONTENT_LENGTH"]
    request.max_content_length = limit + 1  # a chunked body is cut off there without a word
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise TooLarge(too_large_message(limit))
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        body = _decompress(body, encoding, limit)
    return jsontext.loads(body)


def _decompress(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding not in _WINDOW_BITS:
        raise UnsupportedMedia(
            "the body's content encoding cannot be decoded; send it plain, gzip or deflate"
        )
    decoder = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        plain = decoder.decompress(body, limit + 1)
    except zlib.error:
        raise InvalidJson(f"the body is not valid {encoding}") from None
    if len(plain) > limit:
        raise TooLarge(too_large_message(limit))
    if not decoder.eof:
        raise InvalidJson(f"the body is cut short within its {encoding} encoding")
    if decoder.unused_data:
        raise InvalidJson(f"the body goes on after the end of its {encoding} encoding")
    return plain


def too_large_message(limit: int) -> str:
    return f"the body is larger than {limit // (1024 * 1024)} MB"


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(jsontext.dumps(value), status, mimetype="application/json")
