"""Decisions of a running server, with errors that say to a client's model what to do."""

from __future__ import annotations

from svc import jsontext
from svc.cli.server import ANSWER_S, Answer, Server, TooSlow, Unreachable
from svc.jsontext import JsonObject


class NoAnswer(Exception):
    """The server gave no answer; the message says why, and what to do."""


class Forwarder:
    """Sends requests to one server; used by several threads."""

    def __init__(self, server: Server, answer_s: float = ANSWER_S) -> None:
        """`answer_s` is how long an answer may take, in seconds."""
        self._server, self._answer_s = server, answer_s

    def decide(self, body: JsonObject) -> str:
        """The decision on a body of `POST /v1/decide`, as JSON. Raises `NoAnswer`."""
        try:
            request = jsontext.dumps(body).encode()
        except (ValueError, RecursionError):
            raise NoAnswer("The arguments cannot be written as JSON in UTF-8.") from None
        try:
            answer = self._server.ask("POST", "/v1/decide", request, self._answer_s)
        except TooSlow as error:
            raise NoAnswer(
                f"{error} Try again with fewer questions, or check whether it and its models are "
                "reachable."
            ) from None
        except Unreachable as error:
            raise NoAnswer(str(error)) from None
        if answer.status == 200 and isinstance(answer.value, dict) and "answers" in answer.value:
            return answer.text
        raise NoAnswer(self._why(answer))

    def _why(self, answer: Answer) -> str:
        """What any answer but a decision means for the caller."""
        status = answer.status
        if status == 401:
            sent = "was refused" if self._server.keyed else "is missing"
            return (
                f"The API key {sent}; give a valid one with --api-key or SVC_API_KEY (make one on "
                "the server with `svc keys create --name <who>`)."
            )
        if answer.error is None:
            return (
                f"The server at {self._server.url} is not an svc server (status {status}); see "
                "--url."
            )
        _, message = answer.error
        if status in (400, 422):
            return f"The server refused the request; correct it and try again: {message}"
        if status == 429:
            after = answer.retry_after or "a few"
            return f"The server is at a limit; try again in {after} seconds: {message}"
        return f"The server answered with an error (status {status}): {message}"
