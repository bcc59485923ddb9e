"""Settings of `gunicorn wsgi:app`: those of `svc serve`, and the same checks before the start."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial

from gunicorn.arbiter import Arbiter

from svc import logs
from svc.bulk import process, sweeping
from svc.errors import SettingsError
from svc.server import gunicorn_settings, keeper, startup, traces
from svc.server.gunicorn_settings import *  # noqa: F403
from svc.settings import load

# What is wrong with the settings is said in `on_starting`, and in one line.
with contextlib.suppress(SettingsError):
    workers = load(os.environ).workers


def on_starting(server: Arbiter) -> None:  # type: ignore[no-redef]
    """In the master, before it listens: stop with one line for what cannot be used."""
    # An address that is no tuple is the path of a Unix socket.
    binds = [bind for bind in server.cfg.address if isinstance(bind, tuple)]
    try:
        settings = load(os.environ)
        logs.configure(settings.log == "json", settings.log_level)
        found = [one for bind in binds for one in startup.resolve(*bind)]
        startup.check(settings, [str(address[0]) for _, address in found])
    except SettingsError as error:
        sys.exit(f"Error: {error}")
    gunicorn_settings.beside = {
        keeper.NAME: partial(process.run_jobs, settings),
        keeper.SWEEP: partial(sweeping.sweep, settings),
        **traces(settings),
    }
    gunicorn_settings.on_starting(server)
