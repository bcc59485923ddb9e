"""What `svc serve` does in processes beside its workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from svc.bootstrap import Shared
from svc.bulk.sweeping import sweep
from svc.cli.serving import jobs
from svc.demo import DemoServer
from svc.hooks.process import tell
from svc.server import HOOKS, JOBS, SWEEP, traces
from svc.settings import Settings


def beside(
    settings: Settings, model: DemoServer | None
) -> Mapping[str, Callable[[Shared, threading.Event], None]]:
    """What is done, by the names of the processes; jobs have a demonstration model where wanted."""
    return {
        JOBS: partial(jobs, settings, model),
        SWEEP: partial(sweep, settings),
        HOOKS: partial(tell, settings),
        **traces(settings),
    }
