"""The WSGI application for `gunicorn wsgi:app` and other servers; settings come from `SVC_*`."""

from __future__ import annotations

import os
import sys

from svc import logs, serving
from svc.app import create_app
from svc.bootstrap import build
from svc.errors import SettingsError
from svc.settings import load

try:
    settings = load(os.environ)
    logs.configure(settings.log == "json", settings.log_level)
    app = create_app(build(settings, serving.shared))
except SettingsError as error:
    sys.stderr.write(f"Error: {error}\n")
    sys.exit(4)  # for gunicorn: the application failed to load, do not start another worker
