from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from svc.app import create_app
from svc.bootstrap import build
from svc.demo import DemoServer
from svc.settings import load


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    db: Path = tmp_path_factory.mktemp("openapi") / "svc.db"
    with DemoServer() as demo:
        variables = {
            "SVC_MODEL": "@demo/lexical",
            "SVC_PROVIDER_DEMO_URL": demo.url,
            "SVC_MASTER_KEY": "for jobs",
        }
        services = build(load({"SVC_DB": str(db), **variables}))
        yield create_app(services).test_client()
        services.close()
