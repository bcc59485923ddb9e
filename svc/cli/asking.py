"""Answers of a running server that a command cannot do without."""

from __future__ import annotations

from svc.cli.server import Answer, Server, Unreachable
from svc.errors import SvcError


def answered(server: Server, method: str, path: str, body: bytes | None = None) -> Answer:
    """What the server answers with 200. Raises `SvcError` that says why it does not."""
    try:
        answer = server.ask(method, path, body)
    except Unreachable as error:
        raise SvcError(str(error)) from None
    if answer.status == 200:
        return answer
    if answer.error is None:
        raise SvcError(f"the server answered {answer.status}: it is no svc server; see --url")
    _, message = answer.error
    hint = "; see --api-key" if answer.status == 401 else ""
    raise SvcError(f"the server answered {answer.status}: {message}{hint}")
