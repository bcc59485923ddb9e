from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from svc.app import create_app
from svc.bootstrap import Services, build
from svc.demo import DemoServer
from svc.settings import load


@pytest.fixture(scope="package")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Real services around the demonstration model, with a hosted provider that is never called."""
    folder: Path = tmp_path_factory.mktemp("contract")
    with DemoServer() as demo:
        settings = load(
            {
                "SVC_DB": str(folder / "svc.db"),
                "SVC_MODEL": "@demo/lexical",
                "SVC_PROVIDER_DEMO_URL": demo.url,
                "SVC_PROVIDER_HOSTED_URL": "https://hosted.example/v1",
                "SVC_PROVIDER_HOSTED_KEY": "k",
                "SVC_MAX_BODY_MB": "48",
            }
        )
        services = build(settings)
        yield services
        services.close()


@pytest.fixture
def client(services: Services) -> FlaskClient:
    return create_app(services).test_client()
