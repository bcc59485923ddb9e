"""Decisions of a running server over HTTP, with errors that say what to do."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import requests

from svc import jsontext, limits
from svc.addresses import is_local_host
from svc.errors import SettingsError
from svc.jsontext import JsonObject
from svc.settings import Settings

URL = f"http://{Settings().host}:{Settings().port}"
# The time for an answer, so long that the server's own deadline passes first.
ANSWER_S = limits.REQUEST_DEADLINE_S + 10
# The time for the connection.
CONNECT_S = 10.0


class NoAnswer(Exception):
    """The server gave no answer; the message says why, and what to do."""


class Forwarder:
    """Sends requests to one server; used by several threads."""

    def __init__(self, url: str, key: str | None = None, answer_s: float = ANSWER_S) -> None:
        """`answer_s` is how long an answer may take, in seconds.

        Raises `SettingsError` for a malformed URL or key.
        """
        self._url, self._key = _checked(url), key
        if key is not None and not (key.isascii() and key.isprintable()):
            raise SettingsError("--api-key: a key has printable ASCII characters only")
        self._timeout = (CONNECT_S, answer_s)

    def decide(self, body: JsonObject) -> tuple[JsonObject, str]:
        """The decision on a body of `POST /v1/decide`, parsed and as text. Raises `NoAnswer`."""
        try:
            request = jsontext.dumps(body).encode()
        except (ValueError, RecursionError):
            raise NoAnswer("The arguments cannot be written as JSON in UTF-8.") from None
        response = self._post(request)
        text = response.content.decode(errors="replace")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if response.status_code == 200 and isinstance(answer, dict) and "answers" in answer:
            return answer, text
        raise NoAnswer(self._why(response, answer))

    def _post(self, body: bytes) -> requests.Response:
        try:
            with requests.Session() as session:
                # A request from this machine to itself must not go through a proxy.
                session.trust_env = not is_local_host(urlsplit(self._url).netloc)
                return session.post(
                    f"{self._url}/v1/decide",
                    data=body,
                    headers={"Content-Type": "application/json"},
                    # Without this, requests would look for a password in a netrc file.
                    auth=self._authorize,
                    timeout=self._timeout,
                    # The key is for this server alone.
                    allow_redirects=False,
                )
        except requests.Timeout:
            raise NoAnswer(
                f"The server at {self._url} did not answer in time; try again with fewer "
                "questions, or check whether it and its models are reachable."
            ) from None
        except (requests.RequestException, OSError):
            raise NoAnswer(
                f"No server answers at {self._url}; start one with `svc serve`, or name a running "
                "one with --url."
            ) from None

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request

    def _why(self, response: requests.Response, answer: Any) -> str:
        """What any answer but a decision means for the caller."""
        status = response.status_code
        if status == 401:
            sent = "was refused" if self._key else "is missing"
            return (
                f"The API key {sent}; give a valid one with --api-key or SVC_API_KEY (make one on "
                "the server with `svc keys create --name <who>`)."
            )
        error = answer.get("error") if isinstance(answer, dict) else None
        message = error.get("message") if isinstance(error, dict) else None
        if not isinstance(message, str):
            return f"The server at {self._url} is not an svc server (status {status}); see --url."
        if status in (400, 422):
            return f"The server refused the request; correct it and try again: {message}"
        if status == 429:
            after = response.headers.get("Retry-After", "a few")
            return f"The server is at a limit; try again in {after} seconds: {message}"
        return f"The server answered with an error (status {status}): {message}"


def _checked(url: str) -> str:
    """The base URL without a slash at its end."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise SettingsError(f"--url is {url[:200]!r}; allowed: http://host:port or https://host")
    return url.rstrip("/")
