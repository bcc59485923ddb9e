"""What `svc serve` starts in each worker, and what it says of that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from wsgiref.types import WSGIApplication

from svc.app import create_app
from svc.bootstrap import Shared, build
from svc.bulk.process import run_jobs
from svc.demo import DemoServer
from svc.inprocess import DEMO_MODEL, with_demo
from svc.pins import PINS
from svc.providers import Router, build_catalog
from svc.settings import Settings


def facts(settings: Settings, address: str, keyed: bool) -> Iterator[str]:
    """What somebody who starts the server wants to know."""
    yield f"dashboard: {address}/dashboard"
    yield f"model: {_model(settings)}"
    if settings.workers > 1:
        yield f"workers: {settings.workers}"
    if keyed:
        yield "keys: on, every request needs one"
    elif settings.no_auth:
        yield "keys: none, and everybody who reaches the port is answered"
    else:
        yield "keys: none, only this machine is answered; `svc keys create --name WHO` makes one"


def _model(settings: Settings) -> str:
    """The model of a request that names none; no provider is asked."""
    # The demonstration model's address is known only after the start.
    if settings.model == DEMO_MODEL:
        return settings.model
    router = Router(build_catalog(settings), settings.model, lambda one: list(one.usual_models))
    pin = PINS[settings.latest_config]
    if trouble := router.trouble(pin):
        return f"requests must name one: {trouble}"
    return router.default(pin, named=False)


def application(
    settings: Settings, model: DemoServer | None, shared: Shared | None
) -> WSGIApplication:
    """In a worker: the application, beside its own demonstration model where one is wanted.

    The model ends with the worker's process, after the last request.
    """
    return create_app(build(_beside(settings, model), shared))


def jobs(
    settings: Settings, model: DemoServer | None, shared: Shared, stop: threading.Event
) -> None:
    """In a process of its own: run jobs, beside a demonstration model in the same way."""
    run_jobs(_beside(settings, model), shared, stop)


def _beside(settings: Settings, model: DemoServer | None) -> Settings:
    """The settings with the demonstration model of this process, where one is wanted."""
    if model is None:
        return settings
    model.start()
    return with_demo(settings, model.url)
