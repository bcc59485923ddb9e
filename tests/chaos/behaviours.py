"""A provider that is good under one model's name and bad in its own way under each other."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import formatdate
from pathlib import Path

from svc.demo.chat import MODEL, complete
from tests.chaos.ledger import Ledger, priced
from tests.e2e.tls import write_certificate
from tests.scripted import (
    Behaviour,
    Drip,
    Endless,
    Json,
    Raw,
    Reply,
    Reset,
    ScriptedProvider,
    Silent,
    error,
    redirect,
)

GOOD, SLOW = "good", "slow"  # a name that starts with SLOW answers after SLOW_S
SLOW_S = 1.5  # seconds
HANDSHAKE_S = 0.8  # seconds at most that the TLS provider takes before its handshake
TEN_MB = b" " * 10_000_000

Twist = Callable[[Json], Behaviour]  # what is made of a good completion


def _text(text: str | None, finish_reason: str = "stop") -> Twist:
    """Another text in the place of the reply's."""

    def twist(good: Json) -> Behaviour:
        choice = good["choices"][0]
        choice["message"]["content"], choice["finish_reason"] = text, finish_reason
        return Reply(good)

    return twist


def _around(before: str, after: str) -> Twist:
    def twist(good: Json) -> Behaviour:
        message = good["choices"][0]["message"]
        message["content"] = before + message["content"] + after
        return Reply(good)

    return twist


def _logprobs(change: Callable[[list[Json]], object]) -> Twist:
    """Other log-probabilities, where some were asked for."""

    def twist(good: Json) -> Behaviour:
        found = good["choices"][0]["logprobs"]
        if found is not None:
            found["content"] = change(found["content"])
        return Reply(good)

    return twist


def _every(value: object) -> Twist:
    """The same in the place of every log-probability."""

    def change(tokens: list[Json]) -> list[Json]:
        for token in tokens:
            for entry in (token, *token["top_logprobs"]):
                entry["logprob"] = value
        return tokens

    return _logprobs(change)


def _numbers(text: str) -> Twist:
    """The same in the place of every number of a JSON reply."""

    def twist(good: Json) -> Behaviour:
        message = good["choices"][0]["message"]
        with contextlib.suppress(ValueError):
            reply = json.loads(message["content"], parse_float=lambda _: 'X"X', parse_int=str)
            message["content"] = json.dumps(reply).replace('"X\\"X"', text)
        return Reply(good)

    return twist


def _fails(
    status: int, message: str, headers: Mapping[str, str] | None = None, **fields: object
) -> Twist:
    return lambda good: Reply(error(message, **fields), status, headers or {})


