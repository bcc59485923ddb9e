"""Answers of a running server that a command cannot do without."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from marshmallow import ValidationError

from svc.cli.server import Answer, Server, Unreachable
from svc.errors import SvcError

# Done, or taken in to be done.
_GOOD = (200, 202)
# The server is at a limit, or it is being started or ended.
_BUSY = (429, 503)
# What it takes to read an answer as what it is not.
_STRANGE = (
    *(AttributeError, LookupError, OverflowError, TypeError, ValueError),
    *(RecursionError, ValidationError, csv.Error),
)

log = logging.getLogger(__name__)


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


@contextmanager
def understanding(url: str) -> Iterator[None]:
    """What a server answered is read and shown inside of this.

    Raises `SvcError` where it turns out to be in another shape than that of the service.
    """
    try:
        yield
    except _STRANGE as error:
        log.debug("an answer could not be shown", exc_info=error)
        raise SvcError(
            f"the server at {url} answered in a way that this version of svc does not understand "
            f"({type(error).__name__}); see --url"
        ) from None
