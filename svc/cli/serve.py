"""`svc serve`: what is wrong with the settings is found before the first process starts."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from svc import limits, logs
from svc.cli.beside import beside
from svc.cli.serving import application, facts
from svc.demo import DemoServer
from svc.inprocess import DEMO_MODEL
from svc.server import Program, listen, url
from svc.settings import load

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
    "--require-keys",
    is_flag=True,
    default=None,
    help="Refuse to start, and to answer, while the database has no API keys.",
)
@click.option(
    "--max-body-mb",
    metavar="MB",
    help=f"Largest request body, inline images included.  [default: {limits.BODY_MB}]",
)
@click.option(
    "--workers",
    metavar="N",
    help="Processes that answer requests; they share limits and database. "
    "`auto` starts one for each processor, 8 at most.  [default: 1]",
)
@click.option(
    "--demo",
    is_flag=True,
    help=f"Start the demonstration model and make {DEMO_MODEL} the default model.",
)
def command(demo: bool, **flags: str | bool | None) -> None:
    """Serve the HTTP interface.

    Options left out are read from the environment: SVC_MODEL, SVC_CACHE_SIZE, SVC_DB,
    SVC_LATEST_CONFIG, SVC_NO_AUTH, SVC_REQUIRE_KEYS, SVC_MAX_BODY_MB and SVC_WORKERS.
    """
    if demo and flags["model"] is None:
        # SVC_MODEL is ignored, because that model may cost money.
        flags["model"] = DEMO_MODEL
    settings = load(os.environ, **flags)
    logs.configure(settings.log == "json", settings.log_level)
    listener, keyed = listen(settings)
    click.echo(f"listening on {url(listener)}")
    if settings.log != "json":
        click.echo("\n".join(facts(settings, url(listener), keyed)))
    sys.stdout.flush()
    model = DemoServer() if demo else None
    parts = (settings, model)
    make = partial(application, *parts)
    Program(listener, settings.workers, make, beside(*parts)).run()
