"""The process that sends traces, beside the workers that make them."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from svc import telemetry
from svc.bootstrap import Shared
from svc.server.keeper import TRACES
from svc.server.program import Work
from svc.settings import Settings


def traces(settings: Settings) -> Mapping[str, Work]:
    """The process that sends traces, by its name; none where they are off or cannot be sent."""
    wanted = settings.traced and not telemetry.trouble()
    return {TRACES: _send} if wanted else {}


def _send(shared: Shared, stop: threading.Event) -> None:
    if shared.line is not None:
        telemetry.send_on(shared.line, stop)
