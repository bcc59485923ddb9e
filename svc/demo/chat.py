"""The OpenAI-compatible side of the demonstration model: request body in, completion out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from svc.demo.reply_writing import ReplyPiece, reply_tokens

MODEL = "lexical"

# The most alternatives at one position.
TOP_LOGPROBS = 20

# So many characters of a prompt count as one token.
TOKEN_CHARS = 4

# A fixed time, so that equal requests get equal replies.
CREATED = 1_767_225_600


class ChatError(Exception):
    """The refusal of a request, in the shape of OpenAI's errors."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status

    def body(self) -> dict[str, Any]:
        return {
            "error": {
                "message": str(self),
                "type": "invalid_request_error",
                "param": self.param,
                "code": self.code,
            }
        }


def models(_body: bytes) -> dict[str, Any]:
    """The list of models: one."""
    entry = {"id": MODEL, "object": "model", "created": CREATED, "owned_by": "demo"}
    return {"object": "list", "data": [entry]}


def complete(body: bytes) -> dict[str, Any]:
    """Answer a chat-completions request. Raises `ChatError`."""
    try:
        request = json.loads(body)
        if not isinstance(request, dict):
            raise ChatError("the body is not a JSON object")
        return _complete(request, body)
    except (ValueError, RecursionError):
        raise ChatError("the body is not JSON, or nested too deeply") from None


def _complete(request: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    _check_model(request.get("model"))
    if request.get("stream"):
        raise ChatError("this server does not stream", "stream")
    texts = _texts(request.get("messages"))
    top = _top_logprobs(request)
    tokens = reply_tokens(texts[-1], _schema(request.get("response_format")))
    limit = _limit(request)
    cut = limit is not None and len(tokens) > limit
    tokens = tokens[:limit]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "".join(token.text for token in tokens)},
        "logprobs": None if top is None else {"content": [_entry(token, top) for token in tokens]},
        "finish_reason": "length" if cut else "stop",
    }
    prompt_tokens = math.ceil(sum(map(len, texts)) / TOKEN_CHARS)
    return {
        "id": f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}",
        "object": "chat.completion",
        "created": CREATED,
        "model": MODEL,
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(tokens),
            "total_tokens": prompt_tokens + len(tokens),
        },
    }


def _check_model(model: object) -> None:
    if not isinstance(model, str):
        raise ChatError("model must be text", "model")
    if model != MODEL:
        message = f"The model `{model[:200]}` does not exist; this server has `{MODEL}`."
        raise ChatError(message, "model", "model_not_found", 404)


def _texts(messages: object) -> list[str]:
    """The text of each message, the last of the user's at the end."""
    if not isinstance(messages, list) or not messages:
        raise ChatError("messages must be a list with at least one message", "messages")
    others: list[str] = []
    last = None
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ChatError("every message must be an object with a role", "messages")
        text = _text(message.get("content"))
        if message["role"] == "user":
            last, text = text, last or ""
        others.append(text)
    if last is None:
        raise ChatError("messages must contain one of role user", "messages")
    return [*others, last]


def _text(content: object) -> str:
    """The text of a message; its images are ignored."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ChatError("a message's content must be text or a list of parts", "messages")
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n\n".join(part for part in parts if isinstance(part, str))


def _top_logprobs(request: Mapping[str, Any]) -> int | None:
    """How many alternatives the request wants; None where it wants no logprobs."""
    wanted, top = request.get("logprobs") or False, request.get("top_logprobs")
    if not isinstance(wanted, bool):
        raise ChatError("logprobs must be true or false", "logprobs")
    if top is None:
        return 0 if wanted else None
    if not wanted:
        raise ChatError("top_logprobs needs logprobs to be true", "top_logprobs")
    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= TOP_LOGPROBS:
        raise ChatError(f"top_logprobs must be 0 to {TOP_LOGPROBS}", "top_logprobs")
    return top


def _limit(request: Mapping[str, Any]) -> int | None:
    """The most tokens of the reply; None for no limit."""
    for name in ("max_completion_tokens", "max_tokens"):
        limit = request.get(name)
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ChatError(f"{name} must be a whole number of at least 1", name)
        return limit
    return None


def _schema(form: object) -> dict[str, Any] | None:
    """The JSON schema that the reply must match, `{}` for any JSON, None for text."""
    if form is None:
        return None
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {}
    spec = form.get("json_schema") if isinstance(form, dict) else None
    schema = spec.get("schema") if isinstance(spec, dict) else None
    if kind != "json_schema" or not isinstance(schema, dict):
        message = "response_format must be text, json_object, or json_schema with a schema"
        raise ChatError(message, "response_format")
    return schema


def _entry(token: ReplyPiece, top: int) -> dict[str, Any]:
    """One token's entry of `logprobs.content`, its alternatives most probable first."""
    listed = [
        {
            "token": text,
            "logprob": math.log(probability),
            "bytes": list(text.encode("utf-8", "replace")),
        }
        for text, probability in token.alternatives[: max(1, top)]
    ]
    return {**listed[0], "top_logprobs": listed[:top]}