TWISTS: Mapping[str, Twist] = {
    "error-in-200": lambda good: Reply(error("overloaded", code=503)),
    "no-json": lambda good: Reply(b"<html>gateway</html>"),
    "half-json": lambda good: Reply(json.dumps(good)[:100]),
    "no-choices": lambda good: Reply({**good, "choices": []}),
    "no-object": lambda good: Reply([1, 2]),
    "wrong-types": lambda good: Reply({"choices": {"0": 7}, "usage": "much"}),
    "deep": lambda good: Reply(b"[" * 50_000),
    "content-null": _text(None),
    "cut": _text("A", "length"),
    "talk-only": _text("I would rather not say."),
    "fenced": _around("```json\n", "\n```"),
    "talkative": _around("Sure! Here you are: ", " Anything else?"),
    "nan": _numbers("NaN"),
    "too-probable": _numbers("7.5"),
    "negative": _numbers("-0.5"),
    "in-words": _numbers('"likely"'),
    "empty-logprobs": _logprobs(lambda tokens: []),
    "few-alternatives": _logprobs(
        lambda tokens: [{**token, "top_logprobs": token["top_logprobs"][:1]} for token in tokens]
    ),
    "placeholders": _every(-9999.0),
    "zeros": _every(0),
    "null-logprobs": _every(None),
    "no-logprobs": _fails(400, "logprobs is not supported", param="logprobs"),
    "no-parameter": _fails(400, "not supported", code="unsupported_parameter", param="temperature"),
    "gone": _fails(404, "no such model", code="model_not_found"),
    "forbidden": _fails(401, "bad key"),
    "broke": _fails(402, "no credits"),
    "busy": _fails(429, "slow down", {"Retry-After": "1"}),
    "busy-until": lambda good: Reply(
        error("slow down"), 429, {"Retry-After": formatdate(time.time() + 1, usegmt=True)}
    ),
    "busy-reset": lambda good: Reply(
        error("slow down"), 429, {"X-RateLimit-Reset": str(int(time.time() * 1000) + 500)}
    ),
    "broken": _fails(500, "oops"),
    "unavailable": _fails(503, "Loading model"),
    "redirect": lambda good: redirect("/v1/chat/completions", 307),
    "redirect-away": lambda good: redirect("http://127.0.0.1:1/v1/chat/completions"),
    "bad-gzip": lambda good: Reply(good, headers={"Content-Encoding": "gzip"}),
    "ten-mb": lambda good: Reply(TEN_MB),
    "garbage": lambda good: Raw(bytes(range(256))),
    "nothing": lambda good: Raw(),
    "half-closed": lambda good: Raw(b"HTTP/1.1 200 OK\r\n", half=True),
    "reset": lambda good: Reset(Reply(good), 0),
    "reset-within": lambda good: Reset(Reply(good), 200),
    "closes": lambda good: Reply(good, close=True),
    "drips": lambda good: Drip(Reply(good)),
    "drips-head": lambda good: Drip(Reply(good), from_header=True),
    "endless": lambda good: Endless(),
    "endless-drip": lambda good: Endless(every=0.05, chunked=True),
    "silent": lambda good: Silent(),
}


# A model that is so by turns.
MOODY = "moody"
MOODS = (GOOD, GOOD, SLOW, *TWISTS)


class Weather:
    """The handler of the provider; a storm takes every model down, the good one too."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._storm: Sequence[str] = ()
        self._moods: Sequence[str] = MOODS
        # How many calls came for models with moods.
        self.moody = 0

    @contextlib.contextmanager
    def storm(self, *names: str) -> Iterator[None]:
        """Within the block every call meets one of these."""
        self._storm = names
        try:
            yield
        finally:
            self._storm = ()

    @contextlib.contextmanager
    def mood(self, *names: str) -> Iterator[None]:
        """Within the block every call for a model with moods meets one of these."""
        self._moods = names
        try:
            yield
        finally:
            self._moods = MOODS

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        payer, _, name = str(body["model"]).rpartition("/")
        if name == MOODY:
            self.moody += 1
            name = random.choice(self._moods)
        if self._storm:
            name = random.choice(self._storm)
        good = priced(complete(json.dumps({**body, "model": MODEL}).encode()))
        twist = TWISTS.get(name)
        delay = SLOW_S if name.startswith(SLOW) else 0.0
        behaviour = Reply(good, delay=delay) if twist is None else twist(copy.deepcopy(good))
        if is_charged(behaviour):
            self._ledger.charge(payer)
        return behaviour


def is_charged(behaviour: Behaviour) -> bool:
    """Whether the head of a good reply is sent, be it of use or not, and be it late."""
    if isinstance(behaviour, Reset):
        return behaviour.after > 0
    reply = behaviour.reply if isinstance(behaviour, Drip) else behaviour
    if isinstance(reply, Reply):
        said = reply.body if isinstance(reply.body, dict) else {}
        return reply.status == 200 and "error" not in said
    return isinstance(reply, Endless)


class SlowTls(ScriptedProvider):
    """A provider that thinks before its TLS handshake."""

    def __init__(self, handler: Weather, certificate: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(write_certificate(certificate))
        super().__init__(handler, tls=context)
        self._pause = threading.Event()

    def _secured(self, sock: socket.socket) -> socket.socket:
        self._pause.wait(random.uniform(0, HANDSHAKE_S))
        return super()._secured(sock)
