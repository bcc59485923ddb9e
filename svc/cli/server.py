"""Requests of commands to a running server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from svc import jsontext, limits
from svc.addresses import is_local_host
from svc.errors import InvalidJson, SettingsError
from svc.phrases import address
from svc.providers import TooLong, Transport, Watchdog, trusted
from svc.settings import Settings

URL = f"http://{Settings().host}:{Settings().port}"
# The time for an answer, so long that the server's own deadline passes first.
ANSWER_S = limits.REQUEST_DEADLINE_S + 10
# The most that is read of an answer.
MOST_MB = limits.REPLY_BYTES // (1024 * 1024)

# The headers of an answer that an `Answer` has, in its order.
_TOLD = ("Retry-After", "x-next-before", "x-next-after")
_NO_MORE: Mapping[str, str] = {}

key_option = click.option(
    "--api-key", metavar="KEY", envvar="SVC_API_KEY", help="Its API key.  [default: SVC_API_KEY]"
)


class Unreachable(Exception):
    """No answer came; the message says why, and what to do."""


class TooSlow(Unreachable):
    """The answer did not come in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered: the body parsed, None where it is no JSON, and as text.

    `replayed` tells the answer to a request that came before.
    """

    status: int
    value: Any
    text: str
    retry_after: str | None
    next_before: str | None = None
    next_after: str | None = None
    replayed: bool = False

    @property
    def error(self) -> tuple[str, str] | None:
        """Type and message of the error in the server's shape, None where there is none."""
        error = self.value.get("error") if isinstance(self.value, dict) else None
        if not isinstance(error, dict):
            return None
        kind, message = error.get("type"), error.get("message")
        return (kind, message) if isinstance(kind, str) and isinstance(message, str) else None


class Server:
    """One running server, asked by several threads."""

    def __init__(self, url: str, key: str | None = None, connections: int = 1) -> None:
        """`connections` are kept open, one for each request that may be under way at once.

        Raises `SettingsError` for a malformed URL or key.
        """
        self.url, self.keyed, self._key = _checked(url), bool(key), key
        if key is not None and not (key.isascii() and key.isprintable()):
            raise SettingsError("--api-key: a key has printable ASCII characters only")
        parts = urlsplit(self.url)
        tls = trusted() if parts.scheme == "https" else None
        # A request from this machine to itself must not go through a proxy.
        local = is_local_host(parts.netloc)
        self._transport = Transport(self.url, connections, tls, local)
        self._watchdog = Watchdog()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        answer_s: float = ANSWER_S,
        headers: Mapping[str, str] = _NO_MORE,
    ) -> Answer:
        """One request, over within `answer_s` seconds. Raises `Unreachable`."""
        with self._watchdog.watching(answer_s) as watch:
            try:
                reply = self._transport.send(method, path, self._key, body, answer_s, headers)
            except TooLong:
                raise Unreachable(
                    f"The server at {self.url} answered with more than {MOST_MB} MB; ask for less."
                ) from None
            except Exception:  # noqa: BLE001 - whatever stands there instead of a server
                reply = None
        if watch.expired:
            raise TooSlow(f"The server at {self.url} did not answer in time.")
        if reply is None or watch.ended:
            raise Unreachable(
                f"No server answers at {self.url}; start one with `svc serve`, or name a running "
                "one with --url."
            )
        text = reply.body.decode(errors="replace")
        after, before, on = (reply.headers.get(name) for name in _TOLD)
        replayed = "Idempotent-Replayed" in reply.headers
        return Answer(reply.status, _parsed(reply.body), text, after, before, on, replayed)

    def cut(self) -> None:
        """End every request, those to come too, with `Unreachable`."""
        self._watchdog.close()

    def close(self) -> None:
        """End every request, and close all connections."""
        self._watchdog.close()
        self._transport.close()


def _parsed(body: bytes) -> Any:
    try:
        return jsontext.loads(body)
    except InvalidJson:
        return None


def _checked(url: str) -> str:
    """The base URL without a slash at its end."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise SettingsError(
            f"--url is {address(url)[:200]!r}; allowed: http://host:port or https://host, without "
            "a user, a password, a query and a fragment"
        )
    return url.rstrip("/")
