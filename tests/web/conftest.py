from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from flask import Flask

from svc import limits
from svc.app import create_app
from svc.bootstrap import build
from svc.settings import load
from tests.scripted import Handler, ScriptedProvider
from tests.store.copies import copied
from tests.web.models import replying

Start = Callable[..., Flask]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Makes applications around a scripted provider; what they hold ends with the test."""
    with ExitStack() as stack:

        def start(
            handler: Handler | None = None,
            deadline_s: float = limits.REQUEST_DEADLINE_S,
            **environ: str,
        ) -> Flask:
            provider = stack.enter_context(ScriptedProvider(handler or replying()))
            services = build(
                load(
                    {
                        "SVC_DB": str(copied(tmp_path / "svc.db")),
                        "SVC_MODEL": "@scripted/m",
                        "SVC_PROVIDER_SCRIPTED_URL": provider.url,
                        **environ,
                    }
                )
            )
            stack.callback(services.close)
            return create_app(services, deadline_s)

        yield start
