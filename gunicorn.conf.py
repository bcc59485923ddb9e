"""Settings of `gunicorn wsgi:app`: those of `svc serve`, and the same checks before the start."""

from __future__ import annotations

import os
import sys

from gunicorn.arbiter import Arbiter

from svc import logs, serving
from svc.errors import SettingsError
from svc.serving import *  # noqa: F403
from svc.settings import load


def on_starting(server: Arbiter) -> None:  # type: ignore[no-redef]
    """In the master, before it listens: stop with one line for what cannot be used."""
    hosts = [str(bind[0]) if isinstance(bind, tuple) else "/" for bind in server.cfg.address]
    try:
        settings = load(os.environ)
        logs.configure(settings.log == "json", settings.log_level)
        serving.check(settings, hosts)
    except SettingsError as error:
        sys.exit(f"Error: {error}")
    serving.on_starting(server)
