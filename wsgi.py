"""The WSGI application for `gunicorn wsgi:app` and other servers; settings come from `SVC_*`."""

from __future__ import annotations

import os
import sys

from svc import logs
from svc.app import create_app
from svc.bootstrap import build
from svc.errors import SettingsError
from svc.server import gunicorn_settings
from svc.settings import load

try:
    settings = load(os.environ)
    logs.configure(settings.log == "json", settings.log_level)
    app = create_app(build(settings, gunicorn_settings.shared))
except SettingsError as error:
    sys.stderr.write(f"Error: {error}\n")
    # To gunicorn this status says: the application failed to load, do not start another worker.
    sys.exit(4)
