"""What commands share that ask a running server one thing: their options, and the request."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import click

from svc.cli.asking import answered
from svc.cli.server import URL, Answer, Server, key_option

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--project", metavar="P", help="The project."),
    click.option("--url", metavar="URL", default=URL, show_default=True, help="The server."),
    key_option,
)


@dataclass(frozen=True, slots=True)
class Remote:
    """A running server and the project that is meant, None for the server's own choice."""

    project: str | None
    url: str
    key: str | None

    def get(self, path: str, query: Mapping[str, Any]) -> Answer:
        """The answer to a query about the project; what is None in it is left out.

        Raises `SvcError`.
        """
        given = {"project": self.project, **query}
        told = {name: value for name, value in given.items() if value not in (None, ())}
        return self._ask("GET", f"{path}?{urlencode(told, doseq=True)}")

    def post(self, path: str, body: bytes) -> Answer:
        """The answer to a body. Raises `SvcError`."""
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        with closing(Server(self.url, self.key)) as server:
            return answered(server, method, path, body)


def remote_options(function: F) -> F:
    """Give a command the options of a running server; it gets them as one argument, `remote`."""

    @functools.wraps(function)
    def with_remote(project: str | None, url: str, api_key: str | None, **others: Any) -> Any:
        return function(remote=Remote(project, url, api_key), **others)

    command: Any = with_remote
    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[no-any-return]
