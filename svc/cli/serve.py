"""`svc serve`: everything that can be wrong is found before the first process starts."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import click
from gunicorn.app.base import Application

from svc import limits, logs, serving
from svc.app import create_app
from svc.bootstrap import build
from svc.demo import DemoServer
from svc.errors import SettingsError
from svc.inprocess import DEMO_MODEL, with_demo
from svc.settings import Settings, load

BACKLOG = 2_048  # connections that may wait to be accepted


EXAMPLES = """\b
Examples:
  svc serve --demo
  svc serve --model @openai/gpt-4.1-mini --addr 127.0.0.1:8000
  SVC_LOG=json svc serve --db /var/lib/svc/svc.db --workers 2
"""


@click.command("serve", epilog=EXAMPLES)
@click.option("--addr", metavar="ADDR", help="Listen address.  [default: 127.0.0.1:7777]")
@click.option(
    "--model",
    metavar="MODEL",
    help="Model when a request names neither model nor config.  [default: the latest pin's]",
)
@click.option(
    "--cache-size",
    metavar="N",
    help=f"Decisions remembered per mode.  [default: {limits.CACHE_SIZE}]",
)
@click.option("--db", metavar="DB", help="Database file.  [default: svc.db]")
@click.option(
    "--latest-config",
    metavar="NAME",
    help="Pin that svc-latest points to.  [default: the newest]",
)
@click.option(
    "--no-auth",
    is_flag=True,
    default=None,
    help="Allow listening beyond localhost without keys.",
)
@click.option(
    "--max-body-mb",
    metavar="MB",
    help=f"Largest request body, inline images included.  [default: {limits.BODY_MB}]",
)
@click.option(
    "--workers",
    metavar="N",
    help="Processes that answer requests; they share limits and database.  [default: 1]",
)
@click.option(
    "--demo",
    is_flag=True,
    help=f"Start the demonstration model and make {DEMO_MODEL} the default model.",
)
def command(demo: bool, **flags: str | bool | None) -> None:
    """Serve the HTTP interface.

    Options left out are read from the environment: SVC_MODEL, SVC_CACHE_SIZE, SVC_DB,
    SVC_LATEST_CONFIG, SVC_NO_AUTH, SVC_MAX_BODY_MB and SVC_WORKERS.
    """
    if demo and flags["model"] is None:
        flags["model"] = DEMO_MODEL  # whatever SVC_MODEL says: it may cost money
    settings = load(os.environ, **flags)
    logs.configure(settings.log == "json", settings.log_level)
    family, address = serving.resolve(settings.host, settings.port)[0]
    serving.check(settings, [str(address[0])])
    listener = _listen(family, address)
    click.echo(f"listening on {_url(listener)}")
    sys.stdout.flush()
    Server(settings, listener, DemoServer() if demo else None).run()


class Server(Application):  # type: ignore[misc]
    """Gunicorn on a socket that listens already; the services start in the worker."""

    def __init__(self, settings: Settings, listener: socket.socket, demo: DemoServer | None):
        self._settings = settings if demo is None else with_demo(settings, demo.url)
        self._bind = f"fd://{listener.detach()}"  # gunicorn closes it
        self._demo = demo  # ends with the worker's process, after the last request has
        super().__init__()

    def load_config(self) -> None:
        self.load_config_from_module_name_or_filename("python:svc.serving")
        self.cfg.set("bind", self._bind)
        self.cfg.set("workers", self._settings.workers)

    def load(self) -> Any:
        if self._demo is not None:
            self._demo.start()
        return create_app(build(self._settings, serving.shared))


def _listen(family: socket.AddressFamily, address: tuple[Any, ...]) -> socket.socket:
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        host, port = address[:2]
        raise SettingsError(f"--addr: cannot listen on {host} port {port}: {reason}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
