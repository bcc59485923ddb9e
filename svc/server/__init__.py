"""How requests arrive: gunicorn's settings, the checks before the start, and the worker."""

from __future__ import annotations

from svc.server.keeper import HOOKS, SWEEP
from svc.server.keeper import NAME as JOBS
from svc.server.program import Program
from svc.server.span_sending import traces
from svc.server.startup import listen, url

__all__ = ["HOOKS", "JOBS", "SWEEP", "Program", "listen", "traces", "url"]
