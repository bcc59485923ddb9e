"""What commands share that ask a running server one thing: their options, and the request."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import click

from svc.cli.asking import answered, understanding
from svc.cli.options import with_options
from svc.cli.plans import ModelOptions
from svc.cli.server import URL, Answer, Server, key_option

F = TypeVar("F", bound=Callable[..., Any])

_ADDRESS = (
    click.option("--url", metavar="URL", default=URL, show_default=True, help="The server."),
    key_option,
)
_OPTIONS = (click.option("--project", metavar="P", help="The project."), *_ADDRESS)


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


_OPTIONAL = (
    click.option("--url", metavar="URL", help="Ask this running server."),
    key_option,
    click.option("--project", metavar="P", help="The project of the decisions there."),
)


def server_options(function: F) -> F:
    """Give a command the options of a server that it may do without, as one argument, `remote`.

    That is None where no server is named. The command gets the models' options as `asking`.
    """

    @functools.wraps(function)
    def with_server(
        project: str | None,
        url: str | None,
        api_key: str | None,
        asking: ModelOptions,
        **others: Any,
    ) -> Any:
        if url is None and project is not None:
            raise click.UsageError("--project goes with --url only.")
        if url is not None and asking.demo:
            raise click.UsageError("--demo and --url exclude each other.")
        if url is None:
            return function(remote=None, asking=asking, **others)
        with understanding(url):
            return function(remote=Remote(project, url, api_key), asking=asking, **others)

    return with_options(_OPTIONAL, with_server)  # type: ignore[no-any-return]


def address_options(function: F) -> F:
    """Give a command the options of a running server of any project, as one argument, `remote`."""

    @functools.wraps(function)
    def with_address(url: str, api_key: str | None, **others: Any) -> Any:
        with understanding(url):
            return function(remote=Remote(None, url, api_key), **others)

    return with_options(_ADDRESS, with_address)  # type: ignore[no-any-return]


def remote_options(function: F) -> F:
    """Give a command the options of a running server; it gets them as one argument, `remote`."""

    @functools.wraps(function)
    def with_remote(project: str | None, url: str, api_key: str | None, **others: Any) -> Any:
        with understanding(url):
            return function(remote=Remote(project, url, api_key), **others)

    return with_options(_OPTIONS, with_remote)  # type: ignore[no-any-return]
