"""What the service is measured against: the least code with the same work at its edges.

Each is a WSGI application for gunicorn; `SVC_BENCH_PROVIDER` is the base URL of its provider.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
from flask import Flask, request
from flask.typing import ResponseReturnValue
from marshmallow import Schema, fields, validate
from requests.adapters import HTTPAdapter

from benchmarks.decisions import MODEL
from svc import limits

_CALL_THREADS = limits.REQUEST_THREADS * limits.CALLS_PER_REQUEST_THREAD


class QuestionSchema(Schema):
    """One question."""

    type = fields.String(required=True, validate=validate.OneOf(("choice", "noul")))
    instructions = fields.String(required=True)
    options = fields.Dict(keys=fields.String(), values=fields.String())


class RequestSchema(Schema):
    """A decision request."""

    state = fields.Raw(required=True)
    questions = fields.Dict(
        keys=fields.String(), values=fields.Nested(QuestionSchema()), required=True
    )
    debias = fields.Boolean()


_SCHEMA = RequestSchema()


def constant() -> Flask:
    """Twin A: Flask and a constant JSON answer."""
    app = Flask("twin_a")

    @app.post("/v1/decide")
    def decide() -> ResponseReturnValue:
        return {"answers": {"category": {"choice": "billing"}, "urgent": {"noul": 0.9}}}

    return app


def one_call() -> Flask:
    """Twin B: Flask, marshmallow, one `requests` call on a pooled session."""
    app, provider = Flask("twin_b"), _Provider()

    @app.post("/v1/decide")
    def decide() -> ResponseReturnValue:
        return {"replies": [provider.ask(_SCHEMA.load(request.get_json()))]}

    return app


def two_calls() -> Flask:
    """Twin C: the same with two calls at once on a pool of threads."""
    app, provider, pool = Flask("twin_c"), _Provider(), ThreadPoolExecutor(_CALL_THREADS)

    @app.post("/v1/decide")
    def decide() -> ResponseReturnValue:
        asked = _SCHEMA.load(request.get_json())
        calls = [pool.submit(provider.ask, asked) for _ in range(2)]
        return {"replies": [call.result() for call in calls]}

    return app


class _Provider:
    """One chat completion for each question asked."""

    def __init__(self) -> None:
        self._url = os.environ["SVC_BENCH_PROVIDER"] + "/chat/completions"
        self._session = requests.Session()
        self._session.mount("http://", HTTPAdapter(pool_maxsize=_CALL_THREADS))

    def ask(self, asked: dict[str, Any]) -> str:
        """The text that the provider answered with."""
        prompt = f"{asked['questions']}\n\n{asked['state']}"
        message = {"role": "user", "content": prompt}
        body = {"model": MODEL, "messages": [message], "logprobs": True, "top_logprobs": 20}
        response = self._session.post(self._url, json=body, timeout=60)
        response.raise_for_status()
        text: str = response.json()["choices"][0]["message"]["content"]
        return text
