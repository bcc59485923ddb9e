"""Replies of a provider that lies: each as large as is read, and made to cost much."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from svc import limits
from tests.scripted import completion

Bytes = Callable[[int], bytes]


def fitting(make: Bytes) -> bytes:
    """The largest reply that is still read."""
    low = 1
    while len(make(2 * low)) <= limits.REPLY_BYTES:
        low *= 2
    high = 2 * low - 1
    while low < high:
        middle = (low + high + 1) // 2
        if len(make(middle)) <= limits.REPLY_BYTES:
            low = middle
        else:
            high = middle - 1
    return make(low)


def _content(piece: str, end: str = "") -> Bytes:
    """A completion whose text is one piece many times."""
    return lambda count: json.dumps(completion(piece * count + end)).encode()


def _raw(piece: str) -> Bytes:
    return lambda count: f"[{piece * count}1]".encode()


_EXACT = Context(prec=1_100)

# The first 500 digits of a number that is halfway between two floats.
HALFWAY = f"{_EXACT.multiply(Decimal(2**53 - 1), _EXACT.power(2, -1_075)):e}"[:501] + "e-308"


def _keys(count: int) -> bytes:
    return ("{" + ",".join(f'"{key}":1' for key in range(count)) + "}").encode()


def _with_tokens(text: str, tokens: str) -> bytes:
    reply = json.dumps(completion(text))
    return reply.replace('"logprobs": null', f'"logprobs":{{"content":[{tokens}]}}').encode()


def _tokens(text: str) -> Bytes:
    token = f'"token":{json.dumps(text)},"logprob":-0.1'
    one = f'{{{token},"top_logprobs":[{{{token}}}]}}'
    return lambda count: _with_tokens(text * count, ",".join([one] * count))


def _one_token(piece: str) -> Bytes:
    def make(count: int) -> bytes:
        listed: list[Any] = [{"token": label, "logprob": -1.0} for label in "AB"]
        token = {"token": piece * count, "logprob": -1.0, "top_logprobs": listed}
        return _with_tokens(piece * count, json.dumps(token))

    return make


REPLIES: dict[str, Bytes] = {
    "unclosed braces": _content("{"),
    "unclosed members": _content('{"q1":'),
    "lists in the text": _content("[]"),
    "lists that are opened again": lambda count: json.dumps(
        completion("[" * 49 + "[]," * 80_000 + "[" * 2_000 + " " * count)
    ).encode(),
    "a number that is no end of lists": lambda count: json.dumps(
        completion("[" * 49 + "[]," * 80_000 + "1" * 5_000 + " " * count)
    ).encode(),
    "lists": _raw("[],"),
    "nested lists": _raw("[" * 900 + "]" * 900 + ","),
    "whole numbers of many digits": _raw("1" * 4_000 + ","),
    "decimals of many digits": _raw(HALFWAY + ","),
    "decimals of many digits in the text": _content(HALFWAY + ",", "1]"),
    "names": _keys,
    "tokens": _tokens("x"),
    "tokens that are lines": _tokens("A\n"),
    "one token of lines": _one_token("A\n"),
    "one token of marks": _one_token("<|"),
}


@dataclass(frozen=True)
class Unending:
    """The head of a reply, and then one piece of bytes for ever, as fast as it is taken."""

    head: bytes
    piece: bytes

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        sock.sendall(self.head)
        many = self.piece * (65_536 // len(self.piece))
        while not stop.is_set():
            sock.sendall(many)
        return False


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNENDING = {
    "interim answers": Unending(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "interim answers with headers": Unending(b"", b"HTTP/1.1 100 Continue\r\na: b\r\n\r\n"),
    "chunks of one byte": Unending(_CHUNKED, b"1\r\n \r\n"),
    "long names of chunks": Unending(_CHUNKED, b"1;" + b"a" * 30_000 + b"\r\n \r\n"),
    "trailers": Unending(_CHUNKED + b"1\r\n \r\n0\r\n", b"a: b\r\n"),
    "long trailers": Unending(_CHUNKED + b"1\r\n \r\n0\r\n", b"a: " + b"b" * 30_000 + b"\r\n"),
    "headers": Unending(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "long headers": Unending(b"HTTP/1.1 200 OK\r\n", b"a: " + b"b" * 30_000 + b"\r\n"),
}
