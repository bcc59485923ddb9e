"""The results of a batch, as they stand in the files that its provider has for them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from svc import limits
from svc.bulk.replay import NO_STATUS
from svc.providers import BatchClient, Overlong

# The HTTP statuses there are.
_STATUSES = range(100, 600)

_ANSWERED = 200

# The seconds of a processor that each byte of an ordinary result takes at most. Results of a large
# job have no pauses, but for those that take longer, such as a million empty lists.
_USUAL_S = 1e-7

# How many bytes of ordinary results come in each packed one at most. Of more, the rest has pauses.
_USUAL_PACKING = 20

# How the line of a result begins, whose id is that of a call.
_MEMBER = rb'"\w{1,64}"\s*:\s*(?:"[^"\\]{0,256}"|[\w.+-]{1,64})\s*,\s*'
_HEAD = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:%b){0,16}"custom_id"\s*:\s*"([0-9a-f]{32})"' % _MEMBER
)

log = logging.getLogger(__name__)


class Result(NamedTuple):
    """What became of a call: its id, the HTTP status of its reply, and the body."""

    call: str
    status: int = NO_STATUS
    body: bytes = b"{}"


def downloaded(api: BatchClient, file_id: str, calls: int, batch: str) -> Iterator[Result]:
    """The results in a file of so many calls at most. Raises `ProviderError`.

    A file that is too long ends early, and the log says so with the name of the `batch`.
    """
    usual = _Usual()
    try:
        for line in _lines(api.download(file_id, calls, usual.came)):
            usual_s = _USUAL_S * usual.take(len(line))
            if result := api.read_slowly(partial(_result, line), usual_s):
                yield result
    except Overlong:
        # Fetched again it would be as long. What lacks a result is asked again, a few times.
        log.warning("%s: its file of results is too long to be read to the end", batch)


class _Usual:
    """The bytes of results that are read without pauses, by how many came for them."""

    def __init__(self) -> None:
        self._left = 0

    def came(self, size: int) -> None:
        """So many have come, which may be packed."""
        self._left += _USUAL_PACKING * size

    def take(self, size: int) -> int:
        """How many of these bytes are."""
        taken = min(size, self._left)
        self._left -= taken
        return taken


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in pieces of a file; what is too long for a reply is none, and its rest is nothing.

    Sent again, a call would have as long a reply.
    """
    line, cut = bytearray(), b""
    for piece in pieces:
        for number, part in enumerate(piece.split(b"\n")):
            if number:
                yield cut or bytes(line)
                line, cut = bytearray(), b""
            line += part
            if len(line) > limits.REPLY_BYTES:
                cut = cut or _without_reply(line)
                line.clear()
    yield cut or bytes(line)


def _without_reply(line: bytearray) -> bytes:
    """The line of a result that says of which call it is, as far as it does so at its beginning."""
    head = _HEAD.match(line)
    call = head[1].decode() if head else ""
    response = {"status_code": _ANSWERED, "body": None}
    return json.dumps({"custom_id": call, "response": response}).encode()


def _result(line: bytes) -> Result | None:
    """The result in a line, None where there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    call = value.get("custom_id") if isinstance(value, dict) else None
    if not isinstance(call, str):
        return None
    response = value.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(status, int) or status not in _STATUSES:
        return Result(call)
    text = json.dumps(response.get("body"), separators=(",", ":"), ensure_ascii=False)
    # A half of a pair that stands alone is no UTF-8, and is written as the escape that it came as.
    body = text.encode("utf-8", "backslashreplace")
    longest = limits.BATCH_RESULT_GROWTH * len(line)
    most = longest if status == _ANSWERED else limits.BATCH_FAILURE_BYTES
    # What is far shorter than Python writes it, such as many numbers of 1e15, is no reply.
    return Result(call, status, body) if len(body) <= most else Result(call)
