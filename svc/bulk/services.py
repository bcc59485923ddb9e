"""Running services, asked as one: rows are spread over them, and one that is away is left out."""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from svc.client import Client, Decision, NoAnswer, Question, Refused, ServiceError
from svc.client.pauses import may_pass, pause_s

# How often a row is asked again after its model has failed.
RETRIES = 4

# For how long a service that did not answer is left to the others, where there are others.
REST_S = 5.0

# The type of an error that did not come from the service itself but from what stands before it.
_OF_A_PROXY = "unknown"


class Secret:
    """A text that no log, plan or `repr` shows; `None` where there is none."""

    # Not a dataclass: Ray writes the fields of those into its logs.
    def __init__(self, text: str | None) -> None:
        self._text = text

    def reveal(self) -> str | None:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(None)" if self._text is None else "Secret(***)"


def addresses(url: str | Sequence[str]) -> tuple[str, ...]:
    """The base URLs of services, given as one or several; raises `ValueError` for what is none."""
    urls = (url,) if isinstance(url, str) else tuple(url)
    if not urls:
        raise ValueError("url: give the address of at least one service")
    for one in urls:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url: must be the base URL of a service, such as http://10.0.0.5:7777")
        if parts.username is not None or parts.password is not None:
            raise ValueError("url: must not hold a user or a password; give a key as api_key")
    return urls


def keys(api_key: str | Sequence[str] | None, services: int) -> tuple[Secret, ...]:
    """The key of each of so many services, given as one for all or as one for each.

    Raises `ValueError` for another number of them.
    """
    if api_key is None or isinstance(api_key, str):
        return (Secret(api_key),) * services
    if len(api_key) != services:
        raise ValueError("api_key: give one key, or one for each address of url, in their order")
    return tuple(map(Secret, api_key))


class Services:
    """Asks whichever of some services has a row; any number of threads may ask at once.

    A row has its place among the services by its key, so that a repeat of it comes to the one that
    has answered it. Limits (429) and restarts (503, no answer) are waited for, until nothing has
    been answered for `patience_s`.
    """

    def __init__(
        self,
        urls: Sequence[str],
        clients: Sequence[Client],
        patience_s: float,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clients` ask the services at `urls`, in the same order, once per call."""
        self._clients = dict(zip(urls, clients, strict=True))
        self._patience_s, self._sleep, self._clock = patience_s, sleep, clock
        self._rested = dict.fromkeys(urls, -math.inf)
        self._silent_since = math.inf

    def decide(
        self,
        key: str,
        state: Any,
        questions: Mapping[str, Question],
        options: Mapping[str, Any],
    ) -> Decision:
        """The decision on a row; `key` makes its repeats the same one. Raises `ServiceError`."""
        unanswered_since, tried, failed = math.inf, 0, 0
        while True:
            url = self._first_awake(key)
            try:
                decision = self._clients[url].decide(
                    state, questions, idempotency_key=key, **options
                )
            except ServiceError as error:
                failed += not _is_away(error)
                answered = not isinstance(error, NoAnswer)
                unanswered_since = math.inf if answered else min(unanswered_since, self._clock())
                if self._is_final(error, failed, unanswered_since):
                    raise
                self._sleep(self._pause(url, error, tried))
                tried += 1
            else:
                self._silent_since = math.inf
                return decision

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def _is_final(self, error: ServiceError, failed: int, unanswered_since: float) -> bool:
        """Whether the row shall not be asked again."""
        if not _is_away(error):
            self._silent_since = math.inf
            return failed > RETRIES or not may_pass(error)
        now = self._clock()
        self._silent_since = min(self._silent_since, now)
        # A limit lets other rows through, so that a row may wait long for its turn; one that is
        # never answered while others are has something about it that breaks its connection.
        waited = now - min(unanswered_since, self._silent_since)
        named = error.retry_after if isinstance(error, Refused) else None
        return waited > self._patience_s or (named or 0.0) > self._patience_s

    def _pause(self, url: str, error: ServiceError, tried: int) -> float:
        """How long to wait; not at all where another service may have the row at once."""
        limited = isinstance(error, Refused) and error.status == 429
        if not limited and _is_away(error):
            self._rested[url] = self._clock() + REST_S
            if any(end <= self._clock() for end in self._rested.values()):
                return 0.0
        # The threads that wait for the same second do not all come back in it.
        return pause_s(error, tried) * random.uniform(1.0, 1.1)

    def _first_awake(self, key: str) -> str:
        """The first service in the row's own order that answers; the first of all if none does."""
        if len(self._clients) == 1:
            return next(iter(self._clients))
        in_order = sorted(self._clients, key=lambda url: _rank(url, key))
        now = self._clock()
        return next((url for url in in_order if self._rested[url] <= now), in_order[0])


def _is_away(error: ServiceError) -> bool:
    """Whether the service is busy or not there, and would take the row later."""
    if not isinstance(error, Refused):
        return True
    of_a_proxy = error.status == 502 and error.type == _OF_A_PROXY
    return error.status in (429, 503) or of_a_proxy


def _rank(url: str, key: str) -> bytes:
    return hashlib.blake2b(f"{url}\n{key}".encode(), digest_size=8).digest()
