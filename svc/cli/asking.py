"""Answers of a running server that a command cannot do without."""

from __future__ import annotations

from collections.abc import Mapping

from svc.cli.server import Answer, Server, Unreachable
from svc.errors import SvcError

# Done, or taken in to be done.
_GOOD = (200, 202)
# The server is at a limit, or it is being started or ended.
_BUSY = (429, 503)


class Unanswered(SvcError):
    """The server does not answer now, and may do so later."""


def leads_on(place: str | None, to: str | None) -> str | None:
    """The place of the next page, None after the last one.

    Raises `SvcError` where a page leads on to itself, which would never end.
    """
    if to == place:
        raise SvcError("the server's answer is not one of svc: it leads on to itself")
    return to


def answered(
    server: Server,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """What the server answers with success. Raises `SvcError` that says why it does not."""
    try:
        answer = server.ask(method, path, body, headers=headers or {})
    except Unreachable as error:
        raise Unanswered(str(error)) from None
    if answer.status in _GOOD:
        return answer
    if answer.error is None:
        raise SvcError(f"the server answered {answer.status}: it is no svc server; see --url")
    _, message = answer.error
    hint = "; see --api-key" if answer.status == 401 else ""
    refused = Unanswered if answer.status in _BUSY else SvcError
    raise refused(f"the server answered {answer.status}: {message}{hint}")
